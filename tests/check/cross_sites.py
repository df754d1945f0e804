"""Sites of both schedulers as files, in the words of slurm.conf and of `kubectl get -o yaml`, for check to judge."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from hybridgpu.check.site import check
from hybridgpu.model.finding import Finding, Severity

HEAD = """\
ClusterName=leibniz
SlurmctldHost=head
SelectType=select/cons_tres
PrologFlags=Contain
TaskPlugin=task/cgroup
ProctrackType=proctrack/cgroup
"""
CGROUP = "ConstrainDevices=yes\n"
WHOLE = "Name=gpu Type=a100 File=/dev/nvidia[0-7]\n"
PRODUCT = "NVIDIA-A100-SXM4-80GB"


def slurm(*lines: str, gres: str = WHOLE, partition: str = "PartitionName=gpu Nodes=ALL Default=YES") -> dict[str, str]:
    """slurm.conf with these lines, gres.conf and cgroup.conf beside it."""
    shared = [name for name in ("mps", "shard") if any(f"{name}:" in line for line in lines)]
    conf = (
        HEAD + f"GresTypes={','.join(('gpu', *shared))}\n" + "".join(f"{line}\n" for line in lines) + f"{partition}\n"
    )
    return {"slurm/slurm.conf": conf, "slurm/gres.conf": gres, "slurm/cgroup.conf": CGROUP}


def mig_gres(profile: str = "1g.10gb", cards: int = 1, each: int = 7) -> str:
    """Lines of MIG instances as the driver numbers them: GI minors 3 + 135 * card + 9 * gi, from gi 7 on."""
    lines = []
    for number in range(cards):
        for at in range(each):
            cap = 3 + 135 * number + 9 * (7 + at)
            files = f"/dev/nvidia{number},/dev/nvidia-caps/nvidia-cap{cap},/dev/nvidia-caps/nvidia-cap{cap + 1}"
            lines.append(f"Name=gpu Type={profile} MultipleFiles={files}\n")
    return "".join(lines)


def node(
    name: str,
    allocatable: Mapping[str, int] | None = None,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[tuple[str, str, str]] = (),
    *,
    cordoned: bool = False,
) -> str:
    """One Node object; `allocatable` without its nvidia.com/, None: no status."""
    shown = {"kubernetes.io/hostname": name, "nvidia.com/gpu.present": "true", **(labels or {})}
    lines = ["apiVersion: v1", "kind: Node", "metadata:", f"  name: {name}", "  labels:"]
    lines += [f"    {key}: {json.dumps(value)}" for key, value in shown.items()]
    lines.append("spec:")
    lines.append(f"  unschedulable: {str(cordoned).lower()}")
    if taints:
        lines.append("  taints:")
        lines += [f"  - {{key: {key}, value: {json.dumps(value)}, effect: {effect}}}" for key, value, effect in taints]
    if allocatable is not None:
        lines += ["status:", "  allocatable:", '    cpu: "128"']
        lines += [f'    nvidia.com/{key}: "{count}"' for key, count in allocatable.items()]
    return "\n".join(lines) + "\n"


def labels(count: int = 8, strategy: str = "none", replicas: int = 1, mig: str = "", **more: str) -> dict[str, str]:
    """What feature discovery says of whole A100s."""
    suffix = "-SHARED" if strategy != "none" else ""
    found = {
        "nvidia.com/gpu.product": f"{PRODUCT}{suffix}",
        "nvidia.com/gpu.count": str(count),
        "nvidia.com/gpu.memory": "81920",
        "nvidia.com/gpu.replicas": str(replicas),
        "nvidia.com/gpu.sharing-strategy": strategy,
        "nvidia.com/mps.capable": "true" if strategy == "mps" else "false",
        **({"nvidia.com/mig.strategy": mig} if mig else {}),
    }
    return found | {f"nvidia.com/{key.replace('__', '-').replace('_', '.')}": value for key, value in more.items()}


def nodes(*objects: str) -> dict[str, str]:
    """A file of Node objects."""
    return {"kubernetes/nodes.yaml": "---\n".join(objects)}


def plugin_configs(**keys: str) -> dict[str, str]:
    """A ConfigMap of device-plugin configs; `_` in a key stands for `-`."""
    lines = ["apiVersion: v1", "kind: ConfigMap", "metadata: {name: plugin-configs, namespace: gpu-operator}", "data:"]
    for key, text in keys.items():
        lines.append(f"  {key.replace('_', '-')}: |")
        lines += [f"    {line}" for line in text.splitlines()]
    return {"kubernetes/configs.yaml": "\n".join(lines) + "\n"}


def config(sharing: str = "", replicas: int = 4, strategy: str = "none", resource: str = "nvidia.com/gpu") -> str:
    """A device-plugin config. `sharing` is timeSlicing, mps or empty."""
    text = f"version: v1\nflags:\n  migStrategy: {strategy}\n"
    if sharing:
        text += f"sharing:\n  {sharing}:\n    resources:\n    - name: {resource}\n      replicas: {replicas}\n"
    return text


def mig_parted(**layouts: str) -> dict[str, str]:
    """A mig-parted file; each layout is the text of its mig-devices; `_` in a name stands for `-`."""
    lines = ["version: v1", "mig-configs:", "  all-disabled:", "  - devices: all", "    mig-enabled: false"]
    for name, devices in layouts.items():
        lines += [f"  {name.replace('_', '-')}:", "  - devices: all", "    mig-enabled: true"]
        lines.append(f"    mig-devices: {devices}")
    return {"kubernetes/mig.yaml": "\n".join(lines) + "\n"}


def cluster_policy(driver: str = "", tolerations: str = "", config_name: str = "", default: str = "") -> dict[str, str]:
    """A ClusterPolicy; the arguments are flow mappings and lists of YAML."""
    lines = ["apiVersion: nvidia.com/v1", "kind: ClusterPolicy", "metadata: {name: cluster-policy}", "spec:"]
    lines.append(f"  daemonsets: {{{f'tolerations: {tolerations}' if tolerations else ''}}}")
    lines += [f"  driver: {driver}"] if driver else []
    if config_name:
        lines.append(f"  devicePlugin: {{config: {{name: {config_name}, default: {json.dumps(default)}}}}}")
    lines += ["  mig: {strategy: mixed}", "  operator: {defaultRuntime: containerd}"]
    return {"kubernetes/policy.yaml": "\n".join(lines) + "\n"}


def facts(name: str, cards: int = 8, cut: Sequence[int] = (), model: str = "A100-SXM4-80GB") -> dict[str, str]:
    """Facts of a node; the cards in `cut` have seven 1g.10gb each."""
    gpus = []
    for index in range(cards):
        instances = [
            {
                "uuid": f"MIG-00000000-0000-0000-{index:04x}-{at:012x}",
                "profile": "1g.10gb",
                "placement": {"start": at, "size": 1},
                "gi": 7 + at,
                "ci": 0,
                "gi_minor": 3 + 135 * index + 9 * (7 + at),
                "ci_minor": 4 + 135 * index + 9 * (7 + at),
            }
            for at in range(7)
        ]
        gpus.append(
            {
                "index": index,
                "minor": index,
                "uuid": f"GPU-00000000-0000-0000-0000-{index:012x}",
                "pci_bus_id": f"0000:{index + 1:02x}:00.0",
                "model": model,
                "memory_bytes": 85899345920,
                "mig_enabled": index in cut,
                "compute_mode": "default",
                "cores": None,
                "links": None,
                "instances": instances if index in cut else [],
            }
        )
    told = {"apiVersion": "hybridgpu/v1", "kind": "Facts", "node": name, "driver": {"version": "550.1"}, "gpus": gpus}
    return {f"facts/{name}.json": json.dumps(told, indent=1)}


def write(folder: Path, *parts: Mapping[str, str]) -> Path:
    """The files in a folder; a later part's file replaces an earlier one's."""
    for part in parts:
        for name, text in part.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return folder


def judged(folder: Path, *parts: Mapping[str, str]) -> tuple[Finding, ...]:
    """All findings of check on a site of these files."""
    return check([str(write(folder, *parts))]).findings


def crossed(folder: Path, *parts: Mapping[str, str]) -> list[Finding]:
    """The findings of cross-checks alone, but for remarks."""
    return [f for f in judged(folder, *parts) if f.rule.id.startswith("site-") and f.severity is not Severity.INFO]


def loud(folder: Path, *parts: Mapping[str, str]) -> list[str]:
    """Everything that is an error or a warning, of any rule, as one line each."""
    found = judged(folder, *parts)
    return [f"{f.rule.id} {f.place}: {f.message}" for f in found if f.severity is not Severity.INFO]
