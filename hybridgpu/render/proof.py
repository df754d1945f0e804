"""The proof of a rendering: its own text, consumed as slurmd of each node's release does, offers what was asked for.

Holds no rule of Slurm: consumers do. It holds what is expected, and the slurm.conf that the text is proven in.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from hybridgpu.consumers import slurm
from hybridgpu.consumers.slurm import Consumption, DetectedGpu
from hybridgpu.consumers.slurm.conf import DOUBLED_KEY
from hybridgpu.errors import Bug
from hybridgpu.files.tree import Content
from hybridgpu.model.catalogue import find
from hybridgpu.model.finding import Finding, Place, Rule, Severity
from hybridgpu.model.gpu import GpuModel
from hybridgpu.model.offer import OtherGres, SlurmDevice, SlurmOffer
from hybridgpu.model.sharing import Scheduler
from hybridgpu.model.site import Device, NodeBody, NodeConfig, Site, SlurmCluster
from hybridgpu.render.gres import KUBERNETES_CARDS, shares_per_gpu, written_files
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
    "Keep the site's scripts in the folder of ours, and name it by a glob: prolog: [/etc/slurm/prolog.d/*].",
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

_EXTRA = 3
"""How many nodes a message names before it counts the rest."""


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
        consumed = slurm.consume(loaded, release, _detected(mine))
        told.update(dict.fromkeys([*_of_release(consumed, mine), *_differences(consumed, mine, types)]))
    yield from told


def expected(body: NodeBody, gres_types: Collection[str]) -> SlurmOffer:
    """What a node with this body is to offer Slurm, the site's own GRES left out."""
    shares = shares_per_gpu(body)
    each = shares[1] if shares else 0
    detects = bool(body.slurm and body.slurm.autodetect != "off")
    gpus = tuple(
        SlurmDevice(
            type=device.type,
            files=() if detects and body.assumed and not shares else written_files(device, body, gres_types),
            shares=each,
            cores=None if detects and body.assumed else device.cores,
            links=None if detects and body.assumed else device.links,
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
    yield from consumed.cluster
    for finding in consumed.cluster:
        if finding.rule is DOUBLED_KEY:
            message = f"Slurm {consumed.release}: {finding.message}"
            yield Finding(ONE_LINE_HOLDS, finding.place, message, ONE_LINE_HOLDS.fix)
    results = {id(r): r for config in nodes if (r := consumed.nodes.get(config.name))}
    for result in results.values():
        yield from result.findings


def _differences(consumed: Consumption, nodes: list[NodeConfig], types: Collection[str]) -> Iterator[Finding]:
    wanted: dict[int, SlurmOffer] = {}
    equal: dict[tuple[int, int], bool] = {}
    different: dict[tuple[int, int], list[str]] = {}
    shown: dict[tuple[int, int], str] = {}
    for config in nodes:
        offer = consumed.offer_of(config.name)
        key = (id(config.body), id(offer))
        if key not in equal:
            want = wanted.setdefault(id(config.body), expected(config.body, types))
            equal[key] = offer is not None and _ours(offer) == want
            shown[key] = _shown(want, offer)
        if not equal[key]:
            different.setdefault(key, []).append(config.name)
    for key, names in different.items():
        more = f" and {len(names) - _EXTRA} more" if len(names) > _EXTRA else ""
        message = f"{fold_hosts(names[:_EXTRA])}{more}: Slurm {consumed.release} {shown[key]}"
        yield Finding(OFFER_DIFFERS, Place("slurm/gres.conf", 1), message, OFFER_DIFFERS.fix)


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
    return f"{device.type} ({','.join(device.files) or 'no file'}){shares}{cores}"


def _detected(nodes: list[NodeConfig]) -> dict[str, tuple[DetectedGpu, ...]]:
    """What AutoDetect will find, for the nodes whose facts say so."""
    found: dict[int, tuple[DetectedGpu, ...]] = {}
    for config in nodes:
        body = config.body
        if body.slurm and body.slurm.autodetect != "off" and not body.assumed and id(body) not in found:
            found[id(body)] = tuple(_as_detected(device) for device in body.slurm_devices)
    return {config.name: found[id(config.body)] for config in nodes if id(config.body) in found}


def _as_detected(device: Device) -> DetectedGpu:
    """As gpu/nvml names it: the driver's name in lower case; for an instance cut at the first hyphen, then the profile
    (S:src/plugins/gpu/nvml/gpu_nvml.c).
    """
    model = find(device.model)
    assert isinstance(model, GpuModel)  # noqa: S101 - a Site holds models of the catalogue only
    name = model.driver_name.lower().replace(" ", "_")
    if device.profile:
        name = f"{name.partition('-')[0]}_{device.profile}"
    links = ",".join(map(str, device.links)) if device.links else None
    return DetectedGpu(name, device.files, device.cores, links)
