"""The measured tables as rows, and the node they were measured on."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

from hybridgpu.consumers.kubernetes import Node, node_of
from hybridgpu.model.catalogue import NotFound, find
from hybridgpu.model.gpu import GpuModel

DATA = Path(__file__).parents[2] / "data"


def model(name: str) -> GpuModel:
    found = find(name)
    assert not isinstance(found, NotFound)
    return found


A100 = model("A100-SXM4-40GB")
FOUR_A100 = node_of(A100, 4)
"""What NVIDIA's programs were run over: a simulated NVML with four cards, MIG off."""


@cache
def rows(table: str) -> list[dict[str, Any]]:
    """The rows of `oracle-TABLE.yaml`."""
    found: list[dict[str, Any]] = yaml.safe_load((DATA / f"oracle-{table}.yaml").read_text(encoding="utf-8"))
    assert len(found) > 30
    return found


def named(row: dict[str, Any]) -> str:
    return str(row["id"])


def cut(*layouts: tuple[str, ...] | None) -> Node:
    """A node of A100s: one layout a card, None for a card with MIG off."""
    return node_of(A100, len(layouts), {i: layout for i, layout in enumerate(layouts) if layout is not None})
