"""The rules for those who ask for GPUs and for what bounds them: pods that are refused, pend, fail, or see too much."""

from __future__ import annotations

from hybridgpu.model.finding import Rule, Severity

_API = "kube-apiserver 1.36, run"
_PLUGIN = "k8s-device-plugin v0.20.0"

REFUSED = Rule(
    "k8s-ask-refused",
    Severity.ERROR,
    "The API server refuses the pod, and every object that describes one: an extended resource is a whole number, with "
    "a limit, and a request beside it must be equal to it.",
    "Give the number as a limit alone: the request follows it.",
    f"{_API}; Kubernetes docs, extended resources",
)
MISPLACED = Rule(
    "k8s-ask-misplaced",
    Severity.ERROR,
    "kubectl's strict validation refuses the object; applied without it the key is dropped, and the pods start without "
    "a GPU.",
    "Write resources: {limits: {nvidia.com/gpu: N}} in the container.",
    f"{_API}, fieldValidation; Kubernetes core/v1 ResourceRequirements",
)
NAME = Rule(
    "k8s-ask-name",
    Severity.ERROR,
    "Nobody ever offers a resource of this name: the API server refuses the pod, or it pends for ever.",
    "Ask for the name under which the GPUs are offered: nvidia.com/gpu, nvidia.com/mig-PROFILE.",
    f"{_PLUGIN} internal/rm; {_API}",
)
NOT_OFFERED = Rule(
    "k8s-ask-not-offered",
    Severity.ERROR,
    "No node offers the resource: the pod pends for ever.",
    "Ask for a name that is offered, or change the config that renames or cuts the GPUs.",
    f"{_PLUGIN} internal/rm device_map.go, api/config/v1 replicas.go; run",
)
MORE_THAN_ONE = Rule(
    "k8s-ask-more-than-one-share",
    Severity.ERROR,
    "The device plugin refuses more than one share for a container: the pod fails with UnexpectedAdmissionError and "
    "stays until it is deleted.",
    "Ask for 1, or set failRequestsGreaterThanOne: false; two shares are no more GPU than one.",
    f"{_PLUGIN} internal/rm/rm.go ValidateRequest; run",
)
MORE_THAN_ONE_SOMEWHERE = Rule(
    "k8s-ask-more-than-one-share-somewhere",
    Severity.WARNING,
    "Where the pod lands on a node whose config refuses more than one share, it fails with UnexpectedAdmissionError.",
    "Ask for 1, or keep the pod to nodes of another config by a nodeSelector.",
    f"{_PLUGIN} internal/rm/rm.go ValidateRequest; run",
)
NEVER_FITS = Rule(
    "k8s-ask-never-fits",
    Severity.ERROR,
    "A pod's GPUs all come from one node, and none has so many: the pod pends for ever.",
    "Ask for no more than a node offers.",
    "kube-scheduler, NodeResourcesFit",
)
SHM = Rule(
    "k8s-ask-own-shm-under-mps",
    Severity.WARNING,
    "Under MPS the plugin mounts the daemon's shared memory on /dev/shm. A volume of the pod's own at that path and it "
    "hide each other: CUDA programs do not reach the MPS daemon.",
    "Take the mount of /dev/shm out of the pod: the daemon's is there, as large as half of the node's memory.",
    f"{_PLUGIN} internal/plugin/server.go; NVIDIA/k8s-device-plugin#805",
)
VISIBLE = Rule(
    "k8s-ask-visible-devices",
    Severity.WARNING,
    "A container that sets NVIDIA_VISIBLE_DEVICES overrules what it was given: it sees cards of other pods, uncounted.",
    "Remove the variable: the device plugin sets it.",
    "NVIDIA container toolkit, accept-nvidia-visible-devices-envvar-when-unprivileged; kubelet, order of variables",
)
SELECTOR = Rule(
    "k8s-ask-selects-nothing",
    Severity.WARNING,
    "No node has the label that the pod selects: it pends for ever.",
    "Select a label and a value that the nodes have.",
    "kube-scheduler, NodeAffinity",
)

NOT_TOLERATED = Rule(
    "k8s-ask-taint-not-tolerated",
    Severity.WARNING,
    "Every node that offers the GPUs has a taint that the pods do not tolerate: they pend for ever.",
    "Add a toleration of the taint to the pods.",
    "kube-scheduler, TaintToleration; Kubernetes docs, ExtendedResourceToleration",
)

QUOTA_UNENFORCED = Rule(
    "k8s-quota-not-enforced",
    Severity.WARNING,
    "Kubernetes takes this key of a quota and never counts by it: pods get as many GPUs as there are.",
    "Of extended resources only keys with `requests.` count: requests.nvidia.com/gpu.",
    f"{_API}; Kubernetes docs, resource quotas for extended resources",
)
BOUND_REFUSED = Rule(
    "k8s-bound-refused",
    Severity.ERROR,
    "The API server refuses the whole ResourceQuota or LimitRange: nothing is bounded.",
    "Write requests.nvidia.com/gpu in a quota and nvidia.com/gpu in a LimitRange, with a whole number.",
    _API,
)
BOUND_NAME = Rule(
    "k8s-bound-name",
    Severity.WARNING,
    "Nobody ever offers a resource of this name, so that nothing is bounded.",
    "Write the name under which the GPUs are offered.",
    f"{_PLUGIN} internal/rm; {_API}",
)
BOUND_NOT_OFFERED = Rule(
    "k8s-bound-not-offered",
    Severity.WARNING,
    "The GPUs are offered under other names, which nothing bounds here.",
    "Bound the names that are offered.",
    f"{_PLUGIN} internal/rm; {_API}",
)
BOUND_HALF = Rule(
    "k8s-quota-half",
    Severity.WARNING,
    "Shares or MIG devices have names of their own beside the cards that the quota counts: any number of them is given "
    "out.",
    "Give the quota a number for each of the names.",
    f"{_PLUGIN} api/config/v1 replicas.go; {_API}",
)
LIMIT_FILLS = Rule(
    "k8s-limitrange-fills-in",
    Severity.WARNING,
    "What a LimitRange allows a container at most is also its default: every container of the namespace that asks for "
    "no GPU is given so many.",
    'Set `default: {nvidia.com/gpu: "0"}` beside max, or use a ResourceQuota.',
    f"LimitRange defaulting, {_API}",
)
LIMIT_REFUSES = Rule(
    "k8s-limitrange-refuses",
    Severity.WARNING,
    "Every pod of the namespace with a container that asks for no GPU is refused.",
    "Remove the field, or set default beside it.",
    f"LimitRanger admission, {_API}",
)

RULES = (
    *(REFUSED, MISPLACED, NAME, NOT_OFFERED, MORE_THAN_ONE, MORE_THAN_ONE_SOMEWHERE, NEVER_FITS, SHM, VISIBLE),
    *(SELECTOR, NOT_TOLERATED),
    *(QUOTA_UNENFORCED, BOUND_REFUSED, BOUND_NAME, BOUND_NOT_OFFERED, BOUND_HALF, LIMIT_FILLS, LIMIT_REFUSES),
)
