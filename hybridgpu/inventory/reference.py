"""docs/inventory.md: the reference of the inventory's keys. Derived from schema.py; lists nothing of its own."""

from __future__ import annotations

from collections.abc import Iterator

from hybridgpu.inventory.schema import blocks
from hybridgpu.inventory.shape import Block, Either, Key, ListOf, MapOf, Shape, described

INTRODUCTION = """\
# The inventory

<!-- Made from hybridgpu/inventory/schema.py by `python -m hybridgpu.inventory.reference`; a test keeps it true. -->

One YAML file says what every node's GPUs are to be: which scheduler owns them, and how they are shared. `hybridgpu
check FILE` finds every mistake in it, with line and column. The types of a value are decided by the key, not by YAML:
`24.11`, `off` and `012` are text as they stand, and a number is decimal digits without a leading zero. Aliases, tags,
merge keys, a key twice and a second document are refused.

A GPU index is nvidia-smi's (the order on the PCI bus), from 0. Hosts are hostlists as Slurm and ClusterShell write
them, without node groups; NodeAddr, NodeHostname, BcastAddr and Port are paired with them in the order written.
"""


def reference() -> str:
    """The page, in Markdown."""
    return INTRODUCTION + "".join(_section(path, block) for path, block in blocks())


def _section(path: str, block: Block) -> str:
    title = f"`{path}`: {block.what}" if path else "The file"
    rows = "".join(_row(key, block) for key in block.keys)
    return f"\n## {title}\n\n| key | | what it says | allowed | default |\n|---|---|---|---|---|\n{rows}"


def _row(key: Key, block: Block) -> str:
    need = "required" if key.required else ""
    if key.words:
        need = f"{need} with {block.by} {', '.join(key.words)}".strip()
    cells = (f"`{key.name}`", need, key.about, _allowed(key.shape), f"`{key.default}`" if key.default else "")
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def _allowed(shape: Shape) -> str:
    return "; or ".join(_parts(shape))


def _parts(shape: Shape) -> Iterator[str]:
    """What is allowed; a block is described in a section of its own."""
    match shape:
        case Either():
            yield from _parts(shape.scalar)
            yield from _parts(shape.other)
        case Block():
            yield "a mapping, see below"
        case ListOf(item=Block()):
            yield f"a list of {shape.what}, see below"
        case ListOf():
            yield f"a list of {shape.what}: each {_allowed(shape.item)}"
        case MapOf(value=Block()):
            yield f"a mapping {shape.what}, see below"
        case MapOf():
            yield f"a mapping {shape.what}: {_allowed(shape.key)}; each {_allowed(shape.value)}"
        case _:
            yield described(shape)


if __name__ == "__main__":
    print(reference(), end="")
