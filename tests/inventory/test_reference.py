from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hybridgpu.inventory.jsonschema import json_schema
from hybridgpu.inventory.reference import reference
from hybridgpu.inventory.schema import blocks
from hybridgpu.inventory.shape import Choice, Flag, Key, ListOf, Shape, Text, Whole

PAGE = Path(__file__).parents[2] / "docs" / "inventory.md"
KEYS = [(path, key) for path, block in blocks() for key in block.keys]


def test_the_page_is_what_the_schema_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference()


def test_every_key_stands_in_the_page_once_a_block() -> None:
    sections = re.split(r"^## ", reference(), flags=re.MULTILINE)[1:]
    assert len(sections) == len(list(blocks()))
    for section, (_, block) in zip(sections, blocks(), strict=True):
        assert re.findall(r"^\| `(\w+)` ", section, re.MULTILINE) == [key.name for key in block.keys]


def objects(drawn: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - what JSON holds
    """Every object of the JSON Schema that has fixed keys, outer before inner."""
    if isinstance(drawn, dict):
        if drawn.get("additionalProperties") is False:
            yield drawn
        for name, value in drawn.items():
            if name != "allOf":
                yield from objects(value)
    elif isinstance(drawn, list):
        for value in drawn:
            yield from objects(value)


def test_the_json_schema_has_the_same_keys() -> None:
    found = [sorted(drawn["properties"]) for drawn in objects(json_schema())]
    assert sorted(found) == sorted(sorted(key.name for key in block.keys) for _, block in blocks())


def test_a_mode_has_its_own_keys_in_the_json_schema() -> None:
    sharing = next(drawn for drawn in objects(json_schema()) if "replicas" in drawn["properties"])
    variants = {v["if"]["properties"]["mode"]["const"]: v["then"] for v in sharing["allOf"]}
    assert variants["mig"]["required"] == ["layout"]
    assert variants["mig"]["properties"] == {
        "replicas": False, "renameByDefault": False, "failRequestsGreaterThanOne": False,
    }  # fmt: skip
    assert set(variants["exclusive"]["properties"]) == {*variants["mig"]["properties"], "layout", "migStrategy"}


def legal(shape: Shape, word: str) -> bool:
    match shape:
        case Choice():
            return word in shape.words
        case Flag():
            return word in ("true", "false")
        case Whole():
            return shape.least <= int(word) <= shape.most
        case Text():
            return re.fullmatch(shape.pattern, word.strip('"')) is not None
        case ListOf():
            return word == "[]"
        case _:
            return word == "{}"


def test_defaults_and_examples_are_legal() -> None:
    described = {"those whose block exists", "slurm.version", "nvidia-device-plugin, or gpu-operator"}
    bad = [f"{path}.{key.name}: {key.default}" for path, key in KEYS if key.default and not _default_is_legal(key)]
    assert [entry for entry in bad if entry.split(": ", 1)[1] not in described and "driver's name" not in entry] == []
    texts = [key.shape for _, key in KEYS if isinstance(key.shape, Text)]
    assert [text.example for text in texts if not legal(text, text.example)] == []


def _default_is_legal(key: Key) -> bool:
    return legal(key.shape, key.default)
