"""The yardstick for `render`: the same files from a bare template, written with temp and rename, and nothing else.

Takes a tree that hybridgpu rendered and writes it anew: each Slurm file through one jinja2 template fed with its
lines, each node file through one fed with the node's name and the text it shares with its equals. Where there are
facts it decodes them, too, and then no two nodes are equal.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from jinja2 import Environment

SLURM = "{% for line in lines %}{{ line }}\n{% endfor %}"
NODE = '{{ stamp }}\n"apiVersion": "hybridgpu/v1",\n"kind": "NodeConfig",\n"node": "{{ name }}",\n{{ shared }}'


def main(source: Path, target: Path, facts: Path | None = None) -> None:
    """Reads what it needs of `source` and all of `facts`, then writes `target`."""
    environment = Environment()
    slurm, node = environment.from_string(SLURM), environment.from_string(NODE)
    for file in sorted((source / "slurm").iterdir()):
        _write(target / "slurm" / file.name, slurm.render(lines=file.read_text().splitlines()))
    for file in sorted((source / "kubernetes").rglob("*.yaml")):
        _write(target / file.relative_to(source), slurm.render(lines=file.read_text().splitlines()))
    names = sorted(path.name for path in (source / "nodes").iterdir())
    shared: dict[str, str] = {}
    for name in names:
        if facts:
            json.loads((facts / name).read_bytes())
        like = name if facts else str((source / "nodes" / name).stat().st_size)
        if like not in shared:
            shared[like] = (source / "nodes" / name).read_text()
        stamp, _, _, _, rest = shared[like].split("\n", 4)
        _write(target / "nodes" / name, node.render(stamp=stamp, name=name[:-5], shared=rest))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.new")
    beside.write_text(text)
    beside.rename(path)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
