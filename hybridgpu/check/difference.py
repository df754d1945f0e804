"""How a node's offer to Slurm would change: what it makes of a site's own files against what it makes of rendered ones.

Told for each set of nodes that change alike, at the place of the site's own file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from hybridgpu.consumers import slurm
from hybridgpu.consumers.slurm import Consumption, NodeRecord, detected_from
from hybridgpu.consumers.slurm.nodeline import node_names
from hybridgpu.consumers.slurm.values import core_set
from hybridgpu.inventory.importer import Sources
from hybridgpu.model.finding import Finding, Place, Rule, Severity
from hybridgpu.model.offer import OtherGres, SlurmDevice, SlurmOffer
from hybridgpu.model.site import KUBERNETES_CARDS, Site
from hybridgpu.render.hostlist import fold_hosts
from hybridgpu.render.tree import render_tree, slurm_texts

_SOURCE = "hybridgpu: the site's files and the rendered ones, consumed by the same release"


def _rule(name: str, severity: Severity, what_happens: str, fix: str) -> Rule:
    return Rule(name, severity, what_happens, fix, _SOURCE)


TYPE_ADDED = _rule(
    "import-type-added",
    Severity.WARNING,
    "hybridgpu gives every GPU a type: jobs that ask for GPUs without a type are served as before.",
    "Choose the type in the class, if you care for its name.",
)
TYPE_RENAMED = _rule(
    "import-type-renamed",
    Severity.ERROR,
    "Jobs that ask for the old type are refused once the rendered files are loaded.",
    "Set `type` of the class where it is a whole GPU's; a MIG instance is called by its profile. Tell users.",
)
DEVICES_DIFFER = _rule(
    "import-devices-differ",
    Severity.ERROR,
    "An inventory cannot say which devices these are, so the rendered files name others.",
    "Import with the facts of the nodes, and render with --facts. MIG instances that lie elsewhere on the card than "
    "hybridgpu puts them (`hybridgpu mig layouts MODEL`) must be cut anew.",
)
FILES_ADDED = _rule(
    "import-files-added",
    Severity.WARNING,
    "The rendered files name all device files of a MIG instance, so that jobs can open it and no other.",
    "Nothing is to be done.",
)
ORDER_DIFFERS = _rule(
    "import-order-differs",
    Severity.WARNING,
    "The GPUs are numbered otherwise (SLURM_JOB_GPUS, CUDA_VISIBLE_DEVICES without ConstrainDevices).",
    "Nothing is to be done, unless scripts count on the numbers.",
)
SHARES_DIFFER = _rule(
    "import-shares-differ",
    Severity.ERROR,
    "An inventory has one number of shards for all GPUs of a node, and 100 mps a GPU.",
    "Write the same number for each GPU, or split the nodes by their number.",
)
CORES_LEFT_OUT = _rule(
    "import-cores-left-out",
    Severity.WARNING,
    "An inventory has no Cores: Slurm no longer knows which cores are near a GPU.",
    "Render with facts (`hybridgpu render --facts`), which have them.",
)
LINKS_LEFT_OUT = _rule(
    "import-links-left-out",
    Severity.WARNING,
    "An inventory has no Links: Slurm no longer knows which GPUs are joined by NVLink.",
    "Render with facts (`hybridgpu render --facts`), which have them.",
)
OTHERS_DIFFER = _rule(
    "import-other-gres-differ",
    Severity.ERROR,
    "A GRES of the site's own would be lost, or another one offered.",
    "Correct slurm.site.gres, and Gres of class or entry.",
)
NOT_OFFERED = _rule(
    "import-node-not-offered",
    Severity.ERROR,
    "slurmd would not start on the node with the rendered files.",
    "See the findings beside this one; without any it is a bug of hybridgpu, please report it.",
)

_CONF = "slurm/slurm.conf"
_HEAD = "ClusterName=import\nSlurmctldHost=import\nSelectType=select/cons_tres\nMaxNodeCount=65536\n"
_STORAGE = "AccountingStorageType=accounting_storage/slurmdbd\n"
_INCLUDES = "Include nodes.conf\nInclude gpu.conf\n"


@dataclass(frozen=True, slots=True)
class _Change:
    """One way in which an offer changes."""

    rule: Rule
    message: str


def differences(sources: Sources, site: Site) -> Iterator[Finding]:
    """What rendering the site would change for the nodes that Slurm has now."""
    tree, before = sources.tree, sources.consumption
    if tree is None or before is None or site.slurm is None:
        return
    after = _rendered(sources, site, before)
    place = {name: record for record in tree.files.nodes for name in node_names(record, before.release)}
    alike: dict[tuple[int, int], list[str]] = {}
    for name, config in site.nodes.items():
        if config.body.slurm and name in before.nodes:
            alike.setdefault((id(before.nodes[name]), id(after.nodes.get(name))), []).append(name)
    for names in alike.values():
        record = place[names[0]]
        for change in _changes(before.offer_of(names[0]), after.offer_of(names[0])):
            message = f"{fold_hosts(names)}: {change.message}"
            yield Finding(change.rule, _place(record), message, change.rule.fix)


def _rendered(sources: Sources, site: Site, before: Consumption) -> Consumption:
    texts = slurm_texts(render_tree(site))
    storage = _STORAGE if site.slurm and site.slurm.accounting == "slurmdbd" else ""
    files = {f"slurm/{name}": text for name, text in texts.items()}
    loaded = slurm.load({**files, _CONF: _HEAD + storage + _INCLUDES}, _CONF)
    return slurm.consume(loaded, before.release, detected_from(sources.facts, before.release))


def _place(record: NodeRecord) -> Place:
    gres = record.values.get("gres")
    return gres.place if gres else record.place


def _changes(before: SlurmOffer | None, after: SlurmOffer | None) -> Iterator[_Change]:
    if before is None:
        return
    if after is None:
        yield _Change(NOT_OFFERED, "slurmd would die of the rendered files")
        return
    pairs = _paired(before.gpus, after.gpus)
    if pairs is None:
        yield _Change(DEVICES_DIFFER, f"{_shown(before.gpus)} would become {_shown(after.gpus)}")
    else:
        yield from _of_devices(pairs)
        if any(now is not there for (_, now), there in zip(pairs, after.gpus, strict=True)):
            yield _Change(ORDER_DIFFERS, f"the order {_shown(before.gpus)} would become {_shown(after.gpus)}")
        yield from _of_shares(before, after, pairs)
    was, now = _others(before.others), _others(after.others)
    if was != now:
        yield _Change(OTHERS_DIFFER, f"{_list(was) or 'no other GRES'} would become {_list(now) or 'none'}")


_Pairs = list[tuple[SlurmDevice, SlurmDevice]]


def _paired(before: tuple[SlurmDevice, ...], after: tuple[SlurmDevice, ...]) -> _Pairs | None:
    """Each device with what becomes of it, in the order of before; None where devices are lost or new.

    One whose files are part of another's is that one, with fewer files named. Without files, as AutoDetect has them, a
    device is told by its place and type.
    """
    left = list(after)
    pairs: _Pairs = []
    if len(before) != len(after):
        return None
    for device in before:
        found = next((d for d in left if d.files == device.files and (d.files or d.type == device.type)), None)
        found = found or next((d for d in left if set(device.files) <= set(d.files)), None)
        if found is None:
            return None
        left.remove(found)
        pairs.append((device, found))
    return pairs


def _of_devices(pairs: _Pairs) -> Iterator[_Change]:
    untyped = sorted({now.type or "" for was, now in pairs if was.type is None and now.type})
    if untyped:
        yield _Change(TYPE_ADDED, f"GPUs without a type would get {_list(untyped)}")
    renamed = sorted(
        {(was.type, now.type or "") for was, now in pairs if was.type is not None and was.type != now.type}
    )
    if renamed:
        yield _Change(TYPE_RENAMED, _list(f"the type {old} would become {new}" for old, new in renamed))
    files = [(was, now) for was, now in pairs if was.files and was.files != now.files]
    if files:
        was, now = files[0]
        yield _Change(FILES_ADDED, f"{','.join(was.files)} would become {','.join(now.files)}")
    cores = sorted({was.cores for was, now in pairs if was.cores and _cores(was.cores) != _cores(now.cores)})
    if cores:
        yield _Change(CORES_LEFT_OUT, f"Cores={_list(cores)} would be left out")
    if any(was.links is not None and was.links != now.links for was, now in pairs):
        yield _Change(LINKS_LEFT_OUT, "Links would be left out")


def _cores(text: str | None) -> frozenset[int] | None:
    return None if text is None else core_set(text, 2**16)


def _of_shares(before: SlurmOffer, after: SlurmOffer, pairs: _Pairs) -> Iterator[_Change]:
    was, now = [d.shares for d, _ in pairs], [d.shares for _, d in pairs]
    if was != now or (any(was) and before.sharing != after.sharing):
        old = f"{before.sharing} {_numbers(was)}" if any(was) else "no shares"
        new = f"{after.sharing} {_numbers(now)}" if any(now) else "none"
        yield _Change(SHARES_DIFFER, f"{old} would become {new} (per GPU)")


def _numbers(shares: list[int]) -> str:
    return str(shares[0]) if len(set(shares)) == 1 else ",".join(map(str, shares))


def _others(others: tuple[OtherGres, ...]) -> list[str]:
    kept = (replace(other, files=()) for other in others if other.name != KUBERNETES_CARDS)
    totals: dict[str, int] = {}
    for other in kept:
        label = f"{other.name}:{other.type}" if other.type else other.name
        totals[label] = totals.get(label, 0) + other.count
    return sorted(f"{label}:{count}" for label, count in totals.items())


def _shown(gpus: tuple[SlurmDevice, ...]) -> str:
    """The devices by type: how many, and the first one's files."""
    kinds: dict[str, list[SlurmDevice]] = {}
    for gpu in gpus:
        kinds.setdefault(gpu.type or "untyped", []).append(gpu)
    return _list(f"{len(of)} {kind} ({','.join(of[0].files) or 'no file'} ...)" for kind, of in kinds.items()) or "none"


def _list(words: Iterable[str]) -> str:
    return "; ".join(words)
