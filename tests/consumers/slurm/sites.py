"""Small sites for the tests: a slurm.conf and a gres.conf that are right, with a place for what is under test."""

from __future__ import annotations

from hybridgpu.consumers.slurm import NEWEST, RELEASES, Consumption, DetectedGpu, consume, load
from hybridgpu.model.finding import Finding

CAPS = "/dev/nvidia-caps/nvidia-cap"
MIG = [f"Name=gpu Type=1g.10gb MultipleFiles=/dev/nvidia0,{CAPS}{n},{CAPS}{n + 1}" for n in (66, 75)]


def site(
    gres: str = "gpu:a100:2",
    records: list[str] | str = "Name=gpu Type=a100 File=/dev/nvidia[0-1]",
    *,
    types: str | None = "gpu",
    conf: str = "",
    nodes: str | None = None,
    **files: str,
) -> dict[str, str]:
    """The files of a site with one node n1 (or the lines `nodes`); `conf` are more lines of slurm.conf.

    `files` are further files, `_` in their names standing for a dot.
    """
    line = f"NodeName=n1 CPUs=8 Sockets=2 CoresPerSocket=4 Gres={gres}" if nodes is None else nodes
    head = ["ClusterName=c", "SlurmctldHost=ctl", "SelectType=select/cons_tres", "PartitionName=p Nodes=ALL"]
    head += [f"GresTypes={types}"] if types is not None else []
    text = records if isinstance(records, str) else "\n".join(records)
    return {
        "slurm.conf": "\n".join([*head, *([conf] if conf else []), line, ""]),
        "gres.conf": text + "\n",
        **{name.replace("_", "."): content for name, content in files.items()},
    }


def judged(
    files: dict[str, str], release: str = NEWEST.major, detected: dict[str, tuple[DetectedGpu, ...]] | None = None
) -> Consumption:
    """These files as this release judges them."""
    return consume(load(files), RELEASES[release], detected)


def found(files: dict[str, str], release: str = NEWEST.major) -> dict[str, Finding]:
    """The findings by rule; of several of one rule the first."""
    return {finding.rule.id: finding for finding in reversed(judged(files, release).findings)}
