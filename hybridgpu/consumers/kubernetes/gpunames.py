"""Which words are meant as names of NVIDIA's GPUs among a container's resources, and which no config could ever offer.

Vocabulary alone: what a site offers is names' business. Names of other programs below nvidia.com/ (KubeVirt's cards,
network cards, HAMi's gpumem) are none of ours, and are never judged.
Sources: k8s-device-plugin v0.20.0 internal/rm; API server 1.36, run, for which names it takes.
"""

from __future__ import annotations

import re
from functools import cache

from hybridgpu.consumers.kubernetes.devicemap import WHOLE
from hybridgpu.consumers.kubernetes.replicated import PREFIX, SHARED
from hybridgpu.model.catalogue import models
from hybridgpu.model.labels import MIG_RESOURCE
from hybridgpu.model.naming import kubernetes_resource
from hybridgpu.model.spelling import is_slip, nearest

MIG = MIG_RESOURCE
_DOMAIN = PREFIX.removesuffix("/")
_QUOTA = ("requests.", "limits.")
_OTHERS = frozenset(("gpumem", "gpumem-percentage", "gpucores", "gpu-mem", "gpu-core", "pgpu", "vgpu"))
"""Resources below nvidia.com/ that HAMi, KubeVirt and Kata offer."""
_DOMAIN_FORM = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.A)
_NAME_FORM = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.A)
_PREFIXED = re.compile(r"([A-Za-z]{3,12})[.:/_ -]+(.+)", re.A)
_LONG_GONE = "alpha.kubernetes.io/nvidia-gpu"


@cache
def mig_names() -> frozenset[str]:
    """The resource of every MIG profile of the catalogue, before any `.shared`."""
    return frozenset(kubernetes_resource(profile.name) for model in models() for profile in model.profiles)


@cache
def all_names() -> frozenset[str]:
    """Every name that some config can offer on some card."""
    plain = mig_names() | {WHOLE}
    return plain | {name + SHARED for name in plain}


def is_ours(name: str) -> bool:
    """Whether the name is meant for GPUs of NVIDIA's device plugin, rightly written or not."""
    if name in all_names() or name == _LONG_GONE:
        return True
    domain, slash, rest = _bare(name).partition("/")
    if not slash:
        return domain.lower() in ("gpu", "gpus") or is_slip(domain.replace(".", "/"), WHOLE.replace(".", "/"))
    if domain != _DOMAIN and (domain.endswith(f".{_DOMAIN}") or not is_slip(domain, _DOMAIN)):
        return False
    lower = rest.lower()
    if lower in _OTHERS:
        return False
    return lower.startswith(("gpu", "mig")) or is_slip(lower, "gpu") or is_slip(lower, f"gpu{SHARED}")


def quota_key(name: str) -> tuple[str, str]:
    """A quota's key as what stands before the resource (`requests.`, or a slip of it) and the resource's name."""
    for word in _QUOTA:
        if name.startswith(word):
            return word, name.removeprefix(word)
    found = _PREFIXED.fullmatch(name)
    if found and is_ours(found[2]) and any(is_slip(found[1], word.rstrip(".")) for word in _QUOTA):
        return name[: found.start(2)], found[2]
    return "", name


def is_impossible(name: str) -> bool:
    """Whether a name that is ours is offered by no config on any card of the catalogue, and is no name of one's own."""
    return name not in all_names() and (name.startswith(MIG) or likely(name) is not None)


def likely(name: str) -> str | None:
    """The right word that a misspelt name means, or None where it is no slip of one."""
    bare = _bare(name)
    domain, slash, rest = bare.partition("/")
    if not slash:
        rest = domain.lower().removeprefix("nvidia").removeprefix(".com").lstrip(".:-_")
    if bare == _LONG_GONE:
        return WHOLE
    if rest.lower() in ("gpu", "gpus", "gpuu"):
        return WHOLE
    right = nearest(PREFIX + rest.replace("+", "."), all_names())
    if right is None or (rest.lower().startswith("mig") != right.startswith(MIG)):
        return None
    return right if rest.lower().startswith("mig") or is_slip(rest, right.removeprefix(PREFIX)) else None


def is_taken(name: str) -> bool:
    """Whether the API server takes the name as a container's resource; it takes any that is fully qualified."""
    domain, _, rest = name.partition("/")
    return bool(_DOMAIN_FORM.fullmatch(domain) and _NAME_FORM.fullmatch(rest)) and not domain.startswith("requests.")


def base(name: str) -> str:
    """The name without what sharing adds."""
    return name.removesuffix(SHARED)


def _bare(name: str) -> str:
    return next((name.removeprefix(word) for word in _QUOTA if name.startswith(word)), name)
