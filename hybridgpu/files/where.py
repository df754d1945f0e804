"""From a line and column of a config's text to a place in the file that holds it, alone or as a block."""

from __future__ import annotations

from collections.abc import Callable

from hybridgpu.model.finding import Place

Where = Callable[[int, int], Place]
"""Line and column of the text, from 1, to the place for a finding."""


def in_file(path: str) -> Where:
    """The text is the whole file."""
    return lambda line, column: Place(path, line, column)


def in_block(path: str, line: int, indent: int) -> Where:
    """The text is a YAML block scalar: its first line is the file's `line`, every line is indented by `indent`."""
    return lambda inner, column: Place(path, line + inner - 1, column + indent)
