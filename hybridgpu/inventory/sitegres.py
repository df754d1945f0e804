"""The raw lines of `slurm.site.gres`: they go into gres.conf as they are, so none may touch what hybridgpu writes."""

from __future__ import annotations

from collections.abc import Collection

from hybridgpu.files.quoting import listed, shown
from hybridgpu.files.slurmlines import SlurmLine, read
from hybridgpu.files.yamltree import Scalar
from hybridgpu.inventory.clean import nearest_short
from hybridgpu.inventory.hostindex import HostIndex
from hybridgpu.inventory.hosts import HostlistError
from hybridgpu.inventory.nodekeys import OUR_GRES
from hybridgpu.inventory.report import Report
from hybridgpu.model.finding import Rule, Severity

RAW_LINE = Rule(
    "inventory-bad-gres-line",
    Severity.ERROR,
    "slurmd would refuse the line, ignore it, or take it for one of hybridgpu's.",
    "Write `Name=NAME ...` or `NodeName=HOSTS Name=NAME ...`, with a NAME from slurm.site.gresTypes.",
    "S:src/interfaces/gres.c _gres_options, _parse_gres_conf_locked",
)

_SHOWN = 5


def judge_line(line: Scalar, gres_types: Collection[str], hosts: HostIndex, report: Report) -> bool:
    """Reports whether one raw line may stand there at all, and gives that. `hosts` are the inventory's nodes in Slurm.

    What Slurm makes of a line that may is judged with the other files (slurmfiles).
    """
    wrong = _wrong(line.text, tuple(gres_types), hosts)
    if wrong:
        message, hint = wrong
        report.add(RAW_LINE, line, f"site.gres {shown(line.text)}: {message}", hint)
    return not wrong


def _wrong(text: str, gres_types: tuple[str, ...], hosts: HostIndex) -> tuple[str, str] | None:
    parsed = read("", {"": text}.__getitem__)
    if parsed.includes:
        return "an Include brings lines that cannot be judged here", "Write the lines themselves."
    if len(parsed.lines) != 1 or not parsed.lines[0].pairs or parsed.lines[0].rest:
        return "this is no line of gres.conf; allowed: KEY=VALUE pairs", ""
    pairs = parsed.lines[0].pairs
    if pairs[0].key.lower() not in ("name", "nodename"):
        return f"a line cannot begin with {pairs[0].key} here; allowed: Name, NodeName", ""
    if parsed.lines[0].get("autodetect"):
        return "AutoDetect is set by slurm.autoDetect", "Leave AutoDetect out."
    return _wrong_name(parsed.lines[0], gres_types, hosts)


def _wrong_name(line: SlurmLine, gres_types: tuple[str, ...], hosts: HostIndex) -> tuple[str, str] | None:
    name, nodes = line.get("name"), line.get("nodename")
    if name is None:
        return "there is no Name=", ""
    if name.value.lower() in OUR_GRES:
        return _touches_ours(name.value, nodes.value if nodes else None, hosts)
    if name.value not in gres_types:
        right = nearest_short(name.value, gres_types)
        message = f"{name.value} is not in slurm.site.gresTypes ({listed(gres_types) or 'empty'})"
        return message, f"Did you mean {right}?" if right else "Add it there."
    return None


def _touches_ours(name: str, nodes: str | None, hosts: HostIndex) -> tuple[str, str] | None:
    """Lines with our names are for nodes outside the inventory alone."""
    if nodes is None:
        return (
            f"hybridgpu writes {name} itself",
            "Give NodeName= with nodes outside the inventory, or leave the line out.",
        )
    try:
        ours = hosts.named_by(nodes, _SHOWN + 1)
    except HostlistError as error:
        return f"NodeName {shown(nodes)}: {error}", ""
    if not ours:
        return None
    names = ", ".join(ours[:_SHOWN]) + (" and more" if len(ours) > _SHOWN else "")
    return f"hybridgpu writes {name} of {names} itself", "Leave those nodes out of the line."
