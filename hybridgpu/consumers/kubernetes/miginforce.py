"""Which MIG layouts are in force: the files that mig-manager reads, and what a node's label finds in them or beside.

The one answer for all who ask. Whether a file is right is migjudge's business, and what it makes of cards migparted's.
Source: mig-parted v0.15.0 cmd/nvidia-mig-manager; GPU Operator v26.3 assets/state-mig-manager.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from hybridgpu.consumers.kubernetes import miggenerated
from hybridgpu.consumers.kubernetes.given import KubeFiles, MigFile
from hybridgpu.consumers.kubernetes.migspec import MigEntry, read_mig
from hybridgpu.consumers.kubernetes.policyjudge import mig_in_force
from hybridgpu.model.catalogue import models
from hybridgpu.model.gpu import GpuModel

Configs = Mapping[str, tuple[MigEntry, ...]]


def in_force(files: KubeFiles) -> tuple[MigFile, ...]:
    """The files that mig-manager reads: those that a policy names, or any where no policy is known."""
    if not files.policies:
        return files.mig_files
    managing = (policy for policy in files.policies if policy.mig_manager and policy.mig_config_name)
    return tuple(file for policy in managing for file in mig_in_force(policy, files))


def is_managed(files: KubeFiles) -> bool:
    """Whether anybody may cut cards as labels say: not where every policy leaves mig-manager out."""
    return not files.policies or any(policy.mig_manager for policy in files.policies)


@lru_cache(maxsize=256)
def configs(text: str) -> Configs | None:
    """The configs of a file by name; None where mig-parted does not take it."""
    file = read_mig(text).file
    return file.configs if file else None


def named(label: str, files: Sequence[MigFile]) -> tuple[tuple[MigFile, tuple[MigEntry, ...]], ...]:
    """The config of that name in each of the files that has one."""
    found = ((file, (configs(file.text) or {}).get(label)) for file in files)
    return tuple((file, entries) for file, entries in found if entries is not None)


def written(files: Sequence[MigFile]) -> frozenset[str]:
    """The names of the configs that somebody wrote."""
    return frozenset(name for file in files for name in configs(file.text) or ())


def generated(label: str, known: Iterable[GpuModel] = ()) -> tuple[tuple[str, ...] | None, ...]:
    """What a config that mig-manager makes by itself has on a card, for each model that has it: the profiles, None
    where MIG is off. All models with MIG where none is known; () for a name that it does not make."""
    return _generated(label, frozenset(model.name for model in known))


@lru_cache(maxsize=1024)
def _generated(label: str, known: frozenset[str]) -> tuple[tuple[str, ...] | None, ...]:
    found = []
    for model in _models(known):
        try:
            found.append(miggenerated.layout(label, model))
        except KeyError:
            continue
    return tuple(found)


def labels(files: KubeFiles, known: Iterable[GpuModel] = ()) -> frozenset[str] | None:
    """The names that a label may have, on cards of these models or of any; None where that is not known."""
    there = in_force(files)
    own = written(there)
    if (not files.policies and not there) or not is_managed(files):
        return None
    if files.policies and all(policy.mig_config_name for policy in files.policies):
        return own if there else None
    # A file alone may not be the one in force: what NVIDIA has by itself is taken to be there too.
    return own | _names(frozenset(model.name for model in known) if files.policies else frozenset())


@lru_cache(maxsize=256)
def _names(known: frozenset[str]) -> frozenset[str]:
    return miggenerated.names(_models(known))


def _models(known: frozenset[str]) -> tuple[GpuModel, ...]:
    return tuple(model for model in models() if (model.name in known if known else model.has_mig))
