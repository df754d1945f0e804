"""The yardstick for `render`: the same files from a bare template, written with temp and rename, and nothing else.

Takes a tree that hybridgpu rendered and writes it anew: each Slurm file through one jinja2 template fed with its
lines, each node file through one fed with the node's name and the text it shares with its equals.
"""

from __future__ import annotations

import sys
from pathlib import Path

from jinja2 import Environment

SLURM = "{% for line in lines %}{{ line }}\n{% endfor %}"
NODE = '{{ stamp }}\n"apiVersion": "hybridgpu/v1",\n"kind": "NodeConfig",\n"node": "{{ name }}",\n{{ shared }}'


def main(source: Path, target: Path) -> None:
    """Reads what it needs of `source`, then writes `target`."""
    environment = Environment()
    slurm, node = environment.from_string(SLURM), environment.from_string(NODE)
    for file in sorted((source / "slurm").iterdir()):
        _write(target / "slurm" / file.name, slurm.render(lines=file.read_text().splitlines()))
    names = sorted(path.name for path in (source / "nodes").iterdir())
    shared: dict[int, str] = {}
    for name in names:
        size = (source / "nodes" / name).stat().st_size
        if size not in shared:
            shared[size] = (source / "nodes" / name).read_text()
        stamp, _, _, _, rest = shared[size].split("\n", 4)
        _write(target / "nodes" / name, node.render(stamp=stamp, name=name[:-5], shared=rest))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.new")
    beside.write_text(text)
    beside.rename(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
