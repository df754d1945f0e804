"""All cross-checks, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hybridgpu.check.cross.booking import judge_booking
from hybridgpu.check.cross.cards import judge_cards
from hybridgpu.check.cross.inventoried import judge_node_objects, judge_slurm_files
from hybridgpu.check.cross.membership import judge_membership
from hybridgpu.check.cross.modes import judge_modes
from hybridgpu.check.cross.pairs import Pair, configs_by_name, facts_by_name, hosts_by_name, nodes_by_name, paired
from hybridgpu.check.cross.slurmnode import SlurmNode, slurm_nodes
from hybridgpu.check.cross.tolerations import judge_tolerations
from hybridgpu.check.cross.upgrades import judge_upgrades
from hybridgpu.consumers.kubernetes.given import KubeFiles
from hybridgpu.consumers.slurm.given import SlurmSide
from hybridgpu.inventory.load import Loaded
from hybridgpu.model.facts import Facts
from hybridgpu.model.finding import Finding


def cross_check(
    slurm: Sequence[SlurmSide], kube: KubeFiles, facts: Mapping[str, Facts], inventories: Sequence[Loaded]
) -> Iterator[Finding]:
    """Every contradiction between the sides of one site; nothing where one side only is given."""
    if kube == KubeFiles() and not facts and not inventories:
        return
    configs, told, objects = configs_by_name(inventories), facts_by_name(facts), nodes_by_name(kube.nodes)
    pairs: list[Pair] = []
    every: list[SlurmNode] = []
    for side in slurm:
        nodes = list(slurm_nodes(side))
        mine = list(paired(nodes, objects, told, configs))
        complete = bool(nodes) and side.tree.files.complete
        yield from judge_booking(mine, kube.operands)
        yield from judge_modes(mine, kube)
        yield from judge_membership(nodes, kube.nodes, mine, configs, complete=complete)
        yield from judge_slurm_files(nodes, inventories, complete=complete)
        every += nodes
        pairs += mine
    yield from judge_node_objects(kube, inventories)
    yield from judge_upgrades(kube, pairs, any(node.has_gpus for node in every), inventories)
    yield from judge_tolerations(kube, pairs, inventories)
    yield from judge_cards(every, kube.nodes, told, hosts_by_name(inventories))
