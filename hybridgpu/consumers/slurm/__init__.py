"""What Slurm's daemons do with slurm.conf, gres.conf and cgroup.conf, release by release."""

from hybridgpu.consumers.slurm import (
    cgroupconf,
    cluster,
    collisions,
    conf,
    containerconf,
    detect,
    devicenames,
    deviceorder,
    gresconf,
    includes,
    instances,
    merge,
    nodegres,
    nodeline,
    nodelists,
    plugins,
    powersave,
    punctuation,
    registration,
    settings,
    shares,
    weights,
)
from hybridgpu.consumers.slurm.conf import NodeRecord, SlurmFiles, load
from hybridgpu.consumers.slurm.consume import GRES_NOT_GIVEN, Consumption, NodeResult, Registered, consume
from hybridgpu.consumers.slurm.gather import RULES as GATHERED
from hybridgpu.consumers.slurm.gather import gather
from hybridgpu.consumers.slurm.given import SlurmSide, SlurmTree
from hybridgpu.consumers.slurm.nvml import DetectedGpu, detected_from, links_of_card, links_of_instance, nvml_type
from hybridgpu.consumers.slurm.release import NEWEST, RELEASES, Release, release

RULES = (
    *settings.RULES,
    *(*plugins.RULES, *nodelists.RULES, *weights.RULES),
    *(
        *conf.RULES,
        *includes.RULES,
        *nodeline.RULES,
        *nodegres.RULES,
        *punctuation.RULES,
        *gresconf.RULES,
        *devicenames.RULES,
        *deviceorder.RULES,
        *instances.RULES,
        *merge.RULES,
        *detect.RULES,
        *shares.RULES,
    ),
    *(*registration.RULES, *collisions.RULES, *cluster.RULES, *cgroupconf.RULES, *containerconf.RULES),
    *powersave.RULES,
    GRES_NOT_GIVEN,
    *GATHERED,
)
"""Every rule that a consumption can fire, in the order a file is judged."""

__all__ = [
    "NEWEST",
    "RELEASES",
    "RULES",
    "Consumption",
    "DetectedGpu",
    "NodeRecord",
    "NodeResult",
    "Registered",
    "Release",
    "SlurmFiles",
    "SlurmSide",
    "SlurmTree",
    "consume",
    "detected_from",
    "gather",
    "links_of_card",
    "links_of_instance",
    "load",
    "nvml_type",
    "release",
]
