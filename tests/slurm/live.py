"""From an inventory to a live cluster: what the command line renders, made startable where there are no hooks."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from testbed.slurm.cluster import Cluster

PLACE = re.compile(r"^(?:Prolog|Epilog|TaskProlog)=(?P<path>\S+)$", re.MULTILINE)
STAND_IN = "#!/bin/sh\nexit 0\n"


def command(
    wanted: dict[str, Any], folder: Path, facts: Mapping[str, Any] | None = None
) -> subprocess.CompletedProcess[str]:
    """`hybridgpu render` on this inventory, and on facts by node, to folder/out."""
    source = folder / "inventory.yaml"
    source.write_text(yaml.safe_dump(wanted, sort_keys=False), encoding="utf-8")
    seen = folder / "facts"
    seen.mkdir()
    for node, content in (facts or {}).items():
        (seen / f"{node}.json").write_text(json.dumps(content), encoding="utf-8")
    argv = [sys.executable, "-m", "hybridgpu", "render", str(source), "--to", str(folder / "out")]
    with_facts = ["--facts", str(seen)] if facts else []
    return subprocess.run([*argv, *with_facts], capture_output=True, text=True, check=False)


def rendered(wanted: dict[str, Any], folder: Path, facts: Mapping[str, Any] | None = None) -> dict[str, str]:
    """The files that slurmd and slurmctld read, with stand-ins for the hooks that they name."""
    done = command(wanted, folder, facts)
    assert done.returncode == 0, done.stderr
    files = {path.name: path.read_text(encoding="utf-8") for path in (folder / "out" / "slurm").iterdir()}
    places = [found["path"].replace("*", "90-site") for found in PLACE.finditer(files["gpu.conf"])]
    return {**files, **dict.fromkeys(places, STAND_IN)}


def states(cluster: Cluster) -> dict[str, str]:
    """Each node's state, with the reason where it has one."""
    seen = cluster.show_nodes()
    return {host: " ".join([node["State"], node.get("Reason", "")]).strip() for host, node in seen.items()}
