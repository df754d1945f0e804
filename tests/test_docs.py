"""What docs say of files is what the files hold."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from hybridgpu.inventory.jsonschema import json_schema


def keys(value: Any) -> set[str]:  # noqa: ANN401 - any JSON
    if isinstance(value, list):
        return set().union(*map(keys, value)) if value else set()
    return set(value).union(*map(keys, value.values())) if isinstance(value, dict) else set()


def test_every_field_of_a_nodeconfig_is_described() -> None:
    told = set(re.findall(r"`([a-z_A-Z0-9]+)`", Path("docs/nodeconfig.md").read_text()))
    free = {"parameters", "labels", "allocatable", "addresses", "shares_per_gpu"}  # keys in there are others' names
    for path in (
        Path("examples/hybrid/rendered/nodes/gpu041.json"),
        Path("examples/teaching/rendered/nodes/course7.json"),
    ):
        config = json.loads(path.read_text())
        for block in (config, config["slurm"] or {}, config["kubernetes"] or {}):
            for name in free & set(block):
                block[name] = None
        found = keys(config) - {"apiVersion", "kind", "key", "value", "effect"}
        assert found - told == set()


def test_the_schema_of_the_inventory_is_current() -> None:
    path = Path("docs/inventory.schema.json")
    assert json.loads(path.read_text()) == json_schema(), "python -m hybridgpu.inventory.jsonschema > " + str(path)


def test_every_document_that_is_linked_is_there() -> None:
    for page in (Path("README.md"), Path("CONTRIBUTING.md"), *Path("docs").glob("*.md")):
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page}: {target}"
