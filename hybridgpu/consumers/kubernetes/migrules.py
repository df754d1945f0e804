"""The rules for a mig-parted file: refused, said to be applied and is not, never counted as applied."""

from __future__ import annotations

from hybridgpu.model.finding import Rule, Severity

_SPEC = "mig-parted v0.15.0 api/spec/v1/spec.go; run"
_ASSERT = "mig-parted v0.15.0 cmd/nvidia-mig-parted/assert"
_REFUSED = "mig-parted refuses the whole file, whichever config is asked for; mig-manager sets state failed."
_AGAIN = (
    "The config never counts as applied: every start of mig-manager evicts its operands and destroys and makes all "
    "MIG devices again."
)

YAML = Rule("k8s-mig-yaml", Severity.ERROR, _REFUSED, "Mend the line, or the one before it.", _SPEC)
FORM = Rule("k8s-mig-form", Severity.ERROR, _REFUSED, "Give what is named; keys count with their case.", _SPEC)
PROFILE = Rule(
    "k8s-mig-profile",
    Severity.ERROR,
    _REFUSED,
    "Write a profile as nvidia-smi does: 1g.10gb, 1g.10gb+me.",
    "go-nvlib v0.12.0 mig_profile.go; run",
)
UNKNOWN_PROFILE = Rule(
    "k8s-mig-unknown-profile",
    Severity.ERROR,
    "Where no card of the node knows a profile of a config, mig-parted clears all MIG devices and reports success.",
    "Use a profile of the card; `hybridgpu mig profiles MODEL` lists them.",
    "mig-parted v0.15.0 pkg/types/mig_config.go Flatten, pkg/mig/config/config.go SetMigConfig; run over a mock NVML",
)
DOES_NOT_FIT = Rule(
    "k8s-mig-does-not-fit",
    Severity.ERROR,
    "No order of creation fits: all MIG devices of the card are cleared and mig-manager sets state failed.",
    "`hybridgpu mig layouts MODEL` lists what a card can hold.",
    "mig-parted v0.15.0 pkg/mig/config/config.go iteratePermutationsUntilSuccess",
)
FILTER_NEVER = Rule(
    "k8s-mig-filter-never",
    Severity.ERROR,
    "A device-filter that is no PCI id of NVIDIA matches no card; mig-parted does not say so.",
    'Write device and vendor as one number with 0x before it: "0x20B010DE".',
    "mig-parted v0.15.0 pkg/types/device.go, api/spec/v1/helpers.go",
)
NO_DEVICES = Rule(
    "k8s-mig-no-devices",
    Severity.WARNING,
    "An index that no card has is passed over without a word.",
    "Give indices as nvidia-smi shows them, or `all`.",
    "mig-parted v0.15.0 api/spec/v1/helpers.go; run",
)
NEVER_EQUAL = Rule(
    "k8s-mig-never-equal",
    Severity.WARNING,
    _AGAIN,
    "Leave entries of count 0 out, and write profiles as the driver does.",
    "mig-parted v0.15.0 pkg/types/mig_config.go Equals; run over a mock NVML",
)
TWO_MODES = Rule(
    "k8s-mig-two-modes",
    Severity.WARNING,
    _AGAIN,
    "Let no card be in two entries of different mig-enabled.",
    f"{_ASSERT}/mode.go",
)
PARTIAL = Rule(
    "k8s-mig-partial-cover",
    Severity.WARNING,
    _AGAIN,
    "Let every card of the node be in an entry: `devices: all`, or every index.",
    f"{_ASSERT}/config.go; NVIDIA/gpu-operator#322",
)
COVER_ASSUMED = Rule(
    "k8s-mig-cover-assumed",
    Severity.INFO,
    "A config by indices holds only on a node that has no other cards.",
    "Use `devices: all`, or give the node's labels (kubectl get node -o yaml) too.",
    f"{_ASSERT}/config.go",
)
NOT_CAPABLE = Rule(
    "k8s-mig-not-capable",
    Severity.WARNING,
    _AGAIN,
    "Keep cards without MIG out by a device-filter, and give them an entry of their own with mig-enabled false.",
    f"{_ASSERT}/mode.go",
)
NO_ALL_DISABLED = Rule(
    "k8s-mig-no-all-disabled",
    Severity.WARNING,
    "The GPU Operator labels new nodes all-disabled; with a file of one's own the generated configs are gone.",
    "Add all-disabled: [{devices: all, mig-enabled: false}].",
    "NVIDIA/gpu-operator#281; GPU Operator assets/state-mig-manager",
)

RULES = (
    *(YAML, FORM, PROFILE, UNKNOWN_PROFILE, DOES_NOT_FIT, FILTER_NEVER, NO_DEVICES, NEVER_EQUAL, TWO_MODES, PARTIAL),
    *(COVER_ASSUMED, NOT_CAPABLE, NO_ALL_DISABLED),
)
