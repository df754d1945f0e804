"""Where the values of a YAML file stand: whether a `#` begins a comment, or is part of somebody's value."""

from __future__ import annotations

from collections.abc import Iterator

import yaml

from hybridgpu.files.manifest import documents

Point = tuple[int, int]
"""Line and column, from 1."""


def values_of(text: str) -> Iterator[tuple[Point, Point]]:
    """Where each scalar begins, and the point behind its end, in order; JSON is YAML here.

    Of a document that cannot be read only what stands before the mistake. Never raises.
    """
    for first, document in documents(text):
        try:
            for event in yaml.parse(document, Loader=yaml.CSafeLoader):
                start, end = event.start_mark, event.end_mark
                if isinstance(event, yaml.ScalarEvent) and start and end:
                    yield (start.line + first, start.column + 1), (end.line + first, end.column + 1)
        except yaml.YAMLError:
            continue
