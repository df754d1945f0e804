"""A rendered tree as those read it who apply it: the documents below `kubernetes/`, and what others left for tests.

Imports nothing of hybridgpu: the tree is what the command line wrote.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.conftest import lacking
from tests.slurm.inventories import Case

OF_OTHERS = Path(__file__).parents[2].parent / "shared" / "data"
"""Files of NVIDIA's that tests read and that are not ours to ship; they lie beside the checkout."""

CHART_VALUES = "nvidia-device-plugin-0.20.0-values.yaml"
OPERATOR_VALUES = "gpu-operator-values.yaml"
CLUSTER_POLICY_CRD = "nvidia.com_clusterpolicies.yaml"


def of_others(name: str) -> dict[str, Any]:
    """The one document of a file beside the checkout; the test is skipped where it is not there."""
    path = OF_OTHERS / name
    if not path.is_file():
        lacking(f"needs {name} in ../{OF_OTHERS.relative_to(OF_OTHERS.parents[1])} of the checkout")
    found: list[dict[str, Any]] = [each for each in _documents(path) if each]
    assert len(found) == 1
    return found[0]


def rendered(case: Case, to: Path) -> Path:
    """Render the inventory, with its facts, to `to`, over what is there; gives the folder `kubernetes` in it."""
    to.mkdir(exist_ok=True)
    source, facts = to.parent / "inventory.yaml", to.parent / "facts"
    source.write_text(yaml.safe_dump(case.inventory, sort_keys=False), encoding="utf-8")
    facts.mkdir(exist_ok=True)
    for old in facts.iterdir():
        old.unlink()
    for node, content in case.facts.items():
        (facts / f"{node}.json").write_text(json.dumps(content), encoding="utf-8")
    argv = [sys.executable, "-m", "hybridgpu", "render", str(source), "--facts", str(facts), "--to", str(to)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return to / "kubernetes"


def documents(folder: Path) -> Iterator[tuple[str, Any]]:
    """Every YAML document below `folder`, with its file's name."""
    for path in sorted(folder.rglob("*.yaml")):
        for document in _documents(path):
            yield path.name, document


def _documents(path: Path) -> Iterator[Any]:
    yield from yaml.load_all(path.read_text(encoding="utf-8"), yaml.CSafeLoader)


def objects(folder: Path) -> list[dict[str, Any]]:
    """What `kubectl apply` would take: every document with a kind, lists in their parts."""
    found: list[dict[str, Any]] = []
    for _, document in documents(folder):
        if "kind" in document:
            found += document["items"] if document["kind"].endswith("List") else [document]
    return found


def keys(value: object) -> Iterator[str]:
    """Every key in a tree of maps and lists, at any depth."""
    if isinstance(value, Mapping):
        yield from map(str, value)
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from keys(each)
