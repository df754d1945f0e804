"""The `slurm:` block of a class or node entry: keys and values that go on a NodeName line of slurm.conf as they are.

Whatever could end the line, begin another key or take a name that hybridgpu writes itself is refused here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping as Table
from dataclasses import dataclass

from hybridgpu.consumers.slurm.nodegres import SHARED
from hybridgpu.consumers.slurm.release import RELEASES, Release, history
from hybridgpu.consumers.slurm.values import multiplier
from hybridgpu.files.quoting import listed, shown
from hybridgpu.files.yamltree import Mapping, Scalar
from hybridgpu.inventory.clean import nearest_short
from hybridgpu.inventory.hosts import HostlistError, expand
from hybridgpu.inventory.report import Report
from hybridgpu.model.finding import Rule, Severity
from hybridgpu.model.naming import gres_id
from hybridgpu.model.site import KUBERNETES_CARDS

OUR_GRES = ("gpu", *SHARED, KUBERNETES_CARDS)
"""The GRES names that hybridgpu alone writes."""

_SOURCE = "S:src/common/read_config.c _parse_nodename"


def _rule(name: str, what_happens: str, fix: str, source: str = _SOURCE) -> Rule:
    return Rule(name, Severity.ERROR, what_happens, fix, source)


UNKNOWN = _rule("inventory-unknown-node-key", "slurmctld and slurmd do not start.", "Use a key of slurm.conf(5).")
OURS = _rule(
    "inventory-node-key-is-ours",
    "hybridgpu writes this key itself, from hosts, sharing and what it sees.",
    "Remove the key.",
    "hybridgpu",
)
NOT_A_NUMBER = _rule(
    "inventory-node-key-not-a-number",
    "Slurm refuses the line, or reads another number: 012 is octal there.",
    "Write a whole number in decimal digits.",
    "S:src/common/parse_value.c s_p_handle_uint16",
)
TWICE = _rule(
    "inventory-node-key-twice",
    "Slurm takes the last one; case and old names do not make another key.",
    "Keep one of them.",
)
BAD_GRES = _rule(
    "inventory-bad-gres",
    "slurmctld refuses the line, or takes a name that hybridgpu writes itself.",
    "Write NAME:COUNT or NAME:TYPE:COUNT, with a NAME from slurm.site.gresTypes.",
    "S:src/interfaces/gres.c",
)
UNPAIRED = _rule(
    "inventory-addresses-unpaired",
    "Addresses and hosts are paired by position; slurmctld does not start if the numbers differ.",
    "Give as many as there are hosts (one Port may stand for all).",
    "S:src/common/node_conf.c config_record",
)

ADDRESS_KEYS = ("NodeAddr", "NodeHostname", "Port", "BcastAddr")
"""Keys that are hostlists, paired with the hosts."""

_ALIASES = {"procs": "CPUs", "feature": "Features"}
_REFUSED = ("NodeName", "State")
_NUMBERS = {
    **dict.fromkeys(
        ("Boards", "CoreSpecCount", "CoresPerSocket", "CPUs", "RestrictedCoresPerGPU", "Sockets", "SocketsPerBoard"),
        2**16,
    ),
    "ThreadsPerCore": 2**16,
    "TmpDisk": 2**32,
    "Weight": 2**32,
    "MemSpecLimit": 2**63,
    "RealMemory": 2**63,
}
_MOST_UNITS = 2**63 - 2
"""What strtoll reads and no multiplication overflows; one more is refused (S:src/interfaces/gres.c _get_gres_cnt)."""

_GRES = re.compile(
    r"([A-Za-z]\w*)((?::(?!no_consume:)[A-Za-z0-9_.+-]+)?)(?::no_consume)?:([1-9][0-9]*)([KMGTP]?)", re.ASCII
)


@dataclass(frozen=True, slots=True)
class NodeKeys:
    """A block's keys by their names in slurm.conf(5), in the order written, each with its value's place.

    `broken`: keys or values are missing, since they were reported.
    """

    values: Table[str, Scalar]
    broken: bool = False

    def over(self, other: NodeKeys) -> NodeKeys:
        """These keys laid over another block's: where both have a key, this one's value holds."""
        return NodeKeys({**other.values, **self.values}, self.broken or other.broken)

    @property
    def parameters(self) -> tuple[tuple[str, str], ...]:
        """All but Gres and the keys that are paired with hosts."""
        rest = {"Gres", *ADDRESS_KEYS}
        return tuple((key, value.text) for key, value in self.values.items() if key not in rest)

    @property
    def gres(self) -> str:
        """The site's own part of Gres=."""
        return self.values["Gres"].text if "Gres" in self.values else ""


def read_keys(block: Mapping | None, release: Release, gres_types: tuple[str, ...], report: Report) -> NodeKeys:
    """The keys of a `slurm:` block that are right; the others are reported. `gres_types` are the site's own."""
    values: dict[str, Scalar] = {}
    for word, value in block.entries if block else ():
        key = _canonical(word, release, report)
        if key is None or not isinstance(value, Scalar):
            continue
        if key in values:
            report.add(
                TWICE, word, f"{shown(word.text)} is {key}, which stands here already", related=((values[key], key),)
            )
        elif key in _NUMBERS and not _is_number(value.text, _NUMBERS[key]):
            allowed = f"a whole number from 0 to {_NUMBERS[key] - 1}"
            report.add(
                NOT_A_NUMBER, value, f"{key} {shown(value.text)} is no number that Slurm takes; allowed: {allowed}"
            )
        elif key != "Gres" or _gres_is_right(value, gres_types, report):
            values[key] = value
    return NodeKeys(values, broken=len(values) < len(block.entries if block else ()))


def pair(keys: NodeKeys, hosts: tuple[str, ...], report: Report) -> dict[str, tuple[str, ...]]:
    """NodeAddr, NodeHostname, Port and BcastAddr, one value a host; what cannot be paired is reported.

    One address for several hosts means several slurmd on one machine: so it is taken only with a port each.
    """
    paired: dict[str, tuple[str, ...]] = {}
    for key in sorted(ADDRESS_KEYS, key=lambda key: key != "Port"):
        value = keys.values.get(key)
        if value is None:
            continue
        try:
            every = expand(_bracketed(value.text) if key == "Port" else value.text)
        except HostlistError as error:
            report.add(UNPAIRED, value, f"{key} {shown(value.text)} is no list: {error}", "Write it as a hostlist.")
            continue
        if key == "Port" and not all(_is_number(port, 2**16) and port != "0" for port in every):
            report.add(NOT_A_NUMBER, value, f"Port {shown(value.text)} is no port; allowed: numbers from 1 to 65535")
        elif len(every) == len(hosts):
            paired[key] = every
        elif len(every) == 1 and (key == "Port" or len(set(paired.get("Port", ()))) == len(hosts)):
            paired[key] = every * len(hosts)
        else:
            report.add(UNPAIRED, value, f"{key} {shown(value.text)} has {len(every)} values for {len(hosts)} hosts")
    return {key: paired[key] for key in ADDRESS_KEYS if key in paired}


def is_gres_entry(token: str) -> bool:
    """Whether an entry of Gres= is one that a `slurm:` block takes, its name apart."""
    return _GRES.fullmatch(token) is not None


def is_reserved(name: str) -> bool:
    """Whether a GRES name is one that hybridgpu alone writes, or the same to Slurm as one of those."""
    return any(name.lower() == ours or gres_id(name) == gres_id(ours) for ours in OUR_GRES)


def _canonical(word: Scalar, release: Release, report: Report) -> str | None:
    """The key as slurm.conf(5) spells it, or None if it is refused, which is reported."""
    lower = word.text.lower()
    every = {key.lower(): key for record in RELEASES.values() for key in record.node_keys}
    key = _ALIASES.get(lower) or every.get(lower)
    allowed = tuple(sorted(release.node_keys - set(_REFUSED)))
    if key in _REFUSED:
        report.add(OURS, word, f"{key} is not allowed here: hybridgpu writes it")
        return None
    if key is None:
        right = nearest_short(word.text, allowed)
        hint = f"Did you mean {right}?" if right else ""
        report.add(UNKNOWN, word, f"Slurm knows no NodeName key {shown(word.text)}; allowed: {listed(allowed)}", hint)
        return None
    if past := history(key, release, lambda record: record.node_keys):
        report.add(UNKNOWN, word, f"Slurm {release} knows no NodeName key {key}: it {past}")
        return None
    return key


def _gres_is_right(value: Scalar, gres_types: tuple[str, ...], report: Report) -> bool:
    for token in value.text.split(","):
        match = _GRES.fullmatch(token)
        if not match:
            report.add(
                BAD_GRES, value, f"Gres {shown(token)} is not understood; allowed: NAME:COUNT or NAME:TYPE:COUNT"
            )
            return False
        name = match[1]
        if len(match[3]) > 19 or int(match[3]) * (multiplier(match[4]) or 1) > _MOST_UNITS:
            message = f"Gres {shown(token)} is more than Slurm counts; allowed: at most {_MOST_UNITS}"
            report.add(BAD_GRES, value, message)
            return False
        if name.lower() in OUR_GRES:
            report.add(BAD_GRES, value, f"Gres {shown(token)}: hybridgpu writes {name} itself", "Leave it out.")
            return False
        if name not in gres_types:
            message = f"Gres {shown(token)}: {name} is not in slurm.site.gresTypes ({listed(gres_types) or 'empty'})"
            right = nearest_short(name, gres_types)
            report.add(BAD_GRES, value, message, f"Did you mean {right}?" if right else "")
            return False
    return True


def _is_number(text: str, below: int) -> bool:
    return re.fullmatch(r"0|[1-9][0-9]{0,18}", text) is not None and int(text) < below


def _bracketed(text: str) -> str:
    """Slurm reads `Port=7000-7003` as `[7000-7003]` (S:src/common/node_conf.c)."""
    return f"[{text}]" if "[" not in text and re.search("[-,]", text) else text
