"""What NVIDIA's programs for Kubernetes do with a file: device plugin, feature discovery, MPS, MIG, config-manager."""

from hybridgpu.consumers.kubernetes import (
    askrules,
    chartvalues,
    configmaps,
    configrules,
    driftjudge,
    kubejudge,
    migchoice,
    migrules,
    operandjudge,
    pluginrules,
    policy,
    policyjudge,
    yamlrules,
)
from hybridgpu.consumers.kubernetes.askjudge import judge_asks
from hybridgpu.consumers.kubernetes.configrules import judge_choice, judge_default
from hybridgpu.consumers.kubernetes.consume import PluginConsumption, consume
from hybridgpu.consumers.kubernetes.gather import gather
from hybridgpu.consumers.kubernetes.given import KubeFiles
from hybridgpu.consumers.kubernetes.kubejudge import judge_configuration
from hybridgpu.consumers.kubernetes.migjudge import judge_mig_file
from hybridgpu.consumers.kubernetes.migspec import read_mig, valid_config
from hybridgpu.consumers.kubernetes.node import Card, Instance, Node, card_of, node_of, node_of_facts
from hybridgpu.consumers.kubernetes.outcome import Labelled, MpsRuns, PluginRuns, Refused, Waits
from hybridgpu.consumers.kubernetes.pluginjudge import judge_plugin_config
from hybridgpu.files.where import Where, in_block, in_file

RULES = (
    *yamlrules.RULES,
    *pluginrules.RULES,
    *configmaps.RULES,
    *configrules.RULES,
    *migrules.RULES,
    *policy.RULES,
    *chartvalues.RULES,
    *policyjudge.RULES,
    *migchoice.RULES,
    *kubejudge.RULES,
    *operandjudge.RULES,
    *driftjudge.RULES,
    *askrules.RULES,
)
"""Every rule of this room, in the order in which files are judged."""

__all__ = [
    "RULES",
    "Card",
    "Instance",
    "KubeFiles",
    "Labelled",
    "MpsRuns",
    "Node",
    "PluginConsumption",
    "PluginRuns",
    "Refused",
    "Waits",
    "Where",
    "card_of",
    "consume",
    "gather",
    "in_block",
    "in_file",
    "judge_asks",
    "judge_choice",
    "judge_configuration",
    "judge_default",
    "judge_mig_file",
    "judge_plugin_config",
    "node_of",
    "node_of_facts",
    "read_mig",
    "valid_config",
]
