"""Damaged inventories through the whole command: a refusal with file and line, or a whole tree; never half of one."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import hybridgpu.cli
from tests.conftest import soak

SOURCES = sorted(Path("examples").glob("*/inventory.yaml"))
ODD: tuple[Any, ...] = (
    *(
        "",
        " ",
        "~",
        "off",
        "-1",
        "0",
        "1e9",
        "99999999999999999999",
        "0-",
        "[",
        "gpu[1-",
        "gpu[1-99999999]",
        "a b",
        "a\nb",
    ),
    *(
        "../../etc/passwd",
        "$(id)",
        "`id`",
        "%s%n",
        "{host}",
        "{{ x }}",
        "\x1b[31m",
        "é",
        "\u202e",
        "x" * 5000,
        "#",
        '"',
    ),
    *(None, True, 3, -1, 2.5, [], {}, [[]], {"a": {"b": {}}}, ["slurm", "slurm"], {"all": {"1g.10gb": 8}}),
)
TOKENS = (
    b":",
    b"- ",
    b"{",
    b"}",
    b"[",
    b"]",
    b"\t",
    b"&a ",
    b"*a",
    b"!!python/object:os.system ",
    b"\x00",
    b"\xff",
    b"|\n",
    b"'",
    b"---\n",
)


def damaged_bytes(rng: random.Random, content: bytes) -> bytes:
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 5, 20))):
        at = rng.randrange(len(data))
        kind = rng.randrange(4)
        if kind == 0:
            data[at] = rng.randrange(256)
        elif kind == 1:
            del data[at : at + rng.choice((1, 2, 10, 80))]
        elif kind == 2:
            data[at:at] = rng.choice(TOKENS)
        else:
            data[at:at] = data[rng.randrange(len(data)) :][: rng.choice((1, 5, 40))]
        data = data or bytearray(b" ")
    return bytes(data)


def damaged_structure(rng: random.Random, content: bytes) -> bytes:
    tree = yaml.safe_load(content)
    for _ in range(rng.choice((1, 1, 2, 4))):
        holder, key = rng.choice(list(places(tree)))
        kind = rng.randrange(4)
        if kind == 0:
            del holder[key]
        elif kind == 1 and isinstance(holder, dict):
            holder[f"{key}x"] = holder.pop(key)
        elif kind == 2:
            holder[key] = [holder[key]]
        else:
            holder[key] = rng.choice(ODD)
        if not tree:
            break
    return yaml.safe_dump(tree, allow_unicode=True, sort_keys=False).encode()


def places(tree: Any) -> list[tuple[Any, Any]]:  # noqa: ANN401 - any YAML value
    found: list[tuple[Any, Any]] = []
    for key in list(tree) if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ():
        found.append((tree, key))
        found += places(tree[key])
    return found


def contents(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


@pytest.mark.parametrize("damage", [damaged_bytes, damaged_structure], ids=lambda f: f.__name__)
def test_a_damaged_inventory(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    damage: Any,  # noqa: ANN401
    record_property: Callable[[str, object], None],
) -> None:
    rng = random.Random(20)
    path, out = tmp_path / "inventory.yaml", tmp_path / "out"
    path.write_text("")
    refused = 0
    count = soak(120, 4000)
    for number in range(count):
        path.write_bytes(damage(rng, rng.choice(SOURCES).read_bytes()))
        before = contents(out) if out.exists() else {}
        with pytest.raises(SystemExit) as stop:
            hybridgpu.cli.main(["render", str(path), "--to", str(out), "-o", "json"])
        shown = capsys.readouterr()
        told = f"number {number}: exit {stop.value.code}\n{path.read_bytes()!r}\n{shown.err}"
        assert stop.value.code in (0, 1), told
        assert "\x1b" not in shown.err + shown.out, told
        if stop.value.code:
            refused += 1
            assert re.search(r"^\S*inventory\.yaml:\d+:\d+: error: ", shown.err, re.MULTILINE), told
            assert shown.out == "", told
            assert (contents(out) if out.exists() else {}) == before, told
        else:
            assert not any(p.name.endswith(".hybridgpu") for p in out.rglob("*")), told
    assert refused > count // 3
    record_property(
        "measured", f"{count:,} damaged inventories, {refused:,} refused with file and line, none half done"
    )
