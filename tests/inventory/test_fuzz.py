"""Damaged inventories, in structure and in bytes: each is read, or refused with file and line, never a traceback."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from hybridgpu.inventory.read import read_inventory
from tests.conftest import soak

CASES = Path(__file__).parent.parent / "data" / "cases"
SEEDS = [path.read_bytes() for path in sorted(CASES.glob("inventory-*/inventory.yaml"))]
PIECE = re.compile(rb"[A-Za-z0-9_.-]+|\s+|[^\sA-Za-z0-9]")
PIECES = [
    *sorted({piece for seed in SEEDS for piece in PIECE.findall(seed)}),
    b"null", b"~", b"''", b"[]", b"{}", b"9" * 20, b"-1", b"\t", b"&a ", b"*a", b"!t ", b"<<", b"\n---\n", b"? ", b"|",
    b">", b"%", b"@", b"\xff", b"\x00", b"\xc3\xa9", b"\xe2\x80\xa8", b"0x10", b"gpu[1-99999999]", b"a" * 300,
]  # fmt: skip


def damaged(text: bytes, chance: random.Random) -> bytes:
    """The text with one piece, byte or line changed, moved, doubled or lost."""
    kind = chance.randrange(4)
    if kind == 0:
        pieces = PIECE.findall(text) or [b""]
        at = chance.randrange(len(pieces))
        pieces[at : at + chance.randrange(2)] = [chance.choice(PIECES)] * chance.randrange(3)
        return b"".join(pieces)
    if kind == 1:
        at = chance.randrange(len(text) + 1)
        return text[:at] + bytes([chance.randrange(256)]) + text[at + chance.randrange(3) :]
    lines = text.split(b"\n")
    line = lines.pop(chance.randrange(len(lines)))
    lines.insert(chance.randrange(len(lines) + 1), line)
    if kind == 2:
        lines.insert(chance.randrange(len(lines) + 1), line)
    return b"\n".join(lines)


@pytest.mark.parametrize("seed", range(8))
def test_a_damaged_inventory_is_read_or_refused_with_its_place(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(soak(250, 25_000)):
        text = chance.choice(SEEDS)
        for _ in range(chance.choice((1, 1, 2, 3, 8))):
            text = damaged(text, chance)
        reading = read_inventory("f.yaml", text)
        assert (reading.inventory is None) == any(finding.is_error for finding in reading.findings), text
        lines = len(text.decode(errors="replace").splitlines()) + 1
        for finding in reading.findings:
            assert finding.place, text
            assert finding.place.file == "f.yaml"
            assert 1 <= finding.place.line <= lines, text
            assert finding.message, text
            assert finding.message.isprintable(), text
        assert len(set(reading.findings)) == len(reading.findings), text
