"""Words that look like numbers and are none, or none of this world, wherever a number may stand: no traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybridgpu.check.importing import import_site
from hybridgpu.check.site import check
from hybridgpu.consumers.kubernetes.labelnumber import label_number
from hybridgpu.errors import Refused

ODD = {"superscript": "²", "5,000 digits": "9" * 5000}
PRODUCTS = ("NVIDIA-A100-SXM4-80GB", "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb")


@pytest.mark.parametrize("text", [*ODD.values(), "", None, "8 ", "-1", "1_0", "٣", "1" * 10])
def test_a_label_that_is_no_number(text: str | None) -> None:
    assert label_number(text) is None


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("08", 8), ("999999999", 999_999_999)])
def test_a_label_that_is_one(text: str, number: int) -> None:
    assert label_number(text) == number


@pytest.mark.parametrize("strategy", ["single", "mixed", "none"])
@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_on_a_node(tmp_path: Path, odd: str, product: str, strategy: str) -> None:
    labels = {
        "present": "true",
        "product": product,
        "sharing-strategy": "mps",
        **dict.fromkeys(("count", "memory", "replicas"), odd),
    }
    shown = ", ".join(f'nvidia.com/gpu.{name}: "{value}"' for name, value in labels.items())
    mig = f'nvidia.com/mig.strategy: {strategy}, nvidia.com/mig-1g.10gb.count: "{odd}"'
    node = (
        f"apiVersion: v1\nkind: Node\nmetadata: {{name: g1, labels: {{{shown}, {mig}}}}}\n"
        f'status: {{allocatable: {{nvidia.com/gpu: "{odd}", nvidia.com/mig-1g.10gb: "{odd}"}}}}\n'
    )
    runs(tmp_path, {"node.yaml": node, "slurm.conf": slurm("NodeName=g1 Gres=gpu:8"), "gres.conf": GRES})


LINES = {
    "NodeName=g1 Gres=gpu:{odd}": "slurm.conf",
    "NodeName=g1 Gres=gpu:a100:{odd}(S:0) CPUs=8": "slurm.conf",
    "NodeName=g1 Gres=gpu:8 CPUs={odd} Sockets=2": "slurm.conf",
    "NodeName=g1 Gres=gpu:8 RealMemory={odd} Weight={odd} Port={odd}": "slurm.conf",
    "NodeName=g{odd} Gres=gpu:8": "slurm.conf",
    "NodeName=g[1-{odd}] Gres=gpu:8": "slurm.conf",
    "Name=gpu File=/dev/nvidia{odd}": "gres.conf",
    "Name=gpu File=/dev/nvidia[0-{odd}]": "gres.conf",
    "Name=gpu Count={odd} Cores={odd} Links={odd}": "gres.conf",
    "Name=gpu File=/dev/nvidia[0-7] Cores=0-{odd}:1": "gres.conf",
    "Name=gpu Type={odd}g.10gb MultipleFiles=/dev/nvidia0,/dev/nvidia-caps/nvidia-cap{odd}": "gres.conf",
}


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_in_slurm(tmp_path: Path, odd: str, line: str) -> None:
    written = line.format(odd=odd)
    node = (
        "apiVersion: v1\nkind: Node\nmetadata: {name: g1, labels: {nvidia.com/gpu.present: 'true'}}\n"
        "status: {allocatable: {nvidia.com/gpu: '8'}}\n"
    )
    files = {"node.yaml": node, "slurm.conf": slurm("NodeName=g1 Gres=gpu:8"), "gres.conf": GRES}
    files[LINES[line]] = slurm(written) if LINES[line] == "slurm.conf" else f"{written}\n"
    runs(tmp_path, files)


GRES = "Name=gpu File=/dev/nvidia[0-7]\n"


def slurm(line: str) -> str:
    head = "ClusterName=c\nSlurmctldHost=c\nSelectType=select/cons_tres\nGresTypes=gpu\n"
    return f"{head}{line}\nPartitionName=p Nodes=ALL\n"


def runs(folder: Path, files: dict[str, str]) -> None:
    """Both who read a whole site come to an end of their own: findings, or a refusal that says what is wrong."""
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    assert check([str(folder)]).files
    try:
        assert import_site([str(folder)], None).text
    except Refused as refused:
        assert refused.findings
