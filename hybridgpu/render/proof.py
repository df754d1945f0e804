"""The proof of a rendering: its own text, consumed as slurmd of each node's release does, offers what was asked for.

Holds no rule of Slurm: consumers do. It holds what is expected, and the slurm.conf that the text is proven in.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from hybridgpu.consumers import slurm
from hybridgpu.consumers.slurm import Consumption, DetectedGpu, NodeResult, Release, SlurmFiles, nvml_type
from hybridgpu.consumers.slurm.conf import DOUBLED_KEY
from hybridgpu.consumers.slurm.deviceorder import TYPES_OUT_OF_ORDER
from hybridgpu.consumers.slurm.gresconf import NODES_UNKNOWN
from hybridgpu.consumers.slurm.nodeline import node_names
from hybridgpu.errors import Bug
from hybridgpu.files.tree import Content
from hybridgpu.model.catalogue import find
from hybridgpu.model.finding import Finding, Rule, Severity
from hybridgpu.model.gpu import GpuModel
from hybridgpu.model.offer import OtherGres, SlurmDevice, SlurmOffer
from hybridgpu.model.sharing import Scheduler
from hybridgpu.model.site import KUBERNETES_CARDS, Device, NodeBody, NodeConfig, Site, SlurmCluster
from hybridgpu.render.gres import shares_per_gpu, written_files
from hybridgpu.render.hostlist import fold_hosts
from hybridgpu.render.slurm import gres_types
from hybridgpu.render.tree import slurm_texts

OFFER_DIFFERS = Rule(
    "render-offer-differs",
    Severity.ERROR,
    "Slurm would make something else of the rendered files than the inventory asks for.",
    "See the findings beside this one; without any it is a bug of hybridgpu, please report it.",
    "hybridgpu",
)

ONE_LINE_HOLDS = Rule(
    "render-key-twice",
    Severity.ERROR,
    "This release of Slurm takes one line of the key: what the site has would be lost, or our hook.",
    "Keep all scripts of a key in one folder and name it by a glob: prolog: [/etc/slurm/prolog.d/*], epilog likewise.",
    "measured: 22.05.8, 24.11.5; several lines are taken since 24.05 (slurm.conf.5 Prolog)",
)

_SITE_CONF = """\
ClusterName=proof
SlurmctldHost=proof
SelectType=select/cons_tres
AccountingStorageType=accounting_storage/{storage}
Include nodes.conf
Include gpu.conf
PartitionName=proof Nodes=ALL
"""
"""The smallest slurm.conf that starts with the rendered files (docs/rendering.md)."""

_OUTSIDE = (NODES_UNKNOWN, TYPES_OUT_OF_ORDER)
"""What a finding may rest on that hybridgpu does not see: the rest of the site's slurm.conf."""


def prove(site: Site, files: Mapping[str, Content]) -> Iterator[Finding]:
    """What Slurm finds in the rendered files, and an error for every set of equal nodes whose offer is another."""
    nodes = [config for config in site.nodes.values() if config.body.slurm]
    texts = slurm_texts(files)
    if not nodes or site.slurm is None or not texts:
        return
    loaded = slurm.load({**{f"slurm/{name}": text for name, text in texts.items()}, **_site_conf(site.slurm)}, _CONF)
    types = gres_types(site)
    told: dict[Finding, None] = {}
    for version in dict.fromkeys([site.slurm.version, *(c.body.slurm.version for c in nodes if c.body.slurm)]):
        release = slurm.release(version)
        if release is None:
            raise Bug(f"Slurm {version} is in a Site, and reading an inventory refuses what is not known")
        mine = [c for c in nodes if c.body.slurm and c.body.slurm.version == version]
        consumed = slurm.consume(loaded, release, _detected(mine, release))
        told.update(dict.fromkeys([*_of_release(consumed, mine), *_differences(loaded, consumed, mine, types)]))
    yield from told


def expected(body: NodeBody, gres_types: Collection[str]) -> SlurmOffer:
    """What a node with this body is to offer Slurm, the site's own GRES left out."""
    shares = shares_per_gpu(body)
    gpus = tuple(
        SlurmDevice(
            type=device.type,
            files=written_files(device, body, gres_types),
            shares=shares[1] if shares else 0,
            cores=device.cores,
            links=device.links,
        )
        for device in body.slurm_devices
    )
    cards = sorted({d.minor for d in body.devices if body.owners[d.index] is Scheduler.KUBERNETES})
    others = tuple(f"/dev/nvidia{minor}" for minor in cards) if body.split else ()
    held = (OtherGres(KUBERNETES_CARDS, None, len(others), others),) if others else ()
    return SlurmOffer(gpus, shares[0] if shares else None, held)


_CONF = "slurm/slurm.conf"


def _site_conf(cluster: SlurmCluster) -> dict[str, str]:
    storage = "slurmdbd" if cluster.accounting == "slurmdbd" else "none"
    return {_CONF: _SITE_CONF.format(storage=storage)}


def _of_release(consumed: Consumption, nodes: list[NodeConfig]) -> Iterator[Finding]:
    """The findings that concern nodes of this release, and the cluster's."""
    for finding in consumed.cluster:
        if finding.rule is DOUBLED_KEY:
            message = f"Slurm {consumed.release} takes one line: {finding.message}"
            yield Finding(ONE_LINE_HOLDS, finding.place, message, ONE_LINE_HOLDS.fix)
        elif finding.rule not in _OUTSIDE:
            yield finding
    results = {id(r): r for config in nodes if (r := consumed.nodes.get(config.name))}
    for result in results.values():
        yield from (finding for finding in result.findings if finding.rule not in _OUTSIDE)


def _differences(
    loaded: SlurmFiles, consumed: Consumption, nodes: list[NodeConfig], types: Collection[str]
) -> Iterator[Finding]:
    """One finding for every set of equal nodes whose offer is another and that no other error explains."""
    wanted: dict[int, SlurmOffer] = {}
    different: dict[tuple[int, int], list[str]] = {}
    shown: dict[tuple[int, int], str | None] = {}
    for config in nodes:
        result = consumed.nodes.get(config.name)
        key = (id(config.body), id(result))
        if key not in shown:
            want = wanted.setdefault(id(config.body), expected(config.body, types))
            shown[key] = _difference(want, result)
        if shown[key]:
            different.setdefault(key, []).append(config.name)
    if not different or any(finding.is_error for finding in consumed.cluster):
        return
    places = {name: line.place for line in loaded.nodes for name in node_names(line, consumed.release)}
    for key, names in different.items():
        message = f"{fold_hosts(names)}: Slurm {consumed.release} {shown[key]}"
        yield Finding(OFFER_DIFFERS, places.get(names[0]), message, OFFER_DIFFERS.fix)


def _difference(want: SlurmOffer, result: NodeResult | None) -> str | None:
    """What the node would offer instead; None where it is what is wanted, or where an error says why it is not."""
    if result is None:
        return "would not know the node"
    if result.offer is not None and _ours(result.offer) == want:
        return None
    return None if any(finding.is_error for finding in result.findings) else _shown(want, result.offer)


def _ours(offer: SlurmOffer) -> SlurmOffer:
    """The offer without the site's own GRES."""
    return replace(offer, others=tuple(other for other in offer.others if other.name == KUBERNETES_CARDS))


def _shown(want: SlurmOffer, offer: SlurmOffer | None) -> str:
    if offer is None:
        return "would not start with these files"
    ours = _ours(offer)
    for position, (wanted, seen) in enumerate(zip(want.gpus, ours.gpus, strict=False)):
        if wanted != seen:
            return f"would see {_device(seen)} as GPU {position}, not {_device(wanted)}"
    if len(want.gpus) != len(ours.gpus):
        return f"would see {len(ours.gpus)} GPU devices, not {len(want.gpus)}"
    return f"would see {ours.sharing} and {ours.others}, not {want.sharing} and {want.others}"


def _device(device: SlurmDevice) -> str:
    shares = f" with {device.shares} shares" if device.shares else ""
    cores = f" at cores {device.cores}" if device.cores else ""
    links = f" with links {','.join(map(str, device.links))}" if device.links else ""
    return f"{device.type} ({','.join(device.files) or 'no file'}){shares}{cores}{links}"


def _detected(nodes: list[NodeConfig], release: Release) -> dict[str, tuple[DetectedGpu, ...]]:
    """What AutoDetect will find: the cards as they are to be, by the names that the driver gives them."""
    found: dict[int, tuple[DetectedGpu, ...]] = {}
    for config in nodes:
        body = config.body
        if body.slurm and body.slurm.autodetect != "off" and id(body) not in found:
            found[id(body)] = tuple(_as_detected(device, release) for device in body.slurm_devices)
    return {config.name: found[id(config.body)] for config in nodes if id(config.body) in found}


def _as_detected(device: Device, release: Release) -> DetectedGpu:
    model = find(device.model)
    assert isinstance(model, GpuModel)  # noqa: S101 - a Site holds models of the catalogue only
    cut = model.profile(device.profile) if device.profile else None
    card = device.memory_bytes * model.slices // cut.size if cut else device.memory_bytes
    name = nvml_type(model.driver_name, device.profile, card, release)
    links = ",".join(map(str, device.links)) if device.links else None
    return DetectedGpu(name, device.files, device.cores, links)
