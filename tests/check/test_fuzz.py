"""Damaged files of every kind through `check`: findings, never a traceback, a hang, or memory without bound."""

from __future__ import annotations

import random
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hybridgpu.check.formats import as_json, github, sarif, text
from hybridgpu.check.site import check
from tests.conftest import no_hang, soak
from tests.test_fuzz import damaged_bytes

SITES = sorted(
    {
        *(path.parent for path in Path("tests/data/cases").glob("*/expect.yaml")),
        *(path for path in Path("examples").iterdir() if path.is_dir()),
        Path("demo/site"),
    }
)
SEEDS = 4


def copied(rng: random.Random, site: Path, to: Path) -> None:
    """The site's files, of which one to three are damaged."""
    files = [path for path in sorted(site.rglob("*")) if path.is_file() and path.name != "expect.yaml"]
    wrong = set(rng.sample(files, min(len(files), rng.choice((1, 1, 2, 3)))))
    for path in files:
        target = to / path.relative_to(site)
        target.parent.mkdir(parents=True, exist_ok=True)
        content = path.read_bytes()
        target.write_bytes(damaged_bytes(rng, content) if path in wrong and content else content)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_damaged_sites(tmp_path: Path, seed: int, record_property: Callable[[str, object], None]) -> None:
    rng = random.Random(f"check {seed}")
    count = soak(150, 5000) // SEEDS
    for number in range(count):
        folder = tmp_path / str(number)
        site = rng.choice(SITES)
        copied(rng, site, folder)
        with no_hang(60):
            done = check([str(folder)])
        for form in (text(done.findings), github(done.findings), sarif(done.findings)):
            assert "\x1b" not in form
        assert as_json(done.findings, done.files)
        for finding in done.findings:
            assert finding.message.strip(), (number, site, finding)
            assert finding.place is None or finding.place.line >= 1, (number, site, finding)
    record_property("measured", f"{count:,} damaged sites: findings, no traceback, no hang")


WIDE = "".join("Include f{{0}}.conf\n" for _ in range(8))
BOMB = "kind: Pod\napiVersion: v1\na0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 8)
)
LONG, ZEROS = "9" * 5000, "0" * 5000 + "1"
MONSTERS: dict[str, dict[str, str]] = {
    "includes of includes": {
        "slurm.conf": "ClusterName=c\n" + WIDE.format(0),
        **{f"f{n}.conf": WIDE.format(n + 1) for n in range(12)},
        "f12.conf": "GresTypes=gpu\n",
    },
    "hosts without end": {"slurm.conf": "ClusterName=c\nGresTypes=gpu\nNodeName=n[1-999999999] Gres=gpu:1\n"},
    "hosts in many brackets": {
        "slurm.conf": "ClusterName=c\nNodeName=n[1-9][1-9][1-9][1-9][1-9][1-9][1-9] Gres=gpu:1\n"
    },
    "hosts in gres.conf": {
        "slurm.conf": "ClusterName=c\nGresTypes=gpu\nNodeName=n1 Gres=gpu:1\n",
        "gres.conf": "NodeName=n[1-999999999] Name=gpu File=/dev/nvidia[0-99999999]\n" * 100,
    },
    "devices without end": {
        "slurm.conf": "ClusterName=c\nGresTypes=gpu\nNodeName=n1 Gres=gpu:1\n",
        "gres.conf": "Name=gpu File=/dev/nvidia[0-99999999]\n",
    },
    "one long line": {"slurm.conf": "ClusterName=c\nGresTypes=gpu\nNodeName=n1 Gres=" + "gpu:a:1," * 300_000},
    "continued for ever": {"slurm.conf": "ClusterName=c\n" + "GresTypes=gpu \\\n" * 200_000},
    "many includes with comments": {"slurm.conf": "ClusterName=c\n" + "include x#y\n" * 100_000},
    "many escaped comments": {"slurm.conf": "ClusterName=c\nGresTypes=gpu" + "\\#" * 1_000_000},
    "many backslashes": {"slurm.conf": "ClusterName=c\nGresTypes=gpu" + "\\" * 2_000_001 + "#" + "\\" * 2_000_001},
    "many keys": {"slurm.conf": "ClusterName=c\n" + "GresTypes=gpu\n" * 200_000},
    "many unknown keys": {"slurm.conf": "ClusterName=c\n" + "".join(f"Key{n}=1\n" for n in range(20_000))},
    "many unreadable lines": {"slurm.conf": "ClusterName=c\n" + "".join(f"a line {n}\n" for n in range(300_000))},
    "one long line of nothing": {"slurm.conf": "ClusterName=c\n" + "what is this " * 300_000},
    "a password of many words": {
        "slurm.conf": "ClusterName=c\nAccountingStoragePass=a " + " ".join(f"w{n}" for n in range(400_000))
    },
    "many wrong values": {
        "slurm.conf": "ClusterName=c\nGresTypes=gpu\nNodeName=n1 Gres=gpu:1\n",
        "gres.conf": "".join(f"Name=gpu File=/dev/nvidia0 Count=x{n}\n" for n in range(50_000)),
    },
    "many records": {
        "slurm.conf": "ClusterName=c\nGresTypes=gpu\nNodeName=n1 Gres=gpu:1\n",
        "gres.conf": "Name=gpu File=/dev/nvidia0\n" * 100_000,
    },
    "many nodes": {
        "slurm.conf": "ClusterName=c\nGresTypes=gpu\n" + "".join(f"NodeName=n{n} Gres=gpux:1\n" for n in range(50_000))
    },
    "deep": {"a.yaml": "kind: ConfigMap\ndata: " + "[" * 500_000},
    "deep inside": {"a.yaml": "kind: ConfigMap\ndata:\n  any: |\n    version: v1\n    sharing: " + "{a: " * 300_000},
    "aliases of aliases": {
        "a.yaml": "kind: ConfigMap\na0: &a0 [x]\n"
        + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 30))
        + "data: *a29\n"
    },
    "a bomb as a key": {"a.yaml": BOMB + "? *a7\n: 1\n"},
    "a bomb at no key": {"a.yaml": BOMB + "~: *a7\n"},
    "a bomb merged": {
        "a.yaml": "kind: Pod\napiVersion: v1\nm: &m {"
        + ", ".join(f"k{n}: 1" for n in range(20_000))
        + f"}}\nn: {{<<: [{', '.join(['*m'] * 50_000)}]}}\n"
    },
    "a count that is a bomb": {
        "a.yaml": "kind: Pod\napiVersion: v1\nmetadata: {name: p, annotations: {a: &m ["
        + ", ".join(["1"] * 10_000)
        + "]}}\nspec:\n  containers:\n  - name: c\n    resources: {limits: {nvidia.com/gpu: ["
        + ", ".join(["*m"] * 9)
        + "]}}\n"
    },
    "many objects": {"a.yaml": "kind: Pod\nmetadata: {name: p}\n---\n" * 50_000},
    "many pods": {
        "a.yaml": "kind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - {name: c, resources: "
        "{limits: {nvidia.com/gpuu: 2}}}\n---\n" * 20_000
    },
    "many configs": {
        "a.yaml": "kind: ConfigMap\nmetadata: {name: m}\ndata:\n"
        + "".join(f"  k{n}: 'version: v1'\n" for n in range(20_000))
    },
    "many layouts": {
        "a.yaml": "version: v1\nmig-configs:\n"
        + "".join(f"  k{n}: [{{devices: all, mig-enabled: true, mig-devices: {{1g.5gb: 7}}}}]\n" for n in range(4_000))
    },
    "many entries": {
        "a.yaml": "version: v1\nmig-configs:\n  k:\n"
        + "".join(
            f"  - {{devices: [{n}], mig-enabled: {'false' if n % 9 == 0 else 'true, mig-devices: {1g.5gb: 9}'}}}\n"
            for n in range(16_000)
        )
    },
    "many resources": {
        "a.yaml": "version: v1\nsharing:\n  timeSlicing:\n    resources:\n"
        + "".join(f"    - {{name: nvidia.com/mig-1g.{n}gb, replicas: 2}}\n" for n in range(16_000))
    },
    "many instances": {
        "a.yaml": "version: v1\nmig-configs:\n  a:\n  - devices: all\n    mig-enabled: true\n"
        "    mig-devices: {1g.5gb: 999999999, 2g.10gb: 999999, 3g.20gb: 99999999}\n"
    },
    "replicas": {
        "a.yaml": "version: v1\nsharing: {timeSlicing: {resources: [{name: gpu, replicas: 99999999999999999999}]}}\n"
    },
    "digits in names and counts": {
        "slurm.conf": "ClusterName=c\nGresTypes=gpu\nNodeName=n1 Gres=gpu:a100:1\n",
        "gres.conf": "Name=gpu Type=a100 File=/dev/nvidia0\n",
        "a.yaml": f"kind: Node\napiVersion: v1\nmetadata:\n"
        f"  name: n{LONG}\n  labels: {{nvidia.com/gpu.count: '{LONG}'}}\n"
        f"status: {{capacity: {{nvidia.com/gpu: 1e{LONG}}}}}\n---\n"
        f"kind: Pod\napiVersion: v1\nmetadata: {{name: p}}\nspec:\n  containers:\n  - name: c\n    resources:\n"
        f"      limits: {{nvidia.com/gpu: 1e{ZEROS}}}\n",
        "b.yaml": f"version: v1\nmig-configs:\n  a:\n  - devices: all\n    mig-enabled: true\n    mig-devices:\n"
        f"      ? {ZEROS}g.5gb\n      : 7\n      ? 1g.{LONG}gb\n      : {ZEROS}\n",
    },
    "a number of digits": {"a.yaml": "version: v1\nflags: {migStrategy: " + "9" * 1_000_000 + "}\n"},
}
MOST_OUTPUT = 20 * 2**20
MOST_MEMORY = 3 * 2**30
SECONDS = 100


SITE = "ClusterName=c\nSlurmctldHost=h\nGresTypes=gpu\n"
CARDS = "Name=gpu Type=a100 File=/dev/nvidia0\n"
IMPORTED: dict[str, dict[str, str]] = {
    "more equal nodes than an inventory takes": {
        "slurm.conf": f"{SITE}NodeName=n[1-40000],m[1-40000] Gres=gpu:a100:1\n",
        "gres.conf": CARDS,
    },
    "many nodes of their own": {
        "slurm.conf": SITE
        + "".join(f"NodeName=n{n} Gres=gpu:a100:1 CPUs=2 RealMemory={1000 + n}\n" for n in range(4_000)),
        "gres.conf": CARDS,
    },
}


@pytest.mark.parametrize("name", MONSTERS)
def test_a_monster(tmp_path: Path, name: str) -> None:
    limited("check", tmp_path, MONSTERS[name])


@pytest.mark.parametrize("name", IMPORTED)
def test_a_monster_is_imported(tmp_path: Path, name: str) -> None:
    limited("import", tmp_path, IMPORTED[name])


def limited(command: str, folder: Path, files: dict[str, str]) -> None:
    """Runs in a process of its own, which may not have more memory and time than this, nor write more."""
    for file, content in files.items():
        (folder / file).write_text(content)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))

    argv = [sys.executable, "-m", "hybridgpu", command, str(folder)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=SECONDS, preexec_fn=limit)
    assert done.returncode in (0, 1), done.stderr[-2000:]
    assert "Traceback" not in done.stderr
    assert "bug" not in done.stderr
    assert len(done.stdout) < MOST_OUTPUT
