"""What people write where the inventory, or Slurm, has another word: a small table for the nearest right word.

A synonym may stand for several words; the one that is allowed in its place is meant.
"""

from __future__ import annotations

from collections.abc import Collection

_SYNONYMS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("shard", "shards", "shared", "share", "sharing", "slicing", "timeslice", "timeslices"): ("time-slicing",),
    ("timesharing", "vgpu", "oversubscribe", "oversubscription"): ("time-slicing",),
    ("whole", "dedicated", "full", "single", "default"): ("exclusive",),
    ("partition", "partitioned", "multiinstance", "instances", "migmixed"): ("mig", "layout"),
    ("multiprocess", "cudamps"): ("mps",),
    ("none", "no", "off", "false", "disabled", "0"): ("off", "none", "false", "exclusive"),
    ("yes", "on", "true", "enabled", "1"): ("true", "slurmdbd"),
    ("dbd", "slurmdb", "database", "mysql"): ("slurmdbd",),
    ("k8s", "kube", "kubelet"): ("kubernetes",),
    ("slurmd", "slurmctld"): ("slurm",),
    ("helm", "chart", "plugin", "nvidiadeviceplugin"): ("device-plugin",),
    ("operator", "nvidiagpuoperator"): ("gpu-operator",),
    ("host", "node", "nodelist", "names", "nodename"): ("hosts",),
    ("type", "kind", "nodeclass"): ("class",),
    ("classes",): ("nodeClasses",),
    ("count", "number", "gpucount", "numgpus"): ("gpus", "count"),
    ("gpu", "product", "gpumodel", "gputype"): ("model",),
    ("shares", "slices", "copies"): ("replicas",),
    ("profiles", "partitions"): ("layout",),
    ("cores", "corespercpu", "corecount"): ("CoresPerSocket",),
    ("threads", "smt"): ("ThreadsPerCore",),
    ("memory", "mem", "ram"): ("RealMemory",),
    ("ncpus", "vcpus", "processors"): ("CPUs",),
    ("address", "addr", "ip", "ipaddress"): ("NodeAddr",),
    ("disk", "tmp", "scratch"): ("TmpDisk",),
}
_BY_WORD = {word: right for words, right in _SYNONYMS.items() for word in words}


def synonym(word: str, allowed: Collection[str]) -> str | None:
    """The allowed word that this one stands for; None where it is no synonym. Case, `-`, `_` and blanks don't count."""
    plain = "".join(character for character in word.lower() if character not in "-_ ")
    return next((right for right in _BY_WORD.get(plain, ()) if right in allowed), None)
