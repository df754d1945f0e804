"""The rules for a device-plugin config: what the three programs refuse, and what they take and do not honour."""

from __future__ import annotations

from hybridgpu.model.finding import Rule, Severity

_API = "k8s-device-plugin v0.20.0 api/config/v1"
_MAIN = "k8s-device-plugin v0.20.0 cmd/nvidia-device-plugin/main.go validateFlags; run"
_EXIT = "Device plugin, GPU feature discovery and MPS daemon exit 1 at every start: the node offers no GPU."
_PLUGIN_EXITS = "The device plugin exits 1 at every start: the node offers no GPU."


def _refused(name: str, fix: str) -> Rule:
    return Rule(f"k8s-plugin-{name}", Severity.ERROR, _EXIT, fix, f"{_API}; run")


def _ignored(name: str, what: str, fix: str, source: str = f"{_API}; run") -> Rule:
    return Rule(f"k8s-plugin-{name}", Severity.ERROR, what, fix, source)


YAML = _refused("yaml", "Mend the line, or the one before it.")
VERSION = _refused("version", "Write `version: v1`.")
TYPE = _refused("type", "Give a value of the type that is named.")
NO_RESOURCES = _refused("no-resources", "Give the block a list `resources` with at least one entry, or remove it.")
REPLICAS = _refused("replicas", "Give replicas of 2 or more; remove the entry to share nothing.")
RESOURCE_NAME = _refused("resource-name", "Use the name under which the GPUs are offered: nvidia.com/gpu.")
DEVICES = _refused("devices", "Leave `devices` out: only `all` is honoured.")
VALUE = _refused("value", "Give a value of the form that is named.")

FLAG = Rule(
    "k8s-plugin-flag", Severity.ERROR, _PLUGIN_EXITS, "Use one of the allowed values, or leave the key out.", _MAIN
)
MPS_MIXED = Rule(
    "k8s-plugin-mps-mixed",
    Severity.ERROR,
    _PLUGIN_EXITS,
    "MPS and MIG do not go together: use migStrategy none, or remove the mps block.",
    _MAIN,
)
MPS_ROOT = Rule(
    "k8s-plugin-mps-root",
    Severity.ERROR,
    _PLUGIN_EXITS,
    "Set flags.mpsRoot, or the variable MPS_ROOT, as chart and operator do: /run/nvidia/mps.",
    _MAIN,
)
MPS_ROOT_ASSUMED = Rule(
    "k8s-plugin-mps-root-assumed",
    Severity.INFO,
    "Without mpsRoot the device plugin exits; the Helm chart and the GPU Operator set it by a variable.",
    "Set flags.mpsRoot where neither of them starts the plugin.",
    _MAIN,
)
MPS_REPLICAS = _ignored(
    "mps-replicas",
    "The MPS daemon exits 1, and the plugin waits for it for ever: the node offers no GPU.",
    "At most 48 replicas; at most 16 below compute capability 7.5.",
    "k8s-device-plugin v0.20.0 cmd/mps-control-daemon/mps/device.go; run",
)
MPS_NO_DAEMON = _ignored(
    "mps-no-daemon",
    "The plugin waits for ever for an MPS daemon that is never started: the node offers no GPU.",
    "Name the resource that the node has: nvidia.com/gpu.",
    "k8s-device-plugin v0.20.0 internal/plugin/mps.go, cmd/mps-control-daemon/mps/manager.go; run",
)
MPS_AND_TIME_SLICING = _ignored(
    "mps-and-time-slicing",
    "mps wins and timeSlicing is dropped without a word.",
    "Keep one of the two blocks.",
    f"{_API}/sharing.go; run",
)
MPS_AND_MIG = _ignored(
    "mps-and-mig",
    "GPU feature discovery exits on a node with a card in MIG mode, so that no MPS daemon is ever started there.",
    "Disable MIG on every card of the node, or remove the mps block.",
    "k8s-device-plugin v0.20.0 internal/lm/nvml.go",
)
RENAME = _ignored(
    "rename",
    "`rename` is not honoured: the programs warn in their log and go on.",
    "Remove it; `renameByDefault: true` adds `.shared` to the name.",
)
PER_DEVICE = _ignored(
    "per-device",
    "`devices` is not honoured: all devices of the resource are shared.",
    "Remove it; give cards that are to be shared otherwise a node of their own.",
)
RESOURCES = _ignored(
    "resources",
    "`resources` is not honoured: the programs warn in their log and offer the default names.",
    "Remove the block.",
)
SAME_NAME = _ignored(
    "same-name",
    "Of two entries of one name the plugin offers the larger number and feature discovery labels the first.",
    "Keep one of the entries.",
    "k8s-device-plugin v0.20.0 internal/rm/device_map.go, internal/lm/resource.go; run",
)
NO_SUCH_RESOURCE = Rule(
    "k8s-plugin-no-such-resource",
    Severity.WARNING,
    "An entry whose resource is not on the node is skipped without a word: nothing is shared by it.",
    "Use the name under which the GPUs are offered: nvidia.com/gpu, or nvidia.com/mig-PROFILE under migStrategy mixed.",
    "k8s-device-plugin v0.20.0 internal/rm/device_map.go; run",
)
MISPLACED = _ignored(
    "misplaced-key",
    "The key stands where nobody reads it: unknown keys are dropped without a word.",
    "Move the key to where it belongs.",
    "NVIDIA/k8s-device-plugin#1433, #816; run",
)
MISSPELT = _ignored(
    "misspelt-key", "Unknown keys are dropped without a word.", "Write the key as documented.", f"{_API}; run"
)
UNKNOWN_KEY = Rule(
    "k8s-plugin-unknown-key",
    Severity.WARNING,
    "Unknown keys are dropped without a word.",
    "Remove the key.",
    f"{_API}; run",
)
NO_STRATEGY = _ignored(
    "no-list-strategy",
    "With an empty deviceListStrategy a container is given a GPU and told nothing of it.",
    "Leave the key out, or use envvar.",
    "k8s-device-plugin v0.20.0 internal/plugin/server.go getAllocateResponse",
)
OVERRULED = _ignored(
    "overruled",
    "A variable of the DaemonSet beats the file.",
    "Change the chart or ClusterPolicy that sets the variable, or remove the key from the file.",
    f"{_API}/flags.go; run",
)
OVERRULED_ALIKE = Rule(
    "k8s-plugin-overruled-alike",
    Severity.INFO,
    "A variable of the DaemonSet beats the file's migStrategy none; on cards without MIG all strategies are alike.",
    "Leave migStrategy out of the file, or keep MIG off on the nodes that run it.",
    f"{_API}/flags.go; run",
)
CARDS = _ignored(
    "cards",
    "The device plugin exits 1 at every start, because the node's cards are not as the config demands.",
    "Cut the cards as migStrategy demands, or use migStrategy mixed.",
    "k8s-device-plugin v0.20.0 internal/rm/device_map.go",
)
IMEX_REQUIRED = _ignored(
    "imex-required",
    "The device plugin exits 1 at every start, because an IMEX channel that is required is not on the node.",
    "Create the channel's device file before the plugin starts, or leave `required` out.",
    "k8s-device-plugin v0.20.0 internal/imex/imex.go; run",
)
IMEX_CHANNEL = Rule(
    "k8s-plugin-imex-channel",
    Severity.WARNING,
    "An IMEX channel that is not on the node is passed over: containers do not get it.",
    "Create the channel's device file before the plugin starts.",
    "k8s-device-plugin v0.20.0 internal/imex/imex.go; run",
)
INVALID_LABELS = _ignored(
    "invalid-labels",
    "GPU feature discovery labels the node X-MIG-INVALID with count 0.",
    "Cut every card into instances of one profile, or use migStrategy mixed.",
    "k8s-device-plugin v0.20.0 internal/lm/mig-strategy.go",
)
RANDOM_LABELS = Rule(
    "k8s-plugin-random-labels",
    Severity.WARNING,
    "With several GPU models on a node its labels are one model's or the other's, at random at each start.",
    "Do not select nodes by these labels; keep to one model a node.",
    "k8s-device-plugin v0.20.0 internal/lm/mig-strategy.go newGPULabelers",
)

BY_KIND = {
    "version": VERSION,
    "no-resources": NO_RESOURCES,
    "replicas": REPLICAS,
    "name": RESOURCE_NAME,
    "devices": DEVICES,
}
"""Rules for what an unmarshaller refuses; VALUE for all others."""

RULES = (
    *(YAML, VERSION, TYPE, NO_RESOURCES, REPLICAS, RESOURCE_NAME, DEVICES, VALUE, FLAG, MPS_MIXED, MPS_ROOT),
    *(MPS_ROOT_ASSUMED, MPS_REPLICAS, MPS_NO_DAEMON, MPS_AND_TIME_SLICING, MPS_AND_MIG, RENAME, PER_DEVICE, RESOURCES),
    *(
        SAME_NAME,
        NO_SUCH_RESOURCE,
        MISPLACED,
        MISSPELT,
        UNKNOWN_KEY,
        NO_STRATEGY,
        OVERRULED,
        OVERRULED_ALIKE,
        CARDS,
        INVALID_LABELS,
    ),
    *(IMEX_REQUIRED, IMEX_CHANNEL, RANDOM_LABELS),
)
