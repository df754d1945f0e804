"""Texts as the Kubernetes side of a site: written to a folder, found, gathered and judged as `check` does."""

from __future__ import annotations

from pathlib import Path

from hybridgpu.consumers.kubernetes import KubeFiles, gather
from hybridgpu.consumers.kubernetes.askjudge import judge_asks
from hybridgpu.files.kinds import inputs
from hybridgpu.model.finding import Finding, Severity


def gathered(folder: Path, *texts: str) -> KubeFiles:
    """The records of these texts, each in a file of its own: `0.yaml`, `1.yaml` ..."""
    for number, text in enumerate(texts):
        (folder / f"{number}.yaml").write_text(text, encoding="utf-8")
    return gather(list(inputs(str(folder))))[0]


def judged(folder: Path, *texts: str) -> list[Finding]:
    """What is found on those who ask, infos left out."""
    return [f for f in judge_asks(gathered(folder, *texts)) if f.severity is not Severity.INFO]


def config_map(**configs: str) -> str:
    """A ConfigMap of device-plugin configs, by key."""
    keys = "".join(
        f"  {key}: |\n" + "".join(f"    {line}\n" for line in text.strip().split("\n")) for key, text in configs.items()
    )
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: configs, namespace: nvidia}}\ndata:\n{keys}"


def sharing(
    block: str = "timeSlicing", more: str = "", resource: str = "nvidia.com/gpu", replicas: int = 4, top: str = ""
) -> str:
    """A config that shares one resource; `more` stands in the block, `top` above it."""
    inside = f"{more}, " if more else ""
    entry = f"{{name: {resource}, replicas: {replicas}}}"
    return f"version: v1\n{top}sharing: {{{block}: {{{inside}resources: [{entry}]}}}}"


def node(name: str, labels: str = "nvidia.com/gpu.present: 'true'", allocatable: str | None = None) -> str:
    """A Node with these labels and, where it is given, this allocatable."""
    status = "" if allocatable is None else f"status: {{allocatable: {{cpu: '8', {allocatable}}}}}\n"
    return f"---\napiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: {{{labels}}}}}\n{status}"


def pod(limits: str = "nvidia.com/gpu: 1", spec: str = "", container: str = "", requests: str = "") -> str:
    """A Pod whose one container has these limits in line 8; `spec` and `container` are lines of their own after it."""
    beside = f", requests: {{{requests}}}" if requests else ""
    lines = [
        *("apiVersion: v1", "kind: Pod", "metadata: {name: p, namespace: team}", "spec:", "  containers:"),
        *("  - name: c", "    image: cuda", f"    resources: {{limits: {{{limits}}}{beside}}}"),
        *([f"    {container}"] if container else []),
        *([f"  {spec}"] if spec else []),
    ]
    return "\n".join(lines) + "\n"


def quota(hard: str) -> str:
    """A ResourceQuota."""
    return f"apiVersion: v1\nkind: ResourceQuota\nmetadata: {{name: q, namespace: team}}\nspec:\n  hard: {{{hard}}}\n"


def limit_range(item: str) -> str:
    """A LimitRange of one item."""
    return (
        f"apiVersion: v1\nkind: LimitRange\nmetadata: {{name: l, namespace: team}}\nspec:\n  limits:\n  - {{{item}}}\n"
    )


SHARED = sharing()
RENAMED = sharing(more="renameByDefault: true")
STRICT = sharing(more="failRequestsGreaterThanOne: true")
MPS = sharing("mps", top="flags: {mpsRoot: /run/nvidia/mps}\n")
PLAIN = "version: v1"
MIXED = "version: v1\nflags: {migStrategy: mixed}"
SINGLE = "version: v1\nflags: {migStrategy: single}"
CUT = """version: v1
mig-configs:
  all-1g.10gb:
  - {devices: all, mig-enabled: true, mig-devices: {1g.10gb: 7}}
"""
CUT_OR_NOT = CUT + "  all-disabled:\n  - {devices: all, mig-enabled: false}\n"
