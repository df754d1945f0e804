"""The inventory's keys as a JSON Schema (2020-12), for editors. Derived from schema.py; lists nothing of its own.

It says what a value may look like. What needs more than the value (hosts named twice, layouts that do not fit) only
`check` knows.
"""

from __future__ import annotations

import json
from typing import Any

from hybridgpu.inventory.schema import INVENTORY
from hybridgpu.inventory.shape import Block, Choice, Either, Flag, Key, ListOf, MapOf, Shape, Text, Whole


def json_schema() -> dict[str, Any]:
    """The schema of a whole inventory."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "hybridgpu inventory",
        **_drawn(INVENTORY),
    }


def _drawn(shape: Shape) -> dict[str, Any]:
    match shape:
        case Text():
            # A plain 24.11 is a number to an editor; hybridgpu reads the text.
            return {"type": ["string", "number"], "pattern": f"^(?:{shape.pattern})$", "maxLength": shape.longest}
        case Choice():
            return {"enum": [*shape.words, *([False] if "off" in shape.words else [])]}
        case Flag():
            return {"type": "boolean"}
        case Whole():
            return {"type": "integer", "minimum": shape.least, "maximum": shape.most}
        case ListOf():
            return {"type": "array", "items": _drawn(shape.item), "minItems": shape.least}
        case MapOf():
            names = {"pattern": f"^(?:{shape.key.pattern})$"}
            least = {"minProperties": shape.least}
            return {"type": "object", "propertyNames": names, "additionalProperties": _drawn(shape.value), **least}
        case Either():
            return {"oneOf": [_drawn(shape.scalar), _drawn(shape.other)]}
        case Block():
            return _block(shape)


def _block(shape: Block) -> dict[str, Any]:
    drawn: dict[str, Any] = {
        "type": "object",
        "additionalProperties": False,
        "properties": {key.name: {"description": key.about, **_drawn(key.shape)} for key in shape.keys},
        "required": [key.name for key in shape.keys if key.required and not key.words],
    }
    discriminator = shape.key(shape.by) if shape.by else None
    if discriminator and isinstance(discriminator.shape, Choice):
        drawn["allOf"] = [_variant(shape, word) for word in discriminator.shape.words]
    return drawn


def _variant(shape: Block, word: str) -> dict[str, Any]:
    """What holds where the discriminator has this value."""

    def here(key: Key) -> bool:
        return not key.words or word in key.words

    return {
        "if": {"properties": {shape.by: {"const": word}}, "required": [shape.by]},
        "then": {
            "properties": {key.name: False for key in shape.keys if not here(key)},
            "required": [key.name for key in shape.keys if key.required and key.words and here(key)],
        },
    }


if __name__ == "__main__":
    print(json.dumps(json_schema(), indent=2))
