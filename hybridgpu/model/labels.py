"""Names that Kubernetes objects, NVIDIA's programs and hybridgpu must spell alike: labels, resources, taints, paths.

Constants only, each with who gives it its meaning. They are written here and nowhere else in the package; what a
program does on seeing one is known to consumers.
"""

from __future__ import annotations

PLUGIN_CONFIG = "nvidia.com/device-plugin.config"
"""The label by which a node chooses a key of the device plugin's ConfigMap (k8s-device-plugin cmd/config-manager)."""

MIG_CONFIG = "nvidia.com/mig.config"
"""The label by which a node chooses a MIG layout (mig-parted cmd/nvidia-mig-manager)."""

MIG_CONFIG_STATE = f"{MIG_CONFIG}.state"
"""What came of that: pending, success, failed, rebooting."""

MIG_RESOURCE = "nvidia.com/mig-"
"""What the resource of a MIG instance begins with, under strategy mixed (k8s-device-plugin internal/rm)."""

SHARED_SUFFIX = ".shared"
"""What renameByDefault adds to a resource's name (k8s-device-plugin api/config/v1)."""

DEPLOY = "nvidia.com/gpu.deploy."
"""What the label begins with by which the GPU operator runs an operand on a node (controllers/state_manager.go)."""

DEPLOY_PLUGIN = f"{DEPLOY}device-plugin"
DEPLOY_OPERANDS = f"{DEPLOY}operands"
DEPLOY_DRIVER = f"{DEPLOY}driver"
DEPLOY_MIG_MANAGER = f"{DEPLOY}mig-manager"

PAUSED_OPERANDS = tuple(
    f"{DEPLOY}{name}" for name in ("device-plugin", "gpu-feature-discovery", "dcgm-exporter", "dcgm", "nvsm", "client")
)
"""The labels by which mig-manager takes the cards' clients away for a cut (mig-parted pkg/mig/reconfigure)."""

PAUSED = "paused-for-mig-change"
"""What it sets these labels to, unless they are `false`."""

OURS = "hybridgpu.io/"
"""What hybridgpu's own labels and taints begin with."""

OUR_CONFIG = f"{OURS}config"
"""hybridgpu's label: the hash of the config that the node's plugin runs, by which its DaemonSet selects nodes."""

MIG_ASKED = f"{OURS}mig-config"
"""hybridgpu's annotation: which layout it asked mig-manager for, in which boot of the node, and when."""

CLOSED = f"{OURS}closed"
"""hybridgpu's taint on a node whose cards Slurm has."""

MPS_ROOT = "/run/nvidia/mps"
"""Where the MPS daemon keeps its files on the host, in both charts (values.yaml mps.root, devicePlugin.mps.root)."""

CHART_TOLERATIONS = (
    {"key": "CriticalAddonsOnly", "operator": "Exists"},
    {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
)
"""The device plugin chart's own (values.yaml of 0.20.0)."""
