"""Site to the records of the four Slurm files, equal nodes folded. Records only: the templates make them text.

A pure fold: the same Site gives the same records, so swapping the NodeConfig of one node changes no other node's
lines as slurmd consumes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from hybridgpu.consumers.slurm import RELEASES
from hybridgpu.consumers.slurm.cluster import IMPLY_ALLOC
from hybridgpu.consumers.slurm.nodegres import SHARED
from hybridgpu.model.sharing import Mode, Scheduler
from hybridgpu.model.site import KUBERNETES_CARDS, NodeBody, NodeConfig, Site, SlurmCluster
from hybridgpu.render.gres import gres_lines, gres_value, shares_per_gpu
from hybridgpu.render.hostlist import fold_hosts, fold_paired, fold_ports, sorted_hosts

_ORDER = ("gpu", *SHARED)
_PAIRED = {"NodeAddr": fold_paired, "NodeHostname": fold_paired, "BcastAddr": fold_paired, "Port": fold_ports}


@dataclass(frozen=True, slots=True)
class Setting:
    """One `key=value` of a configuration file."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class GresBlock:
    """The lines that a set of equal nodes has in gres.conf; `lines` lack their NodeName=."""

    nodes: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NodeLine:
    """One NodeName line: `nodes` folded, then `settings` in order, Gres last."""

    nodes: str
    settings: tuple[Setting, ...]


def slurm_nodes(site: Site) -> list[NodeConfig]:
    """The nodes that Slurm knows, in the order of the inventory."""
    return [config for config in site.nodes.values() if config.body.slurm]


def gres_blocks(site: Site) -> Iterator[GresBlock]:
    """gres.conf, a block per distinct set of lines."""
    types = gres_types(site)
    hosts: dict[tuple[str, ...], list[str]] = {}
    lines_of: dict[int, tuple[str, ...]] = {}
    for config in slurm_nodes(site):
        key = id(config.body)
        if key not in lines_of:
            lines_of[key] = gres_lines(config.body, types)
        hosts.setdefault(lines_of[key], []).append(config.name)
    suffix = _suffix(site)
    for lines, names in hosts.items():
        yield GresBlock(fold_hosts(names, suffix=suffix), lines)


def node_lines(site: Site) -> Iterator[NodeLine]:
    """nodes.conf, a line per distinct set of parameters; addresses are paired with the names in their order."""
    folded: dict[tuple[Setting, ...], dict[str, NodeConfig]] = {}
    settings_of: dict[int, tuple[Setting, ...]] = {}
    for config in slurm_nodes(site):
        key = id(config.body)
        if key not in settings_of:
            settings_of[key] = _node_settings(config.body)
        keys = tuple(Setting(name, "") for name, _ in config.addresses)
        folded.setdefault((*keys, *settings_of[key]), {})[config.name] = config
    suffix = _suffix(site)
    for settings, group in folded.items():
        names = sorted_hosts(group, suffix=suffix)
        paired = []
        for position, setting in enumerate(s for s in settings if not s.value):
            values = [group[name].addresses[position][1] for name in names]
            paired.append(Setting(setting.key, _PAIRED[setting.key](values)))
        yield NodeLine(fold_hosts(names, suffix=suffix), (*paired, *(s for s in settings if s.value)))


def _node_settings(body: NodeBody) -> tuple[Setting, ...]:
    parameters = body.slurm.parameters if body.slurm else ()
    return (*(Setting(key, _quoted(value)) for key, value in parameters), Setting("Gres", gres_value(body)))


def _quoted(value: str) -> str:
    return f'"{value}"' if any(c.isspace() for c in value) else value


def gres_types(site: Site) -> tuple[str, ...]:
    """GresTypes: gpu, then what some node shares or what was there before, then the site's, and ours for split nodes.

    The order is Slurm's environment's: mps before shard (run on 22.05, 24.11, 26.05). A name once there stays.
    """
    bodies = slurm_bodies(site)
    wanted = {"gpu", *(shares[0] for body in bodies if (shares := shares_per_gpu(body)))}
    others = [*(site.slurm.site.gres_types if site.slurm else ()), *site.retained.gres_types]
    wanted.update(others)
    last = KUBERNETES_CARDS in wanted or any(body.split for body in bodies)
    return (
        *(name for name in _ORDER if name in wanted),
        *dict.fromkeys(name for name in others if name not in (*_ORDER, KUBERNETES_CARDS)),
        *((KUBERNETES_CARDS,) if last else ()),
    )


def hooks_wanted(site: Site) -> bool:
    """Whether some node needs our prolog, epilog and task prolog."""
    bodies = slurm_bodies(site)
    cut = any(b.slurm and b.sharing.mode is Mode.MIG and b.slurm.autodetect != "nvml" for b in bodies)
    return cut or any(b.sharing.daemons for b in bodies) or set(SHARED) <= set(gres_types(site))


def gpu_settings(site: Site, cluster: SlurmCluster) -> Iterator[Setting]:
    """gpu.conf: what the modes need, merged with what the site has.

    Without Alloc a prolog runs at a job's first step, and on a node without one not at all (slurm.conf.5 PrologFlags).
    """
    types = gres_types(site)
    had = cluster.site
    yield Setting("GresTypes", ",".join(types))
    hooks = cluster.hooks_dir if cluster.hooks_enabled and hooks_wanted(site) else None
    daemons = any(b.sharing.daemons for b in slurm_bodies(site))
    early = IMPLY_ALLOC & {flag.lower() for flag in had.prolog_flags}
    ours = ("Contain",) if daemons else ("Alloc",) if hooks and not early else ()
    if flags := had.prolog_flags + ours:
        yield Setting("PrologFlags", ",".join(_once(flags)))
    yield from _scripts("Prolog", had.prolog, hooks and f"{hooks}/prolog.d/50-hybridgpu")
    yield from _scripts("Epilog", had.epilog, hooks and f"{hooks}/epilog.d/50-hybridgpu")
    if task_prolog := TASK_PROLOG if hooks else had.task_prolog:
        yield Setting("TaskProlog", task_prolog)
    tracked = had.accounting_tres
    if cluster.accounting == "slurmdbd":
        tracked = (*tracked, *(f"gres/{name}" for name in types if name != KUBERNETES_CARDS))
    if tracked:
        yield Setting("AccountingStorageTRES", ",".join(dict.fromkeys(tracked)))


TASK_PROLOG = "/usr/lib/hybridgpu/taskprolog"
"""Our task prolog; Slurm takes one only, so it runs the scripts of TASK_PROLOGS, our own and the site's among them."""

TASK_PROLOGS = "/etc/slurm/taskprolog.d"


def cgroup_settings(site: Site, cluster: SlurmCluster) -> Iterator[Setting]:
    """cgroup.conf: the site's own keys, and ConstrainDevices, without which every job sees every GPU."""
    keys = {key.lower() for key, _ in cluster.site.cgroup}
    yield from (Setting(key, value) for key, value in cluster.site.cgroup)
    if "constraindevices" not in keys and slurm_nodes(site):
        yield Setting("ConstrainDevices", "yes")


def _once(words: Iterable[str]) -> tuple[str, ...]:
    """The words without repetitions; Slurm compares them without case."""
    seen: dict[str, str] = {}
    for word in words:
        seen.setdefault(word.lower(), word)
    return tuple(seen.values())


def _scripts(key: str, had: tuple[str, ...], ours: str | None) -> Iterator[Setting]:
    yield from (Setting(key, path) for path in dict.fromkeys(had))
    # As glob(7), which Slurm expands them by: a `*` stops at a `/`.
    if ours and not any(PurePosixPath(ours).match(pattern) for pattern in had):
        yield Setting(key, ours)


def _suffix(site: Site) -> bool:
    """Whether every Slurm that reads the files takes text behind the last bracket of a hostlist."""
    versions = {config.body.slurm.version for config in slurm_nodes(site) if config.body.slurm}
    return all(RELEASES[version].hostlist_suffix for version in versions)


def slurm_bodies(site: Site) -> list[NodeBody]:
    """The distinct bodies of the nodes that Slurm knows."""
    bodies = {id(config.body): config.body for config in site.nodes.values()}
    return [body for body in bodies.values() if Scheduler.SLURM in body.schedulers]
