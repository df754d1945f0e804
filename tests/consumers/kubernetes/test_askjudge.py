"""Who asks for GPUs in vain is told so, where and why; who asks as the site offers hears nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybridgpu.consumers.kubernetes import askrules
from hybridgpu.consumers.kubernetes.askrules import RULES
from tests.consumers.kubernetes.given_files import (
    CUT,
    CUT_OR_NOT,
    MIXED,
    MPS,
    PLAIN,
    RENAMED,
    SHARED,
    SINGLE,
    STRICT,
    config_map,
    judged,
    limit_range,
    node,
    pod,
    quota,
    sharing,
)

POLICY = """apiVersion: nvidia.com/v1
kind: ClusterPolicy
metadata: {name: cluster-policy}
spec: {devicePlugin: {config: {name: configs%s}}, mig: {strategy: %s}}
"""
DEPLOYMENT = """apiVersion: apps/v1
kind: Deployment
metadata: {name: d, namespace: team}
spec:
  template:
    spec:
      nodeSelector: {nvidia.com/device-plugin.config: %s}
      containers:
      - {name: c, image: cuda, resources: {limits: {nvidia.com/gpu: %s}}}
"""
WORKFLOW = """apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: w}
spec:
  templates:
  - name: t
    container: {image: a, resources: {limits: {nvidia.com/gpu: "{{inputs.parameters.gpus}}"}}}
"""
SHM = "volumeMounts: [{name: shm, mountPath: /dev/shm}]"
MEMORY = "volumes: [{name: shm, emptyDir: {medium: Memory}}]"
ALL = "env: [{name: NVIDIA_VISIBLE_DEVICES, value: %s}]"
TWO_KEYS = config_map(whole=PLAIN, shared=STRICT)
TWO_NAMES = config_map(whole=PLAIN, shared=RENAMED)
LABEL = "nvidia.com/gpu.present: 'true', nvidia.com/device-plugin.config: %s"

TAINTED = node("gpu1", allocatable="nvidia.com/gpu: 8") + (
    "spec: {taints: [{key: nvidia.com/gpu, value: present, effect: NoSchedule}]}\n"
)
OWN_RENAME = "sharing: {timeSlicing: {resources: [{name: gpu, replicas: 2, rename: gpu-small}]}}"
OPERATOR_VALUES = "driver: {enabled: true}\ndevicePlugin: {enabled: true}\nmigManager: {enabled: true}\n"

Case = tuple[str, tuple[str, ...], str, tuple[str, ...]]

FIRING: dict[str, Case] = {
    # what: rule, texts (the last is the one that is judged), place in it, words
    "limit and request differ": (
        *(askrules.REFUSED.id, (pod("nvidia.com/gpu: 2", requests="nvidia.com/gpu: 1"),), "8:26"),
        ("requests 1", "limit of 2", "equal"),
    ),
    "request alone": (
        *(askrules.REFUSED.id, (pod("cpu: 1", requests="nvidia.com/gpu: 1"),), "8:46"),
        ("without a limit",),
    ),
    "half a GPU": (askrules.REFUSED.id, (pod('nvidia.com/gpu: "0.5"'),), "8:26", ("0.5", "integer")),
    "milli GPUs": (askrules.REFUSED.id, (pod("nvidia.com/gpu: 500m"),), "8:26", ("500m", "integer")),
    "negative": (askrules.REFUSED.id, (pod("nvidia.com/gpu: -1"),), "8:26", ("-1",)),
    "a word": (askrules.REFUSED.id, (pod("nvidia.com/gpu: one"),), "8:26", ("one", "quantity")),
    "in the pod's resources": (
        *(askrules.REFUSED.id, (pod("cpu: 1", spec="resources: {limits: {nvidia.com/gpu: 1}}"),), "9:24"),
        ("container",),
    ),
    **{
        f"in the wrong place: {container}": (
            *(askrules.MISPLACED.id, (pod("cpu: 1", container=container),), f"9:{column}"),
            ("gpu stands under", words, "resources: {limits: {nvidia.com/gpu: N}}"),
        )
        for container, column, words in (
            ("limits: {nvidia.com/gpu: 1}", 14, "limits of a container"),
            ("limit: {nvidia.com/gpu: 1}", 13, "did you mean limits?"),
            ("resource: {limits: {nvidia.com/gpu: 1}}", 25, "did you mean resources?"),
            ("nvidia.com/gpu: 1", 5, "a container itself"),
            ("Resources: {limits: {gpu: 1}}", 26, "did you mean resources?"),
        )
    },
    "in resources, without limits": (
        askrules.MISPLACED.id,
        (pod().replace("limits: {nvidia.com/gpu: 1}", "nvidia.com/gpu: 1"),),
        *("8:17", ("under resources of",)),
    ),
    "under limit": (
        *(askrules.MISPLACED.id, (pod().replace("limits", "limit"),), "8:25"),
        ("resources.limit ", "did you mean limits?"),
    ),
    "under the pod's limits": (
        *(askrules.MISPLACED.id, (pod("cpu: 1", spec="limits: {nvidia.com/gpu: 1}"),), "9:12"),
        ("under spec.limits",),
    ),
    "gpuu": (askrules.NAME.id, (pod("nvidia.com/gpuu: 1"),), "8:26", ("gpuu", "nvidia.com/gpu?")),
    "GPU": (askrules.NAME.id, (pod("nvidia.com/GPU: 1"),), "8:26", ("GPU", "nvidia.com/gpu?")),
    "nvidia/gpu": (askrules.NAME.id, (pod("nvidia/gpu: 1"),), "8:26", ("nvidia/gpu", "nvidia.com/gpu?")),
    "gpu": (askrules.NAME.id, (pod("gpu: 1"),), "8:26", ("API server refuses", "nvidia.com/gpu?")),
    "a profile of no card": (askrules.NAME.id, (pod("nvidia.com/mig-1g.11gb: 1"),), "8:26", ("mig-1g.10gb?",)),
    "a plus in a name": (askrules.NAME.id, (pod("nvidia.com/mig-1g.10gb+me: 1"),), "8:26", ("mig-1g.10gb.me?",)),
    "requests. in a pod": (askrules.NAME.id, (pod("requests.nvidia.com/gpu: 1"),), "8:26", ("nvidia.com/gpu?",)),
    "renamed": (
        *(askrules.NOT_OFFERED.id, (config_map(any=RENAMED), pod()), "8:26"),
        ("nvidia.com/gpu.shared", "renameByDefault"),
    ),
    "not renamed": (
        *(askrules.NOT_OFFERED.id, (config_map(any=SHARED), pod("nvidia.com/gpu.shared: 1")), "8:26"),
        ("no config in force renames", "write nvidia.com/gpu"),
    ),
    "an own rename": (
        askrules.NOT_OFFERED.id,
        (config_map(any=OWN_RENAME), pod("nvidia.com/gpu-small: 1")),
        *("8:26", ("rename", "nvidia.com/gpu")),
    ),
    "MIG names under single": (
        *(askrules.NOT_OFFERED.id, (config_map(any=SINGLE), pod("nvidia.com/mig-1g.10gb: 1")), "8:26"),
        ("migStrategy mixed", "nvidia.com/gpu"),
    ),
    "MIG names under the operator's own default": (
        *(askrules.NOT_OFFERED.id, (OPERATOR_VALUES, pod("nvidia.com/mig-1g.10gb: 1")), "8:26"),
        ("migStrategy mixed",),
    ),
    "MIG took the cards": (
        *(askrules.NOT_OFFERED.id, (config_map(any=MIXED), CUT, pod()), "8:26"),
        ("MIG", "nvidia.com/mig-1g.10gb"),
    ),
    "MIG took the cards of labelled nodes": (
        askrules.NOT_OFFERED.id,
        (config_map(any=MIXED), CUT_OR_NOT, node("gpu1", "nvidia.com/mig.config: all-1g.10gb"), pod()),
        *("8:26", ("MIG", "nvidia.com/mig-1g.10gb")),
    ),
    "MIG took the cards, says the Node": (
        askrules.NOT_OFFERED.id,
        (config_map(any=MIXED), node("gpu1", allocatable="nvidia.com/gpu: '0', nvidia.com/mig-1g.10gb: '7'"), pod()),
        *("8:26", ("MIG", "nvidia.com/mig-1g.10gb")),
    ),
    "a profile that no card is cut into": (
        *(askrules.NOT_OFFERED.id, (config_map(any=MIXED), CUT_OR_NOT, pod("nvidia.com/mig-2g.20gb: 1")), "8:26"),
        ("mig-1g.10gb",),
    ),
    "only Nodes are known": (
        *(askrules.NOT_OFFERED.id, (node("gpu1", allocatable="nvidia.com/gpu.shared: 16"), pod()), "8:26"),
        ("nvidia.com/gpu.shared",),
    ),
    "the config that is selected renames": (
        *(askrules.NOT_OFFERED.id, (TWO_NAMES, DEPLOYMENT % ("shared", 1)), "9:53"),
        ("nvidia.com/gpu.shared",),
    ),
    "two of what is strict": (
        *(askrules.MORE_THAN_ONE.id, (config_map(any=STRICT), pod("nvidia.com/gpu: 2")), "8:26"),
        ("failRequestsGreaterThanOne", "2", "UnexpectedAdmissionError"),
    ),
    "two under mps": (
        *(askrules.MORE_THAN_ONE.id, (config_map(any=MPS), pod("nvidia.com/gpu: 2")), "8:26"),
        ("failRequestsGreaterThanOne", "2", "mps"),
    ),
    "two where the strict one is selected": (
        *(askrules.MORE_THAN_ONE.id, (TWO_KEYS, DEPLOYMENT % ("shared", 2)), "9:53"),
        ("failRequestsGreaterThanOne",),
    ),
    "two where the strict one is labelled": (
        *(askrules.MORE_THAN_ONE.id, (TWO_KEYS, node("gpu1", LABEL % "shared"), pod("nvidia.com/gpu: 2")), "8:26"),
        ("failRequestsGreaterThanOne",),
    ),
    "two, and one config of two is strict": (
        *(askrules.MORE_THAN_ONE_SOMEWHERE.id, (TWO_KEYS, pod("nvidia.com/gpu: 2")), "8:26"),
        ("'shared'", "failRequestsGreaterThanOne"),
    ),
    "two, and nodes without a label are not strict": (
        *(askrules.MORE_THAN_ONE_SOMEWHERE.id, (POLICY % ("", "none"), config_map(a=STRICT), pod("nvidia.com/gpu: 2"))),
        *("8:26", ("'a'",)),
    ),
    "more than a node has": (
        *(askrules.NEVER_FITS.id, (node("gpu1", allocatable="nvidia.com/gpu: 4"), pod("nvidia.com/gpu: 8")), "8:26"),
        ("8", "gpu1, offers 4"),
    ),
    "more than the selected node has": (
        askrules.NEVER_FITS.id,
        (
            node("a", "nvidia.com/gpu.present: 'true', pool: big", "nvidia.com/gpu: 8")
            + node("b", "nvidia.com/gpu.present: 'true', pool: small", "nvidia.com/gpu: 2"),
            pod("nvidia.com/gpu: 4", spec="nodeSelector: {pool: small}"),
        ),
        *("8:26", ("b, offers 2",)),
    ),
    "/dev/shm under mps": (
        *(askrules.SHM.id, (config_map(any=MPS), pod(container=SHM, spec=MEMORY)), "9:43"),
        ("/dev/shm", "MPS"),
    ),
    "all visible": (askrules.VISIBLE.id, (pod(container=ALL % "all"),), "9:49", ("'all'",)),
    "indices visible": (askrules.VISIBLE.id, (pod("cpu: 1", container=ALL % '"0,1"'),), "9:49", ("'0,1'",)),
    "a key that is not there": (
        *(askrules.SELECTOR.id, (TWO_KEYS, DEPLOYMENT % ("shred", 1)), "7:22"),
        ("shred", "'shared'?"),
    ),
    "a product that no Node has": (
        askrules.SELECTOR.id,
        (
            node("gpu1", "nvidia.com/gpu.count: '4', nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3"),
            pod(spec="nodeSelector: {nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3-SHARED}"),
        ),
        *("9:18", ("'NVIDIA-H100-80GB-HBM3'?",)),
    ),
    "a MIG config that is not there": (
        *(askrules.SELECTOR.id, (CUT, pod(spec="nodeSelector: {nvidia.com/mig.config: all-1g.5gb}")), "9:18"),
        ("all-1g.5gb", "'all-1g.10gb'?"),
    ),
    "a label that no Node has": (
        askrules.SELECTOR.id,
        (node("gpu1", "nvidia.com/gpu.present: 'true', pool: big"), pod(spec="nodeSelector: {pol: big}")),
        *("9:18", ("pol='big'", "no Node", "did you mean pool?")),
    ),
    "a value that no Node has, of a label of one's own": (
        askrules.SELECTOR.id,
        (node("gpu1", "nvidia.com/gpu.present: 'true', pool: big"), pod(spec="nodeSelector: {pool: bigg}")),
        *("9:18", ("pool='bigg'", "'big'?")),
    ),
    "labels of two Nodes": (
        askrules.SELECTOR.id,
        (
            node("a", "nvidia.com/gpu.present: 'true', pool: big, zone: i")
            + node("b", "nvidia.com/gpu.present: 'true', pool: small, zone: k"),
            pod(spec="nodeSelector: {pool: big, zone: k}"),
        ),
        *("9:18", ("pool=big, zone=k", "no Node has all of them")),
    ),
    "no toleration": (
        *(askrules.NOT_TOLERATED.id, (TAINTED, pod()), "8:26"),
        ("nvidia.com/gpu=present:NoSchedule", "operator: Exists", "ExtendedResourceToleration"),
    ),
    "no toleration of another taint": (
        askrules.NOT_TOLERATED.id,
        (TAINTED.replace("nvidia.com/gpu, value: present", "dedicated, value: gpu"), pod()),
        *("8:26", ("dedicated=gpu:NoSchedule", "{key: dedicated")),
    ),
    **{
        f"a toleration with {what}": (
            askrules.NOT_TOLERATED.id,
            (TAINTED, pod(spec=f"tolerations: [{{{toleration}}}]")),
            *("9:17", (word, "nvidia.com/gpu=present:NoSchedule")),
        )
        for what, toleration, word in (
            ("another value", "key: nvidia.com/gpu, operator: Equal, value: 'true', effect: NoSchedule", "'true'"),
            ("no value", "key: nvidia.com/gpu", "the value ''"),
            ("another effect", "key: nvidia.com/gpu, operator: Exists, effect: NoExecute", "effect NoExecute"),
            ("a slip in its key", "key: nvidia/gpu, operator: Exists", "did you mean nvidia.com/gpu?"),
        )
    },
    "a quota on limits.": (
        *(askrules.QUOTA_UNENFORCED.id, (quota("limits.nvidia.com/gpu: 4"),), "5:10"),
        ("limits.nvidia.com/gpu", "requests.nvidia.com/gpu"),
    ),
    "a quota on limits. that is smaller": (
        askrules.QUOTA_UNENFORCED.id,
        (quota("limits.nvidia.com/gpu: 4, requests.nvidia.com/gpu: 8"),),
        *("5:10", ("limits.nvidia.com/gpu",)),
    ),
    "a quota without requests.": (
        *(askrules.QUOTA_UNENFORCED.id, (quota("nvidia.com/gpu: 4"),), "5:10"),
        ("never enforced", "requests.nvidia.com/gpu"),
    ),
    **{
        f"a quota on {word}.": (
            *(askrules.QUOTA_UNENFORCED.id, (quota(f"{word}.nvidia.com/gpu: 4"),), "5:10"),
            ("never enforced", f"{word}.nvidia.com/gpu", "write requests.nvidia.com/gpu"),
        )
        for word in ("request", "reqests", "requsts", "limit")
    },
    "a quota on Requests.": (
        *(askrules.BOUND_REFUSED.id, (quota("Requests.nvidia.com/gpu: 4"),), "5:10"),
        ("Requests.nvidia.com/gpu",),
    ),
    "a limit range on a name that is none": (
        *(askrules.BOUND_NAME.id, (limit_range("type: Container, max: {nvidia.com/gpus: 1}"),), "6:29"),
        ("nvidia.com/gpus", "nvidia.com/gpu?"),
    ),
    "a quota on gpu": (askrules.BOUND_REFUSED.id, (quota("requests.gpu: 4"),), "5:10", ("requests.gpu",)),
    "a quota of no number": (
        *(askrules.BOUND_REFUSED.id, (quota("requests.nvidia.com/gpu: many"),), "5:10"),
        ("many",),
    ),
    "a limit range on requests.": (
        *(askrules.BOUND_REFUSED.id, (limit_range("type: Container, max: {requests.nvidia.com/gpu: 1}"),), "6:29"),
        ("requests.nvidia.com/gpu",),
    ),
    "a quota on gpuu": (
        *(askrules.BOUND_NAME.id, (quota("requests.nvidia.com/gpuu: 4"),), "5:10"),
        ("gpuu", "nvidia.com/gpu?"),
    ),
    "a quota after a rename": (
        *(askrules.BOUND_NOT_OFFERED.id, (config_map(any=RENAMED), quota("requests.nvidia.com/gpu: 8")), "5:10"),
        ("nvidia.com/gpu.shared", "requests.nvidia.com/gpu.shared"),
    ),
    "a quota of none after a rename": (
        *(askrules.BOUND_NOT_OFFERED.id, (config_map(any=RENAMED), quota("requests.nvidia.com/gpu: 0")), "5:10"),
        ("requests.nvidia.com/gpu.shared",),
    ),
    "a quota after MIG": (
        *(askrules.BOUND_NOT_OFFERED.id, (config_map(any=MIXED), CUT, quota("requests.nvidia.com/gpu: 8")), "5:10"),
        ("MIG", "nvidia.com/mig-1g.10gb"),
    ),
    "a quota on MIG names under single": (
        askrules.BOUND_NOT_OFFERED.id,
        (POLICY % (", default: a", "single"), config_map(a=MIXED), quota("requests.nvidia.com/mig-1g.10gb: 8")),
        *("5:10", ("migStrategy mixed",)),
    ),
    "a limit range after a rename": (
        askrules.BOUND_NOT_OFFERED.id,
        (config_map(any=RENAMED), limit_range("type: Pod, max: {nvidia.com/gpu: 1}")),
        *("6:23", ("nvidia.com/gpu.shared",)),
    ),
    "a quota on one of two names": (
        *(askrules.BOUND_HALF.id, (TWO_NAMES, quota("requests.nvidia.com/gpu: 8")), "5:10"),
        ("requests.nvidia.com/gpu.shared",),
    ),
    "a quota on cards, some of which are cut": (
        *(askrules.BOUND_HALF.id, (config_map(any=MIXED), CUT_OR_NOT, quota("requests.nvidia.com/gpu: 8")), "5:10"),
        ("requests.nvidia.com/mig-1g.10gb",),
    ),
    "a quota, and an operator without a default": (
        askrules.BOUND_HALF.id,
        (POLICY % ("", "none"), config_map(a=RENAMED), quota("requests.nvidia.com/gpu: 8")),
        *("5:10", ("requests.nvidia.com/gpu.shared",)),
    ),
    "a maximum that is a default": (
        *(askrules.LIMIT_FILLS.id, (limit_range("type: Container, max: {nvidia.com/gpu: 2}"),), "6:29"),
        ("given 2", "default"),
    ),
    "a minimum that nobody without GPUs meets": (
        *(askrules.LIMIT_REFUSES.id, (limit_range("type: Container, min: {nvidia.com/gpu: 1}"),), "6:29"),
        ("min", "refused"),
    ),
}
CLEAN: dict[str, tuple[str, ...]] = {
    "nothing is known of the offer": (pod(),),
    "shares, and nothing is known": (pod("nvidia.com/gpu.shared: 1"),),
    "a profile, and nothing is known": (pod("nvidia.com/mig-1g.10gb: 2"),),
    "a quota, and nothing is known": (quota("requests.nvidia.com/gpu: 8, requests.cpu: 4, pods: 10"),),
    "a taint that is tolerated": (TAINTED, pod(spec="tolerations: [{key: nvidia.com/gpu, operator: Exists}]")),
    "every taint tolerated": (TAINTED, pod(spec="tolerations: [{operator: Exists}]")),
    "a taint, and its value": (TAINTED, pod(spec="tolerations: [{key: nvidia.com/gpu, value: present}]")),
    "a taint on one of two Nodes": (TAINTED + node("b", allocatable="nvidia.com/gpu: 8"), pod()),
    "a taint, and a pod bound to the node": (TAINTED, pod(spec="nodeName: gpu1")),
    "a taint that only puts off": (TAINTED.replace("NoSchedule", "PreferNoSchedule"), pod()),
    "a Node that is closed for a while": (TAINTED.replace("nvidia.com/gpu, v", "hybridgpu.io/closed, v"), pod()),
    "a Node that is not ready": (TAINTED.replace("nvidia.com/gpu, v", "node.kubernetes.io/not-ready, v"), pod()),
    "a label that Kubernetes sets, and Nodes by hand": (
        node("gpu1"),
        pod(spec="nodeSelector: {kubernetes.io/os: linux, nvidia.com/gpu.family: hopper}"),
    ),
    "labels of one Node": (
        node("gpu1", "nvidia.com/gpu.present: 'true', pool: big, zone: i"),
        pod(spec="nodeSelector: {pool: big, zone: i}"),
    ),
    "a label of one's own, and no Node": (config_map(any=PLAIN), pod(spec="nodeSelector: {pool: big}")),
    "a label of one's own, and Nodes without GPUs": (node("web1", "a: b"), pod(spec="nodeSelector: {pool: big}")),
    "a quota of another domain": (quota("requests.fabric.nvidia.com/gpu: 2"),),
    "labels and selectors that begin like a GPU": (
        pod(spec="nodeSelector: {nvidia.com/gpu.family: hopper, gpu: '1'}").replace(
            "{name: p,", "{name: p, labels: {nvidia.com/gpu: '1'}, annotations: {nvidia.com/gpu: x},"
        ),
    ),
    "a quota that says it twice": (quota("limits.nvidia.com/gpu: 8, requests.nvidia.com/gpu: 8"),),
    "exclusive": (config_map(any=PLAIN), pod("nvidia.com/gpu: 8"), quota("requests.nvidia.com/gpu: 8")),
    "a whole number in other words": (pod("nvidia.com/gpu: 1000m"),),
    "a number as text, and an equal request": (pod('nvidia.com/gpu: "2"', requests="nvidia.com/gpu: 2"),),
    "no GPU at all": (config_map(any=RENAMED), pod("nvidia.com/gpu: 0")),
    "time-slicing": (config_map(any=SHARED), pod(), quota("requests.nvidia.com/gpu: 8")),
    "two shares where they are allowed": (config_map(any=SHARED), pod("nvidia.com/gpu: 2")),
    "one share where more are not": (config_map(any=STRICT), pod()),
    "one share in each of two containers": (
        config_map(any=STRICT),
        pod(container="", spec="initContainers: [{name: i, image: b, resources: {limits: {nvidia.com/gpu: 1}}}]"),
    ),
    "renamed, and asked so": (
        config_map(any=RENAMED),
        pod("nvidia.com/gpu.shared: 1"),
        quota("requests.nvidia.com/gpu.shared: 8"),
    ),
    "renamed, and both names bounded": (
        config_map(any=RENAMED),
        quota('requests.nvidia.com/gpu: "0", requests.nvidia.com/gpu.shared: 8'),
    ),
    "two names, and both bounded": (TWO_NAMES, quota("requests.nvidia.com/gpu: 2, requests.nvidia.com/gpu.shared: 8")),
    "two names, and both asked for": (TWO_NAMES, pod("nvidia.com/gpu: 2"), pod("nvidia.com/gpu.shared: 1")),
    "two of the config that allows it": (TWO_KEYS, DEPLOYMENT % ("whole", 2)),
    "two where nodes are not strict": (TWO_KEYS, node("gpu1", LABEL % "whole"), pod("nvidia.com/gpu: 2")),
    "two of nodes that share nothing": (
        TWO_KEYS,
        pod("nvidia.com/gpu: 2", spec="nodeSelector: {nvidia.com/gpu.sharing-strategy: none}"),
    ),
    "two of a product that is not shared": (
        TWO_KEYS,
        pod("nvidia.com/gpu: 2", spec="nodeSelector: {nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB}"),
    ),
    "two, on nodes that an affinity keeps": (
        TWO_KEYS,
        pod(
            "nvidia.com/gpu: 2",
            spec="affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
            "[{matchExpressions: [{key: nvidia.com/gpu.sharing-strategy, operator: NotIn, values: [mps]}]}]}}}",
        ),
    ),
    "mps": (config_map(any=MPS), pod(), quota("requests.nvidia.com/gpu: 8")),
    "two under mps that allows it": (
        config_map(any=sharing("mps", "failRequestsGreaterThanOne: false")),
        pod("nvidia.com/gpu: 2"),
    ),
    "/dev/shm without mps": (config_map(any=SHARED), pod(container=SHM, spec=MEMORY)),
    "/dev/shm and nothing is known": (pod(container=SHM, spec=MEMORY),),
    "/dev/shm under mps of a container without GPUs": (config_map(any=MPS), pod("cpu: 1", container=SHM, spec=MEMORY)),
    "another mount under mps": (
        config_map(any=MPS),
        pod(container="volumeMounts: [{name: shm, mountPath: /dev/shm2}]", spec=MEMORY),
    ),
    "MIG mixed": (
        config_map(any=MIXED),
        CUT_OR_NOT,
        pod("nvidia.com/mig-1g.10gb: 2"),
        pod(),
        quota("requests.nvidia.com/mig-1g.10gb: 8, requests.nvidia.com/gpu: 1"),
    ),
    "MIG mixed, and the file is not given": (config_map(any=MIXED), pod("nvidia.com/mig-3g.40gb: 1"), pod()),
    "a quota on cards, and nobody says which are cut": (config_map(any=MIXED), quota("requests.nvidia.com/gpu: 8")),
    "a number that a workflow fills in": (WORKFLOW,),
    "MIG single": (config_map(any=SINGLE), CUT, pod("nvidia.com/gpu: 2"), quota("requests.nvidia.com/gpu: 8")),
    "MIG, and the strategy comes from elsewhere": (config_map(any=PLAIN), pod("nvidia.com/mig-1g.10gb: 1")),
    "MIG mixed, and the profile without a pod": (
        config_map(any=MIXED),
        CUT_OR_NOT,
        quota("requests.nvidia.com/mig-1g.10gb: 8, requests.nvidia.com/mig-2g.20gb: 4"),
    ),
    "MIG devices shared": (
        config_map(any=sharing(top="flags: {migStrategy: mixed}\n", resource="nvidia.com/mig-1g.10gb")),
        pod("nvidia.com/mig-1g.10gb: 1"),
    ),
    "MIG devices shared and renamed": (
        config_map(
            any=sharing(
                more="renameByDefault: true", top="flags: {migStrategy: mixed}\n", resource="nvidia.com/mig-1g.10gb"
            )
        ),
        pod("nvidia.com/mig-1g.10gb.shared: 1"),
    ),
    "a config that the plugin refuses is told elsewhere": (config_map(any=sharing(replicas=1)), pod()),
    "a policy names configs that are not given": (POLICY % (", default: a", "mixed"), pod("nvidia.com/gpu.shared: 1")),
    "a policy that leaves the strategy to the configs": (
        POLICY % (", default: any", '""'),
        config_map(any=MIXED),
        pod("nvidia.com/mig-1g.10gb: 1"),
    ),
    "the policy's strategy beats the config's": (
        POLICY % (", default: any", "mixed"),
        config_map(any=SINGLE),
        pod("nvidia.com/mig-1g.10gb: 1"),
    ),
    "no more than a node has": (node("gpu1", allocatable="nvidia.com/gpu: 4"), pod("nvidia.com/gpu: 4")),
    "more than the one node that tells": (
        node("a", allocatable="nvidia.com/gpu: 4") + node("b"),
        pod("nvidia.com/gpu: 8"),
    ),
    "a Node without GPUs": (node("gpu1", "role: control"), pod("nvidia.com/gpu: 8")),
    "nothing visible": (pod("cpu: 1", container=ALL % "void"), pod("cpu: 1", container=ALL % "none")),
    "visible by name of a field": (
        pod(container="env: [{name: NVIDIA_VISIBLE_DEVICES, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]"),
    ),
    "NVIDIA's own exporter": (
        pod("cpu: 1", container=ALL % "all").replace("image: cuda", "image: nvcr.io/nvidia/k8s/dcgm-exporter:4.2.0"),
    ),
    "a request that a LimitRange completes": (
        limit_range("type: Container, default: {nvidia.com/gpu: 1}"),
        pod("cpu: 1", requests="nvidia.com/gpu: 1"),
    ),
    "a maximum of none, or with a default": (
        limit_range("type: Container, max: {nvidia.com/gpu: 0}"),
        limit_range("type: Container, max: {nvidia.com/gpu: 2}, default: {nvidia.com/gpu: 0}"),
        limit_range("type: Pod, max: {nvidia.com/gpu: 2}"),
    ),
    "resources of others": (
        config_map(any=PLAIN),
        pod("amd.com/gpu: 2, nvidia.com/pgpu: 1, nvidia.com/GA102GL_A10: 1, nvidia.com/gpumem: 3000, rdma/hca: 1"),
        quota("limits.cpu: 4, requests.amd.com/gpu: 2, amd.com/gpu: 3"),
    ),
    "a pod that has ended": (config_map(any=RENAMED), pod() + "status: {phase: Succeeded}\n"),
    "labels that are there": (
        TWO_KEYS,
        CUT_OR_NOT,
        DEPLOYMENT % ("shared", 1),
        pod(spec="nodeSelector: {nvidia.com/mig.config: all-disabled}"),
    ),
}


def test_every_rule_has_a_firing_case() -> None:
    assert {case[0] for case in FIRING.values()} == {rule.id for rule in RULES}
    assert len({rule.id for rule in RULES}) == len(RULES)


@pytest.mark.parametrize("what", FIRING)
def test_a_mistake_is_told_where_it_is(what: str, tmp_path: Path) -> None:
    rule, texts, place, words = FIRING[what]
    found = [finding for finding in judged(tmp_path, *texts) if finding.rule.id == rule]
    assert len(found) == 1, judged(tmp_path, *texts)
    assert str(found[0].place) == f"{tmp_path / f'{len(texts) - 1}.yaml'}:{place}"
    said = f"{found[0].message} {found[0].hint}"
    assert [word for word in words if word not in said] == [], said


@pytest.mark.parametrize("what", FIRING)
def test_a_mistake_is_told_once(what: str, tmp_path: Path) -> None:
    """Beside it stands nothing but what the same mistake brings about elsewhere."""
    rule, texts, _, _ = FIRING[what]
    others = [finding for finding in judged(tmp_path, *texts) if finding.rule.id != rule]
    assert [finding.message for finding in others] == []


@pytest.mark.parametrize("what", CLEAN)
def test_what_is_well_is_left_alone(what: str, tmp_path: Path) -> None:
    assert [(finding.rule.id, finding.message) for finding in judged(tmp_path, *CLEAN[what])] == []
