"""Which files there are and what kind each is. Told by content; Slurm's by their names where the content tells nothing.

Reads only their beginnings.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

_HEAD = 65536
_INVENTORY = re.compile(rb"""^["'{ ]{0,2}nodeClasses?["']?[ \t]*:""", re.MULTILINE)
"""A key that only an inventory has: one whose head is missing is still one."""
_KIND = re.compile(rb"""^[{ \t]*["']?kind["']?[ \t]*:[ \t]*["']?(\w+)|["']kind["']\s*:\s*["'](\w+)["']""", re.MULTILINE)
_NODE = re.compile(rb'"node"\s*:\s*"([A-Za-z0-9._-]+)"')
_WRITTEN_BY_US = ("NodeConfig", "DeviceMap")
_OURS = re.compile(rb"""apiVersion["']?[ \t]*:[ \t]*["']?hybridgpu/""")
_OBJECT = re.compile(
    rb"""^["']?(?:apiVersion|kind)["']?[ \t]*:|^[ \t]*[\[{]?[ \t]*"(?:apiVersion|kind)"[ \t]*:""", re.MULTILINE
)
_TEMPLATE = re.compile(rb"^[ \t]*\{\{|^[^#\n]*:[ \t]*\{\{", re.MULTILINE)
_TOP = re.compile(
    rb"""^\{?["']?([A-Za-z][A-Za-z0-9_.-]*)["']?[ \t]*:|^[ \t]{1,4}"([A-Za-z][A-Za-z0-9_.-]*)"[ \t]*:""", re.M
)

_CONF_KEY = re.compile(rb"^[ \t]*([A-Za-z][A-Za-z0-9_]*)[ \t]*=", re.MULTILINE)
_GRES_LINE = re.compile(
    rb"^[ \t]*AutoDetect[ \t]*=|^[ \t]*NodeName[ \t]*=.*[ \t](?:Name|AutoDetect)[ \t]*="
    rb"|^[ \t]*Name[ \t]*=[ \t]*(?:\"?(?:gpu|mps|shard)\b"
    rb"|.*[ \t](?:Type|Files?|MultipleFiles|Count|Cores|CPUs|Flags|Links?)[ \t]*=)",
    re.M | re.I,
)
_FIRST = re.compile(rb"^[ \t]*[^#\s].*$", re.MULTILINE)
_NOT_SLURM = re.compile(rb"""[ \t]*(?:---|-[ \t]|[\[{<%]|["']?[A-Za-z_][\w .-]*["']?[ \t]*:(?:[ \t\r]|$))""")
"""How YAML, JSON, XML, ini files and templates begin: a line of Slurm's is Key=value, or Include."""
_SLURM_KEYS = frozenset(
    b"clustername nodename partitionname grestypes slurmctldhost controlmachine prologflags taskplugin selecttype "
    b"proctracktype taskprolog prolog epilog nodeset slurmdspooldir statesavelocation accountingstoragetype "
    b"accountingstoragetres slurmuser authtype schedulertype selecttypeparameters".split()
)
_CGROUP_KEYS = frozenset(
    b"constraindevices constrainramspace constraincores constrainswapspace constrainkmemspace cgroupplugin "
    b"cgroupmountpoint cgroupautomount allowedramspace allowedswapspace allowedkmemspace "
    b"enablecontrollers ignoresystemd systemdtimeout maxrampercent maxswappercent taskaffinity "
    b"minramspace memoryswappiness".split()
)
_CONTAINER_KEYS = frozenset(
    b"autobasepath basepath dirs initscript clonensscript clonensepilog entirestepinns shared".split()
)

_PLUGIN_KEYS = {b"sharing", b"timeSlicing", b"flags", b"imex"}
_OPERATOR_KEYS = frozenset(
    b"devicePlugin migManager toolkit dcgm dcgmExporter gfd nfd mig driver operator daemonsets validator "
    b"nodeStatusExporter vgpuManager sandboxWorkloads cdi gds".split()
)
_CHART_KEYS = frozenset(
    b"migStrategy deviceListStrategy deviceIDStrategy failOnInitError gfd nfd nvidiaDriverRoot "
    b"deviceDiscoveryStrategy compatWithCPUManager runtimeClassName mps config selectorLabelsOverride "
    b"sharedDevicesAllocationPolicy passDeviceSpecs".split()
)
_PARTS = frozenset((b"gpu-operator", b"nvidia-device-plugin"))
"""NVIDIA's charts as parts of an umbrella chart: its values have them by their names."""
_FEW = 2


class Kind(Enum):
    """What `check` knows how to judge, and what it knows to be something else."""

    INVENTORY = "inventory"
    FACTS = "facts"
    SLURM_CONF = "slurm.conf, or a part of it"
    GRES_CONF = "gres.conf"
    CGROUP_CONF = "cgroup.conf"
    CONTAINER_CONF = "job_container.conf"
    MANIFEST = "Kubernetes objects"
    MIG_PARTED = "a mig-parted file"
    PLUGIN_CONFIG = "a device-plugin config"
    HELM_VALUES = "Helm values"
    OURS = "written by hybridgpu"
    UNREADABLE = "unreadable"
    UNKNOWN = "unknown"


SLURM = frozenset((Kind.SLURM_CONF, Kind.GRES_CONF, Kind.CGROUP_CONF, Kind.CONTAINER_CONF))
SLURM_NAMES = {
    "slurm.conf": Kind.SLURM_CONF,
    "gres.conf": Kind.GRES_CONF,
    "cgroup.conf": Kind.CGROUP_CONF,
    "job_container.conf": Kind.CONTAINER_CONF,
}
"""The names that Slurm's daemons look for: one of these may hold comments only, or mistakes only, and of a file and a
link to it the one so called counts."""

KUBERNETES = frozenset((Kind.MANIFEST, Kind.MIG_PARTED, Kind.PLUGIN_CONFIG, Kind.HELM_VALUES))


@dataclass(frozen=True, slots=True)
class Input:
    """One file that was given. `root`: the folder that was named and in which it was found; "" where it was named.

    `node`: the node that facts say they are of. `why`: what hinders reading, for UNREADABLE.
    """

    path: str
    kind: Kind
    node: str = ""
    why: str = ""
    root: str = ""


def inputs(path: str) -> Iterator[Input]:
    """The file at `path`, or every file below that folder, of whatever kind, in the order of their names.

    Raises FileNotFoundError where there is nothing at `path`.
    """
    if not Path(path).is_dir():
        if path.endswith("/"):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        yield _input(path)
        return
    seen: set[tuple[int, int]] = set()
    for directory, below, names in os.walk(path):
        below[:] = sorted(name for name in below if not name.startswith("."))
        for name in sorted(names, key=lambda name: (name not in SLURM_NAMES, name)):
            file = Path(directory, name)
            try:
                status = file.stat()
            except OSError:  # a link to nothing
                continue
            same = (status.st_dev, status.st_ino)
            if stat.S_ISREG(status.st_mode) and same not in seen and not name.startswith("."):
                seen.add(same)
                yield _input(str(file), path)


def _input(path: str, root: str = "") -> Input:
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode):
            return Input(path, Kind.UNKNOWN, root=root)
        # What is not ready, as a log of the kernel, must not be waited for.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY), "rb") as file:
            head = file.read(_HEAD)
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        return Input(path, Kind.UNREADABLE, why=error.strerror or str(error), root=root)
    kind = kind_of(head)
    if kind is Kind.UNKNOWN:
        kind = SLURM_NAMES.get(Path(path).name, kind)
    named = _NODE.search(head) if kind is Kind.FACTS else None
    return Input(path, kind, named[1].decode() if named else Path(path).stem, root=root)


def kind_of(head: bytes) -> Kind:
    """The kind of a file that begins with these bytes."""
    found = _KIND.search(head)
    kind = (found[1] or found[2]).decode() if found else None
    if _OURS.search(head) or kind in ("Inventory", "Facts"):
        if kind == "Facts":
            return Kind.FACTS
        # A misspelt kind below our apiVersion is an inventory with a mistake in it.
        return Kind.OURS if kind in _WRITTEN_BY_US else Kind.INVENTORY
    if _TEMPLATE.search(head):
        return Kind.UNKNOWN
    if _OBJECT.search(head):
        return Kind.MANIFEST
    return _of_slurm(head) or _of_yaml(head) or (Kind.INVENTORY if _INVENTORY.search(head) else Kind.UNKNOWN)


def _of_slurm(head: bytes) -> Kind | None:
    first = _FIRST.search(head)
    # A script, as a prolog; a template; YAML in which Slurm's lines are quoted, as an Ansible role has them.
    if head.startswith(b"#!") or (first and _NOT_SLURM.match(first[0])):
        return None
    keys = {key.lower() for key in _CONF_KEY.findall(head)}
    if keys & _SLURM_KEYS - {b"nodename"}:
        return Kind.SLURM_CONF
    if _GRES_LINE.search(head):
        return Kind.GRES_CONF
    if b"nodename" in keys:
        return Kind.SLURM_CONF
    if keys & _CGROUP_KEYS:
        return Kind.CGROUP_CONF
    return Kind.CONTAINER_CONF if keys & _CONTAINER_KEYS else None


def _of_yaml(head: bytes) -> Kind | None:
    keys = {one or other for one, other in _TOP.findall(head)}
    if any(key.replace(b"_", b"-").rstrip(b"s") == b"mig-config" for key in keys):
        return Kind.MIG_PARTED
    if keys & _PARTS:
        return Kind.HELM_VALUES
    if keys & _PLUGIN_KEYS and not keys & _OPERATOR_KEYS:
        return Kind.PLUGIN_CONFIG
    if len(keys & _OPERATOR_KEYS) >= _FEW or keys & (_CHART_KEYS | {b"devicePlugin", b"migManager"}):
        return Kind.HELM_VALUES if keys & _CHART_KEYS or b"devicePlugin" in keys or b"migManager" in keys else None
    return None
