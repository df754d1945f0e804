"""The one list of the inventory's keys. What is allowed, the nearest right word, JSON Schema and docs derive from it.

Nothing is judged here that needs more than the value itself: that is the work of the modules beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from hybridgpu.inventory.shape import Block, Choice, Either, Flag, Key, ListOf, MapOf, Shape, Text, Whole
from hybridgpu.model.labels import MPS_ROOT
from hybridgpu.model.sharing import ComputeMode, Mode, Scheduler

API_VERSION = "hybridgpu/v1"
MOST_GPUS = 64
MOST_REPLICAS = 10_000

_LINE = r"[!$-&(-\[\]-~]"  # printable ASCII but space, double quote, #, single quote, backslash
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NO_PARENT = r"(?!.*/\.\.(/|$))"
_PATH = rf"{_NO_PARENT}/[A-Za-z0-9._/@:+-]*"

DNS_LABEL = Text("a DNS label", _LABEL, "lower-case letters, digits and '-' inside, at most 63", "leibniz", 63)
HOSTS = Text("a hostlist", r"\S+", "host names as one hostlist without spaces", "gpu[001-032]", 65_536)
HOST = Text("a host name", r"[A-Za-z0-9][A-Za-z0-9._-]*", "letters, digits, '.', '_' and '-'", "ctl1", 253)
CLASS_NAME = Text("a class name", r"[A-Za-z0-9][A-Za-z0-9._-]*", "letters, digits, '.', '_' and '-'", "dgx-a100", 63)
MODEL = Text("a GPU model", r"[ -~]+", "a model's name, the driver's full name, or a PCI id", "A100-SXM4-80GB", 80)
TYPE = Text("a Slurm type", r"[A-Za-z0-9_][A-Za-z0-9_.+-]*", "letters, digits, '_', '.', '+' and '-'", "a100", 63)
INDICES = Text("GPU indices", r"[0-9,-]+", "numbers and ranges", "0-3,6")
GPU_SET = Text("GPUs", r"all|[0-9,-]+", "`all`, or numbers and ranges in quotes where there is a comma", "0-3")
PROFILE = Text("a MIG profile", r"[!-~]+", "a profile as nvidia-smi writes it", "1g.10gb", 40)
VERSION = Text("a Slurm release", r"[!-~]+", "a Slurm release", '"24.11"', 40)
PATH = Text("a path", _PATH, "an absolute path of letters, digits and . _ / @ : + -", "/etc/slurm")
SCRIPT = Text(
    "a script", rf"{_NO_PARENT}/[A-Za-z0-9._/@:+*?\[\]-]+", "an absolute path or glob pattern", "/etc/slurm/prolog.d/*"
)
USER = Text("a user name", r"[a-z_][a-z0-9_.-]*", "a user name", "root", 32)
UNIT = Text("a service", r"[A-Za-z0-9][A-Za-z0-9@._:-]*", "a systemd unit or process name", "nvidia-dcgm.service", 128)
GRES_NAME = Text("a GRES name", r"[A-Za-z][A-Za-z0-9_]*", "a letter, then letters, digits and '_'", "nic", 63)
TRES = Text("a TRES", r"[A-Za-z][A-Za-z0-9_/:.+-]*", "a TRES name", "gres/gpu", 63)
WORD = Text("a word", r"[A-Za-z][A-Za-z0-9]*", "letters and digits", "X11", 63)
RAW_LINE = Text(
    "a line of gres.conf", r"[!$-&(-\[\]-~ \t]+", "one line without quotes, # or \\", "Name=nic Count=2", 1024
)
VALUE = Text("a value", rf"{_LINE}+", "one word without spaces, quotes, # or \\", "2000000", 65_536)
RUNTIME_CLASS = Text("a RuntimeClass", _LABEL, "lower-case letters, digits and '-' inside", "nvidia", 63)
NAMESPACE = Text("a namespace", _LABEL, "a DNS label: lower-case letters, digits and '-' inside", "gpu-operator", 63)
KUBE_NAME = Text(
    "a node name", r"([a-z0-9.-]|\{host\})+", "a DNS name in which {host} is the host name", '"{host}.example.org"'
)
KUBE_KEY = Text(
    "a taint key", r"([a-z0-9.-]+/)?[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?", "a label key", "nvidia.com/gpu"
)
KUBE_VALUE = Text("a taint value", r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?", "a label value", "present", 63)

_SCHEDULERS = tuple(Scheduler)
_SHARED = (Mode.TIME_SLICING.value, Mode.MPS.value)

NODE_KEYS = MapOf(
    "NodeName keys of slurm.conf and their values",
    Text("a NodeName key", r"[A-Za-z][A-Za-z0-9]*", "a key of slurm.conf's NodeName line", "RealMemory", 63),
    VALUE,
)

MPS = Block(
    "MPS for Slurm jobs",
    (
        Key(
            "wholeGpuJobs",
            Flag("whether whole-GPU jobs get a daemon"),
            "A job with whole GPUs or MIG instances gets an MPS daemon of its own.",
            default="false",
        ),
        Key(
            "computeMode",
            Choice("a compute mode", (ComputeMode.DEFAULT.value, ComputeMode.EXCLUSIVE_PROCESS.value)),
            "The compute mode while a daemon runs; `exclusive_process` on whole GPUs only, never MIG.",
            default="default",
        ),
    ),
)

LAYOUT = MapOf(
    "from `all` or sets of GPU indices to `off` or counts of MIG profiles",
    GPU_SET,
    Either(
        Choice("a GPU without MIG", ("off",)),
        MapOf("from MIG profiles to counts", PROFILE, Whole("a count", 1, MOST_GPUS), 1),
    ),
    1,
)

SHARING = Block(
    "how the GPUs are shared",
    (
        Key(
            "mode",
            Choice("a mode", tuple(mode.value for mode in Mode)),
            "One mode a node, the same for both schedulers.",
            required=True,
        ),
        Key(
            "replicas",
            Whole("a number of replicas", 2, MOST_REPLICAS),
            "How many jobs or pods share a GPU. Required for time-slicing, and for mps where the node is in "
            "Kubernetes. mps: at most 48, 16 below compute capability 7.5.",
            words=_SHARED,
        ),
        Key(
            "renameByDefault",
            Flag("whether shared resources are renamed"),
            "Kubernetes offers `nvidia.com/gpu.shared`. Refused under gpu-operator.",
            default="false",
            words=_SHARED,
        ),
        Key(
            "failRequestsGreaterThanOne",
            Flag("whether a pod may ask for two"),
            "A pod that asks for more than one shared GPU is refused.",
            default="true",
            words=_SHARED,
        ),
        Key(
            "layout",
            LAYOUT,
            "What each GPU is cut into; every GPU once. `off` leaves a GPU whole, with MIG disabled.",
            required=True,
            words=(Mode.MIG.value,),
        ),
        Key(
            "migStrategy",
            Choice("a MIG strategy", ("mixed", "single")),
            "How Kubernetes names MIG instances. `single` demands one profile on every GPU.",
            default="mixed",
            words=(Mode.MIG.value,),
        ),
        Key("mps", MPS, "MPS for Slurm jobs."),
    ),
    by="mode",
)

SPLIT = Block(
    "the GPUs of each scheduler",
    tuple(Key(s.value, INDICES, f"GPU indices (PCI order) that {s.value.capitalize()} owns.") for s in Scheduler),
)

ENTRY = Block(
    "a node entry",
    (
        Key("hosts", HOSTS, "The nodes, as a hostlist of Slurm and ClusterShell.", required=True),
        Key("class", CLASS_NAME, "One of nodeClasses.", required=True),
        Key(
            "owner",
            Either(Choice("an owner", _SCHEDULERS), SPLIT),
            "The scheduler that may start work on the GPUs; or, for a split node, the GPU indices of each.",
            required=True,
        ),
        Key("sharing", SHARING, "How the GPUs are shared.", required=True),
        Key(
            "schedulers",
            ListOf("schedulers", Choice("a scheduler", _SCHEDULERS), 1),
            "The schedulers the node is known to.",
            default="those whose block exists",
        ),
        Key("kubernetesName", KUBE_NAME, "The node's name in Kubernetes.", default='"{host}"'),
        Key(
            "slurm",
            NODE_KEYS,
            "NodeName keys that override the class's. Not NodeName, State, or Gres types of hybridgpu.",
        ),
    ),
)

PART = Block(
    "GPUs of one model",
    (
        Key("model", MODEL, "The GPU model.", required=True),
        Key("count", Whole("a number of GPUs", 1, MOST_GPUS), "How many.", required=True),
    ),
)

NODE_CLASS = Block(
    "a node class",
    (
        Key("model", MODEL, "The GPU model, where all GPUs are of one."),
        Key(
            "gpus",
            Either(Whole("a number of GPUs", 1, MOST_GPUS), ListOf("{model, count} in PCI order", PART, 1)),
            "How many GPUs; or model and count of each kind, in PCI order.",
            required=True,
        ),
        Key(
            "type", TYPE, "Slurm's type of a whole GPU.", default="the driver's name without vendor, as a100-sxm4-80gb"
        ),
        Key("slurmVersion", VERSION, "The Slurm release on these nodes.", default="slurm.version"),
        Key("slurm", NODE_KEYS, "NodeName keys of slurm.conf, but NodeName, State and Gres types of hybridgpu."),
    ),
)

SLURM_SITE = Block(
    "what the site's Slurm has already",
    (
        Key("gresTypes", ListOf("GRES names", GRES_NAME), "Further GresTypes.", default="[]"),
        Key("gres", ListOf("lines of gres.conf", RAW_LINE), "Further lines of gres.conf, as they are.", default="[]"),
        Key("prolog", ListOf("paths", SCRIPT), "Prologs that run already.", default="[]"),
        Key("epilog", ListOf("paths", SCRIPT), "Epilogs that run already.", default="[]"),
        Key("taskProlog", PATH, "The task prolog that runs already."),
        Key("prologFlags", ListOf("PrologFlags", WORD), "Further PrologFlags.", default="[]"),
        Key(
            "accountingStorageTRES",
            ListOf("TRES", TRES),
            "Further AccountingStorageTRES; needs accounting: slurmdbd.",
            default="[]",
        ),
        Key("cgroup", MapOf("keys of cgroup.conf", WORD, VALUE), "Further keys of cgroup.conf.", default="{}"),
    ),
)

SLURM = Block(
    "the Slurm cluster",
    (
        Key("version", VERSION, "The Slurm release: it decides what may be rendered, and `render` demands it."),
        Key(
            "autoDetect",
            Choice("an AutoDetect", ("off", "nvml", "nvidia")),
            "Who finds the devices: hybridgpu's own lines, or slurmd.",
            default="off",
        ),
        Key(
            "accounting",
            Choice("an accounting", ("none", "slurmdbd")),
            "Whether slurmdbd runs: without it AccountingStorageTRES is fatal.",
            default="none",
        ),
        Key("controllers", ListOf("host names", HOST), "The hosts of slurmctld.", default="[]"),
        Key("confDir", PATH, "Where slurm.conf lies.", default="/etc/slurm"),
        Key("sshUser", USER, "The user for ssh to controllers and nodes.", default="root"),
        Key(
            "hooks",
            Block(
                "the hooks",
                (
                    Key("dir", PATH, "The folder above prolog.d and epilog.d.", default="/etc/slurm"),
                    Key(
                        "enabled",
                        Flag("whether hooks are installed"),
                        "Whether prolog, epilog and task prolog are installed.",
                        default="true",
                    ),
                ),
            ),
            "hybridgpu's prolog, epilog and task prolog.",
        ),
        Key(
            "consent",
            Block(
                "what hybridgpu may do",
                (
                    Key(
                        "restartController",
                        Flag("whether slurmctld may be restarted"),
                        "Whether hybridgpu may restart slurmctld.",
                        default="false",
                    ),
                ),
            ),
            "What hybridgpu may do without asking.",
        ),
        Key("site", SLURM_SITE, "What the site has already: merged, never replaced."),
    ),
)

TOLERATION = Block(
    "a toleration",
    (
        Key("key", KUBE_KEY, "The taint's key; absent: every key, with operator Exists."),
        Key("operator", Choice("an operator", ("Exists", "Equal")), "How the value is compared.", default="Equal"),
        Key("value", KUBE_VALUE, "The taint's value, with operator Equal."),
        Key(
            "effect",
            Choice("an effect", ("NoSchedule", "PreferNoSchedule", "NoExecute")),
            "The taint's effect; absent: every effect.",
        ),
    ),
)

KUBERNETES = Block(
    "the Kubernetes cluster",
    (
        Key(
            "delivery",
            Choice("a delivery", ("device-plugin", "gpu-operator")),
            "What brings the device plugin: its Helm chart, or the GPU operator.",
            required=True,
        ),
        Key(
            "namespace",
            NAMESPACE,
            "Where the plugin or operator lives.",
            default="nvidia-device-plugin, or gpu-operator",
        ),
        Key("mpsRoot", PATH, "Where Kubernetes' MPS daemons keep their files.", default=MPS_ROOT),
        Key(
            "runtimeClassName",
            RUNTIME_CLASS,
            "RuntimeClass of the plugin's pods, where nvidia is not the nodes' default runtime.",
        ),
        Key(
            "tolerations",
            ListOf("tolerations", TOLERATION),
            "Tolerations that the plugin's or operator's pods have already.",
            default="[]",
        ),
    ),
)

DEVICES = Block(
    "the nodes' devices",
    (
        Key("driverRoot", PATH, "Where the driver's files lie.", default="/"),
        Key(
            "clients",
            ListOf("services", UNIT),
            "Further services that hold the cards and are stopped for a cut.",
            default="[]",
        ),
    ),
)

INVENTORY = Block(
    "an inventory",
    (
        Key("apiVersion", Choice("an API version", (API_VERSION,)), "The version of this format.", required=True),
        Key("kind", Choice("a kind", ("Inventory",)), "What the file is.", required=True),
        Key(
            "metadata",
            Block("metadata", (Key("name", DNS_LABEL, "The site's name.", required=True),)),
            "The site.",
            required=True,
        ),
        Key("slurm", SLURM, "The Slurm cluster, if there is one."),
        Key("kubernetes", KUBERNETES, "The Kubernetes cluster, if there is one."),
        Key("devices", DEVICES, "The nodes' devices."),
        Key(
            "nodeClasses",
            MapOf("from class names to node classes", CLASS_NAME, NODE_CLASS),
            "The kinds of node.",
            required=True,
        ),
        Key("nodes", ListOf("node entries", ENTRY, 1), "The nodes.", required=True),
    ),
)


def blocks(shape: Shape = INVENTORY, path: str = "") -> Iterator[tuple[str, Block]]:
    """Every block of the schema with its path, outer before inner: `nodes[].sharing`."""
    match shape:
        case Block():
            yield path, shape
            for key in shape.keys:
                yield from blocks(key.shape, f"{path}.{key.name}".lstrip("."))
        case ListOf():
            yield from blocks(shape.item, f"{path}[]")
        case MapOf():
            yield from blocks(shape.value, f"{path}.*")
        case Either():
            yield from blocks(shape.other, path)


@cache
def _homes() -> dict[str, str]:
    return {key.name: path for path, block in blocks() for key in block.keys if path}


def home_of(key: str) -> str | None:
    """The path of a block that has this key, for a key that stands in the wrong one."""
    return _homes().get(key)
