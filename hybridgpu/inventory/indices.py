"""Sets of GPU indices as people write them (`0-3,6`) and back. A GPU index is the PCI order, nvidia-smi's index."""

from __future__ import annotations

import re
from collections.abc import Iterable

_RANGE = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?", re.ASCII)


class IndexSetError(ValueError):
    """A set that names no GPUs of the node; the text says why, and what is allowed."""


def read_indices(text: str, gpus: int) -> tuple[int, ...]:
    """The indices, ascending, of a node that has `gpus` GPUs. Raises IndexSetError."""
    found: set[int] = set()
    for span in text.split(","):
        match = _RANGE.fullmatch(span)
        if not match:
            raise IndexSetError(f"{text!r} is no set of GPU indices; allowed: numbers and ranges, as 0-3,6")
        low, high = int(match[1]), int(match[2] or match[1])
        if low > high:
            raise IndexSetError(f"the range {span} in {text!r} runs backwards; allowed: {high}-{low}")
        if high >= gpus:
            raise IndexSetError(f"{text!r} names GPU {high}; the node's GPUs are {whole(gpus)}")
        if twice := found.intersection(range(low, high + 1)):
            raise IndexSetError(f"{text!r} names GPU {shown_indices(twice)} twice")
        found.update(range(low, high + 1))
    return tuple(sorted(found))


def whole(gpus: int) -> str:
    """All indices of a node with this many GPUs: `0-7`."""
    return shown_indices(range(gpus))


def shown_indices(indices: Iterable[int]) -> str:
    """`0-3,6`."""
    spans: list[list[int]] = []
    for index in sorted(indices):
        if spans and spans[-1][1] == index - 1:
            spans[-1][1] = index
        else:
            spans.append([index, index])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)
