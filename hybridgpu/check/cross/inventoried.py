"""An inventory beside the files that are in force: nodes that one of them lacks, and cards given to the other side.

Which inventory belongs to which files is told by the nodes they share; what shares none is another site's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from hybridgpu.check.cross.fence import Fence, fence
from hybridgpu.check.cross.groups import Groups
from hybridgpu.check.cross.kubemode import Believing
from hybridgpu.check.cross.modes import is_hard
from hybridgpu.check.cross.pairs import configs_by_name
from hybridgpu.check.cross.slurmnode import SlurmNode, cut, instances, modes
from hybridgpu.consumers.kubernetes.given import KubeFiles, KubeNode
from hybridgpu.consumers.slurm.hostlist import BadHostlist, expand
from hybridgpu.files.slurmlines import read
from hybridgpu.inventory.load import Loaded
from hybridgpu.model.finding import Finding, Place, Related, Rule, Severity
from hybridgpu.model.hostname import Directory, NearNames
from hybridgpu.model.offer import SlurmOffer
from hybridgpu.model.sharing import Mode, Scheduler
from hybridgpu.model.site import Device, NodeConfig, SlurmCluster
from hybridgpu.render.kubernetes.offer import visible_devices

NODE_NOT_IN_FILES = Rule(
    "site-inventory-node-not-in-files",
    Severity.WARNING,
    "The inventory has a node that the scheduler's own files, given beside it, do not name: what it is to be is not in "
    "force there.",
    "Render the inventory and load the files, or write the node's name alike.",
    "hybridgpu",
)
NODE_NOT_IN_INVENTORY = Rule(
    "site-node-not-in-inventory",
    Severity.WARNING,
    "A scheduler's files name a GPU node that the inventory beside them does not have: nothing is rendered for it, and "
    "files rendered from the inventory would take its GPUs away.",
    "Add the node to the inventory; `hybridgpu import` writes its entry.",
    "hybridgpu",
)
MODE_OTHER = Rule(
    "site-inventory-mode-differs",
    Severity.ERROR,
    "The files in force cut a node's cards, or serve them by MPS, otherwise than the inventory says.",
    "Render the inventory and load the files, or correct the node's sharing.",
    "hybridgpu",
)
SHARING_OTHER = Rule(
    "site-inventory-sharing-differs",
    Severity.WARNING,
    "The files in force share a node's cards otherwise than the inventory says.",
    "Render the inventory and load the files, or correct the node's sharing.",
    "hybridgpu",
)
CARDS_OTHER = Rule(
    "site-inventory-cards-differ",
    Severity.WARNING,
    "Slurm's files offer other cards or instances of a node than the inventory gives Slurm.",
    "Render the inventory and load the files, or correct the node's layout or owner.",
    "hybridgpu",
)


def judge_slurm_files(
    nodes: Sequence[SlurmNode], inventories: Sequence[Loaded], *, complete: bool
) -> Iterator[Finding]:
    """Findings on one cluster's files beside the inventories that share nodes with it."""
    for loaded in inventories:
        if loaded.site is None or loaded.inventory is None:
            continue
        wanted = [name for name, c in loaded.site.nodes.items() if Scheduler.SLURM in c.body.schedulers]
        configs = configs_by_name([loaded])
        known: Directory[SlurmNode] = Directory()
        for node in nodes:
            known.add(node.names, node)
        missing = [name for name in wanted if known.find((name,)) is None]
        theirs = _looked_after(loaded.site.slurm)
        unknown = [n for n in nodes if n.has_gpus and configs.find(n.names) is None]
        strange = [(n.name, n.place) for n in unknown if n.name not in theirs]
        places = _places(loaded)
        if len(missing) < len(wanted):
            yield from _not_in_files("Slurm's files", missing if complete else (), strange, places)
            if not _elsewhere(strange, inventories):
                yield from _not_in_inventory(strange, loaded.inventory.file)
        yield from _differing(nodes, configs, places)


def judge_node_objects(kube: KubeFiles, inventories: Sequence[Loaded]) -> Iterator[Finding]:
    """Findings on Node objects beside the inventories that share nodes with them."""
    if len(kube.nodes) == 1:  # a sample, and no list of the cluster
        return
    known: Directory[KubeNode] = Directory()
    for node in kube.nodes:
        known.add(node.host_names, node)
    for loaded in inventories:
        if loaded.site is None or loaded.inventory is None:
            continue
        wanted = {n: c for n, c in loaded.site.nodes.items() if Scheduler.KUBERNETES in c.body.schedulers}
        configs = configs_by_name([loaded])
        missing = [n for n, config in wanted.items() if known.find((config.kubernetes_name, n)) is None]
        strange = [(n.name, n.place) for n in kube.nodes if n.has_gpus and configs.find(n.host_names) is None]
        places = _places(loaded)
        if len(missing) < len(wanted):
            yield from _not_in_files("the Node objects", missing, strange, places)
            if not _elsewhere(strange, inventories):
                yield from _not_in_inventory(strange, loaded.inventory.file)
        yield from _believing(kube, configs, places)


def _places(loaded: Loaded) -> dict[str, Place]:
    groups = loaded.inventory.groups if loaded.inventory else ()
    return {host: group.place for group in groups for host in group.hosts}


def _looked_after(cluster: SlurmCluster | None) -> frozenset[str]:
    """The nodes whose GPUs stand in lines of `slurm.site.gres`: render keeps these, so nothing is taken from them."""
    lines = read("", {"": "\n".join(cluster.site.gres if cluster else ())}.__getitem__).lines
    of_gpus = (line for line in lines if (name := line.get("name")) and name.value.lower() == "gpu")
    found: set[str] = set()
    for text in {nodes.value for line in of_gpus if (nodes := line.get("nodename"))}:
        with suppress(BadHostlist):
            found.update(expand(text))
    return frozenset(found)


def _elsewhere(strange: Sequence[tuple[str, Place]], inventories: Sequence[Loaded]) -> bool:
    """Whether another inventory has one of the nodes: then the files are of several."""
    configs = configs_by_name(inventories)
    return any(configs.find((name,)) is not None for name, _ in strange)


def _not_in_files(
    files: str, missing: Sequence[str], strange: Sequence[tuple[str, Place]], places: Mapping[str, Place]
) -> Iterator[Finding]:
    near, groups = NearNames(), Groups()
    for name, _ in strange:
        near.add(name)
    for name in missing:
        other = near.near(name)
        hint = f"did you mean {other}? {NODE_NOT_IN_FILES.fix}" if other else ""
        groups.add(NODE_NOT_IN_FILES, places[name], name, f"{files} do not name what the inventory has", (), hint)
    yield from groups.findings()


def _not_in_inventory(strange: Sequence[tuple[str, Place]], file: str) -> Iterator[Finding]:
    groups = Groups()
    for name, place in strange:
        groups.add(NODE_NOT_IN_INVENTORY, place, name, f"has GPUs and is not in {file}")
    yield from groups.findings()


def _differing(
    nodes: Sequence[SlurmNode], configs: Directory[NodeConfig], places: Mapping[str, Place]
) -> Iterator[Finding]:
    groups = Groups()
    for node in nodes:
        config = configs.find(node.names)
        if config is None or not node.offer or not node.offer.gpus:
            continue
        mine = modes(node.offer)
        wanted = _mode(config, config.body.slurm_devices)
        related = (Related(places[config.name], "what the inventory says"),)
        if config.body.slurm is None:
            words = f"Gres={node.gres} offers its GPUs, and the inventory has the node in Kubernetes alone"
            groups.add(CARDS_OTHER, node.place, node.name, words, related)
        elif wanted not in mine:
            rule = MODE_OTHER if is_hard(mine, frozenset((wanted,))) else SHARING_OTHER
            is_now = " or ".join(sorted(mode.value for mode in mine))
            words = f"Gres={node.gres} is {is_now}, and the inventory has {wanted.value}"
            groups.add(rule, node.place, node.name, words, related)
        elif (found := _offered(node.offer)) is not None and found != (expected := _expected(config)):
            words = f"Gres={node.gres} offers {_shown(found)}, and the inventory gives Slurm {_shown(expected)}"
            groups.add(CARDS_OTHER, node.place, node.name, words, related)
    yield from groups.findings()


def _mode(config: NodeConfig, devices: Sequence[Device]) -> Mode:
    """The mode that one scheduler sees: on a node that is cut, a side may have whole cards alone."""
    mode = config.body.sharing.mode
    return Mode.EXCLUSIVE if mode is Mode.MIG and not any(d.profile for d in devices) else mode


def _offered(offer: SlurmOffer) -> Counter[str] | None:
    """Devices by profile, or whole ones; None where types do not tell."""
    if all(len(gpu.files) == 1 and not cut(gpu) for gpu in offer.gpus):
        return Counter({"": len(offer.gpus)})
    return instances(offer)


def _expected(config: NodeConfig) -> Counter[str]:
    return Counter(device.profile or "" for device in config.body.slurm_devices)


def _shown(found: Counter[str]) -> str:
    return " + ".join(f"{count} x {name or 'a whole card'}" for name, count in sorted(found.items())) or "nothing"


def _believing(kube: KubeFiles, configs: Directory[NodeConfig], places: Mapping[str, Place]) -> Iterator[Finding]:
    groups = Groups()
    believing = Believing(kube)
    for node in kube.nodes:
        config = configs.find(node.host_names)
        if config is None or Scheduler.KUBERNETES not in config.body.schedulers or fence(node) is Fence.CLOSED:
            continue
        wanted = _mode(config, visible_devices(config.body))
        told = next((belief for belief in believing.of(node) if wanted not in belief.modes), None)
        if told:
            related = (Related(places[config.name], "what the inventory says"),)
            words = f"the inventory has {wanted.value}, and {told.words}"
            groups.add(SHARING_OTHER, told.place, node.name, words, related)
    yield from groups.findings()
