"""Why nobody offers a name, in words, and which name to ask for instead."""

from __future__ import annotations

from collections.abc import Iterable

from hybridgpu.consumers.kubernetes.devicemap import WHOLE
from hybridgpu.consumers.kubernetes.gpunames import MIG, base
from hybridgpu.consumers.kubernetes.names import Names, Source, told
from hybridgpu.consumers.kubernetes.replicated import SHARED
from hybridgpu.model.spelling import nearest


def why_not(name: str, names: Names, among: Iterable[Source] = ()) -> str:
    """One clause: that nobody offers the name, why as far as that is plain, and what is offered."""
    there = frozenset(each for source in among for each in source.names) or names.all
    what = f"offered is {told(there)}"
    if name in names.dropped:
        return f"the device plugin does not honour `rename` to that name: {what}"
    if name + SHARED in there:
        return f"renameByDefault makes it {name}{SHARED}: {what}"
    if name.endswith(SHARED) and base(name) in there:
        return f"no config in force renames it (renameByDefault): {what}"
    if base(name) == WHOLE and any(each.startswith(MIG) for each in there):
        return f"MIG has cut every card: {what}"
    if name.startswith(MIG) and not any(each.startswith(MIG) for each in there):
        return f"MIG devices have names of their own only with migStrategy mixed: {what}"
    if name.startswith(MIG):
        return f"no card is cut into that profile: {what}"
    return f"nobody offers it: {what}"


def instead(name: str, names: Names) -> str:
    """What to write in its place."""
    there = names.all
    for word in (name + SHARED, base(name)):
        if word in there and word != name:
            return f"write {word}"
    if name.startswith(MIG):
        near = nearest(name, there)
        if near is not None and near.startswith(MIG):
            return f"did you mean {near}?"
    return f"write one of the names that are offered: {told(there)}"
