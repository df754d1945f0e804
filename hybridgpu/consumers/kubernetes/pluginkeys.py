"""Keys of a device-plugin config that nobody reads: misplaced, misspelt, or unknown. What known keys do is not judged.

Source: k8s-device-plugin v0.20.0 api/config/v1; sigs.k8s.io/yaml convertToJSONableObject for keys one level too deep.
"""

from __future__ import annotations

from collections.abc import Iterator

from hybridgpu.consumers.kubernetes.pluginconfig import CONFIG, Reading
from hybridgpu.consumers.kubernetes.pluginrules import MISPLACED, MISSPELT, UNKNOWN_KEY
from hybridgpu.consumers.kubernetes.replicated import ENTRY_KEYS, SHARING_KEYS, Replicated, written
from hybridgpu.files.gojson import Struct, fold
from hybridgpu.files.gotree import GoKey
from hybridgpu.files.quoting import listed, shown
from hybridgpu.files.where import Where
from hybridgpu.model.finding import Finding
from hybridgpu.model.spelling import nearest

_ENTRIES = "resources[]"


def _paths(struct: Struct, at: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, found in struct.fields.items():
        yield (*at, name)
        if isinstance(found.type, Struct):
            yield from _paths(found.type, (*at, name))


_BLOCKS = (("sharing", "timeSlicing"), ("sharing", "mps"))
KNOWN: tuple[tuple[str, ...], ...] = (
    *_paths(CONFIG),
    *((*block, key) for block in _BLOCKS for key in SHARING_KEYS),
    *((*block, _ENTRIES, key) for block in _BLOCKS for key in ENTRY_KEYS),
)
"""Every key that is read, by its path."""


def judge_keys(reading: Reading, where: Where) -> Iterator[Finding]:
    """A finding for each key that has no effect."""
    allocated = {id(key): name for key, name in reading.decoded.allocated}
    for path, key, _ in reading.decoded.unknown:
        at = tuple(part for part in path if part != "CommandLineFlags")
        yield _finding(at, key, where, allocated.get(id(key)))
    sharing = reading.decoded.values.get("sharing", {})
    for name in ("timeSlicing", "mps"):
        block = sharing.get(name)
        if isinstance(block, Replicated):
            for key in written(block.node, SHARING_KEYS):
                yield _finding(("sharing", name), key, where)
            for entry in block.entries:
                for key in written(entry.node, ENTRY_KEYS):
                    yield _finding(("sharing", name, _ENTRIES), key, where)


def _finding(at: tuple[str, ...], key: GoKey, where: Where, zeroed: str | None = None) -> Finding:
    place = where(key.line, key.column)
    here = f"under {'.'.join(at)}" if at else "at the top level"
    homes = [path for path in KNOWN if fold(path[-1]) == fold(key.name)]
    allowed = tuple(path[-1] for path in KNOWN if path[:-1] == at)
    message = f"the key {shown(key.name)} {here} is not read by any program"
    if zeroed:
        message += f"; instead it sets flags.{zeroed} to its empty value"
    same = nearest(key.name, allowed)
    if homes and not (same and fold(same) == fold(key.name)):
        home = " or ".join(dict.fromkeys(".".join(path[:-1]) or "the top level" for path in homes))
        return Finding(MISPLACED, place, message, f"{key.name} belongs under {home}: check the indentation")
    if same:
        return Finding(MISSPELT, place, message, f"did you mean {same}?")
    return Finding(UNKNOWN_KEY, place, message, f"the keys here are {listed(allowed)}")
