"""No finding repeats a password, however the line is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybridgpu.check.formats import as_json
from hybridgpu.check.importing import import_site
from hybridgpu.check.site import check
from hybridgpu.errors import Refused

HEAD = "ClusterName=c\nSlurmctldHost=h\nPartitionName=p Nodes=ALL\n"
LINES = [
    "JobCompPass=x\nJobCompPass=S3CR3T",
    "jobcomppass=S3CR3T\nJobCompPass=S3CR3T2",
    "AccountingStoragePass=my S3CR3T",
    'AccountingStoragePass="my" S3CR3T',
    "AccountingStoragePass=x \\\nS3CR3T",
    "AccountingStoragePass=x \\\ny \\\nS3CR3T z",
    "AccountingStoragePass S3CR3T",
    "AccountingStoragePass: S3CR3T",
    "ClusterName=c AccountingStoragePass=S3CR3T",
    "AccountingStoragePas=S3CR3T AccountingStoragePass=S3CR3T",
    "StoragePass=S3CR3T",
    "NodeName=n1 JobCompPass=S3CR3T",
    "Include S3CR3T.conf JobCompPass=S3CR3T",
    "AccountingStoragePass=x " + " ".join(f"S3CR3T{n}" for n in range(500)),
]


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("name", ["slurm.conf", "gres.conf", "cgroup.conf"])
def test_a_password(tmp_path: Path, line: str, name: str) -> None:
    (tmp_path / "slurm.conf").write_text(HEAD + "GresTypes=gpu\nNodeName=n1 Gres=gpu:1\n")
    with (tmp_path / name).open("a") as file:
        file.write(f"{line}\n")
    done = check([str(tmp_path)])
    assert done.findings
    try:
        imported = import_site([str(tmp_path)]).findings
    except Refused as refused:
        imported = refused.findings
    assert "S3CR3T" not in as_json(imported, ()).replace("S3CR3T.conf", "")
    assert "S3CR3T" not in as_json(done.findings, done.files).replace("S3CR3T.conf", "")
