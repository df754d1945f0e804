"""Lists that a blank cuts in two: how they were meant. Slurm's parser ends a value at the first blank."""

from __future__ import annotations

from collections.abc import Sequence

from hybridgpu.files.slurmlines import Pair

_LISTS = frozenset(
    (
        *("prologflags", "grestypes", "taskplugin", "taskpluginparam", "debugflags", "slurmctldparameters"),
        *("slurmdparameters", "schedulerparameters", "selecttypeparameters", "launchparameters", "jobsubmitplugins"),
        *("accountingstoragetres", "accountingstorageenforce", "priorityweighttres", "tresbillingweights"),
        *("preemptmode", "privatedata", "priorityflags", "suspendexcnodes", "suspendexcparts", "suspendexcstates"),
        *("nodename", "nodes", "gres", "feature", "features", "allowgroups", "allowaccounts", "allowqos"),
        *("file", "files", "multiplefiles", "flags", "cores", "cpus", "links"),
    )
)
"""Keys, in lower case, whose values are lists between commas."""


def as_list(pairs: Sequence[Pair], rest: str) -> str:
    """A hint about the text behind these pairs: one list with the last of them; empty where it is no list."""
    if not pairs or "=" in rest.split(" ")[0]:
        return ""
    last = pairs[-1]
    if last.key.lower() not in _LISTS and not (last.value.endswith(",") or rest.startswith(",")):
        return ""
    words = [word.strip(",") for word in (last.value, *rest.split())]
    more = next((at for at, word in enumerate(words) if "=" in word and at), len(words))
    return f"write {last.key}={','.join(word for word in words[:more] if word)}, without a blank"
