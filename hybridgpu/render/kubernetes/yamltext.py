"""Data to YAML that every reader takes alike: YAML 1.1, YAML 1.2 and Go's own mixture.

Strings that any of them might take for a number, a bool or a null are quoted: a hash such as 12345e6789 is a number to
Go (sigs.k8s.io/yaml), and a label value must be a string.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*(?: [A-Za-z0-9_./-]+)*")
_WORDS = frozenset(["y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"])


class Literal(str):
    """Text that is written as a block, line by line."""


class _Dumper(yaml.SafeDumper):
    """Quotes what is not plainly a word."""

    def ignore_aliases(self, data: object) -> bool:
        del data
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        del indentless
        super().increase_indent(flow, False)


def _string(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')


def _literal(dumper: yaml.SafeDumper, text: Literal) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style="|")


_Dumper.add_representer(str, _string)
_Dumper.add_representer(Literal, _literal)


def dump(data: Any) -> str:  # noqa: ANN401 - any tree of dicts, lists and scalars
    """The data as one YAML document, keys in the order given, nothing folded."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, default_flow_style=False, width=2**16, allow_unicode=False)


def documents(notes: list[str], objects: list[dict[str, Any]]) -> bytes:
    """Several documents below their notes."""
    return document(notes, objects[0]) + b"".join(b"---\n" + dump(data).encode() for data in objects[1:])


def document(notes: list[str], data: Any) -> bytes:  # noqa: ANN401 - as above
    """The document below its notes, as comments."""
    return "".join(f"# {note}\n" for note in notes).encode() + dump(data).encode()
