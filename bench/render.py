"""`render` and `check` of ten thousand nodes: by class against a bare template, and with facts a node for the slope."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path

from bench.measure import Run, in_turn, machine, median, run, table

INVENTORY = """\
apiVersion: hybridgpu/v1
kind: Inventory
metadata: {{name: bench}}
slurm: {{version: "24.11"}}
kubernetes: {{delivery: device-plugin, namespace: gpu}}
nodeClasses:
  dgx: {{model: A100-SXM4-80GB, gpus: 8, slurm: {{CPUs: 256, Sockets: 2, CoresPerSocket: 128, RealMemory: 2000000}}}}
nodes:
- hosts: gpu[00001-{count:05}]
  class: dgx
  owner: slurm
  sharing: {{mode: mig, layout: {{all: {{1g.10gb: 7}}}}}}
"""

HYBRIDGPU = (sys.executable, "-m", "hybridgpu")


def main() -> None:
    """Prints the machine, the ratio by class, and time and memory against the number of nodes with facts."""
    print(machine())
    with tempfile.TemporaryDirectory(prefix="hybridgpu-bench-") as folder:
        _by_class(Path(folder), 10_000)
    with tempfile.TemporaryDirectory(prefix="hybridgpu-bench-") as folder:
        _with_facts(Path(folder), (2_500, 5_000, 10_000))


def _by_class(folder: Path, count: int) -> None:
    inventory = folder / "inventory.yaml"
    inventory.write_text(INVENTORY.format(count=count))
    ours, bare, source = folder / "ours", folder / "bare", folder / "source"
    run((*HYBRIDGPU, "render", str(inventory), "--to", str(source)))
    results = in_turn(
        {
            "render": (*HYBRIDGPU, "render", str(inventory), "--to", str(ours)),
            "bare template": (sys.executable, "-m", "bench.bare", str(source), str(bare)),
            "check": (*HYBRIDGPU, "check", str(inventory)),
            "render of one node (start-up)": (*HYBRIDGPU, "render", str(_one(folder)), "--to", str(folder / "one")),
        },
        runs=5,
        prepare=lambda name: shutil.rmtree({"render": ours, "bare template": bare}.get(name, folder / "one"), True),
    )
    print(f"\n{count} nodes, {count * 8} GPUs, {count * 56} MIG instances, by class")
    table(results)
    ours_, bare_, check, start = (median(runs) for runs in results.values())
    print(f"(render - start-up) / bare: wall {_net(ours_, start) / bare_.wall:.2f} (bound 2)")
    print(f"check / render: wall {check.wall / ours_.wall:.2f} (bound 1)")


def _one(folder: Path) -> Path:
    path = folder / "one.yaml"
    path.write_text(INVENTORY.format(count=1))
    return path


def _net(whole: Run, start: Run) -> float:
    return whole.wall - start.wall


def _with_facts(folder: Path, counts: tuple[int, ...]) -> None:
    print("\nwith facts of every node, no two alike")
    for number in range(counts[-1]):
        _write_facts(folder / "facts", number + 1)
    each = []
    for count in counts:
        inventory, facts, out = folder / f"{count}.yaml", folder / f"facts-{count}", folder / f"out-{count}"
        inventory.write_text(INVENTORY.format(count=count))
        facts.mkdir()
        for path in sorted((folder / "facts").iterdir())[:count]:
            (facts / path.name).hardlink_to(path)
        ours = run((*HYBRIDGPU, "render", str(inventory), "--facts", str(facts), "--to", str(out)))
        bare = run((sys.executable, "-m", "bench.bare", str(out), str(folder / "bare"), str(facts)))
        shutil.rmtree(out)
        shutil.rmtree(folder / "bare")
        each.append(ours.cpu / count * 1000)
        print(
            f"{count:6} nodes  wall {ours.wall:6.2f} s  cpu {ours.cpu:6.2f} s, {each[-1]:.2f} ms a node  "
            f"peak {ours.peak:4.0f} MiB  bare template with the same facts: ratio {ours.wall / bare.wall:.2f} wall, "
            f"{ours.cpu / bare.cpu:.2f} cpu"
        )
    print(f"slope: a node costs {each[-1] / each[0]:.2f} times as much cpu at {counts[-1]} as at {counts[0]}")


def _write_facts(folder: Path, number: int) -> None:
    """Facts of one node: minors turned by its number, and PCI addresses of its own, so that no two nodes are equal."""
    folder.mkdir(exist_ok=True)
    gpus = []
    for index in range(8):
        minor = (index + number) % 8
        instances = [
            {
                "uuid": f"MIG-{number:08x}-{index:04x}-0000-0000-{slot:012x}",
                "profile": "1g.10gb",
                "placement": {"start": slot, "size": 1},
                "gi": 7 + slot,
                "ci": 0,
                "gi_minor": 3 + 135 * minor + 9 * (7 + slot),
                "ci_minor": 4 + 135 * minor + 9 * (7 + slot),
            }
            for slot in range(7)
        ]
        gpus.append(
            {
                "index": index,
                "minor": minor,
                "uuid": f"GPU-{number:08x}-{index:04x}-0000-0000-000000000000",
                "pci_bus_id": f"{number:04x}:{index + 1:02x}:00.0",
                "model": "A100-SXM4-80GB",
                "memory_bytes": 85899345920,
                "mig_enabled": True,
                "compute_mode": "default",
                "cores": "0-127" if index < 4 else "128-255",
                "links": None,
                "instances": instances,
            }
        )
    name = f"gpu{number:05}"
    facts = {"apiVersion": "hybridgpu/v1", "kind": "Facts", "node": name, "driver": {"version": "580.95"}, "gpus": gpus}
    (folder / f"{name}.json").write_text(json.dumps(facts))


if __name__ == "__main__":
    main()
