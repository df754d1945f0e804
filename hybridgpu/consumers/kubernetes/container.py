"""What a container gets for the devices the kubelet allots it: environment, mounts, device files, CDI names.

Source: k8s-device-plugin v0.20.0 internal/plugin/server.go Allocate, mps.go; internal/rm/rm.go ValidateRequest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hybridgpu.consumers.kubernetes.devicemap import Pool, Unit
from hybridgpu.consumers.kubernetes.settings import Settings

VISIBLE = "NVIDIA_VISIBLE_DEVICES"
_LISTED = "/var/run/nvidia-container-devices"
_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - of the container, where the daemon's is mounted over it
_CDI = "k8s.device-plugin.nvidia.com"
_CONTROL = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset")
_SWITCHES = (("gdrcopyEnabled", "GDRCOPY"), ("gdsEnabled", "GDS"), ("mofedEnabled", "MOFED"))


@dataclass(frozen=True, slots=True)
class Mount:
    """A path of the host, and where the container sees it."""

    host: str
    container: str


@dataclass(frozen=True, slots=True)
class Container:
    """What Allocate answers. `optional` are device files passed only where they exist; `cdi` CDI device names.

    `annotated`: the CDI names are given as an annotation under the prefix cdi.k8s.io/.
    """

    env: dict[str, str] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()
    devices: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    cdi: tuple[str, ...] = ()
    annotated: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Allocator:
    """A running plugin's rules for answering the kubelet. `channels`: IMEX channels that exist and are passed on."""

    pools: tuple[Pool, ...]
    settings: Settings
    sharing: str
    one_only: bool
    channels: tuple[int, ...] = ()

    def allocate(self, resource: str, replicas: Sequence[tuple[str, int]]) -> Container | str:
        """The answer for replicas (device index, replica number), or the words of the refusal: the pod fails at once.

        For a resource that is not shared the replica number is 0.
        """
        pool = next(pool for pool in self.pools if pool.name == resource)
        refused = f'invalid allocation request for "{resource}": invalid request: '
        by_index = {unit.index: unit for unit in pool.units}
        for index, number in replicas:
            if index not in by_index or not 0 <= number < pool.replicas:
                known = by_index[index].id if index in by_index else index
                return f"{refused}unknown device: {known}" + (f"::{number}" if pool.shared else "")
        if pool.shared and self.one_only and len(replicas) > 1:
            return f"{refused}maximum request size for shared resources is 1; found {len(replicas)}"
        chosen = list(dict.fromkeys(by_index[index] for index, _ in replicas))
        return self._answer(pool, chosen)

    def _answer(self, pool: Pool, chosen: list[Unit]) -> Container:
        settings, strategies = self.settings, self.settings.words("deviceListStrategy")
        ids = [unit.id if settings.text("deviceIDStrategy") == "uuid" else unit.index for unit in chosen]
        env: dict[str, str] = {}
        mounts: list[Mount] = []
        extra: dict[str, Any] = {}
        if any(strategy.startswith("cdi-") for strategy in strategies):
            names = tuple(f"{_CDI}/gpu={i}" for i in ids) + tuple(f"{_CDI}/imex-channel={c}" for c in self.channels)
            extra["cdi"] = names if "cdi-cri" in strategies else ()
            extra["annotated"] = names if "cdi-annotations" in strategies else ()
        if self.sharing == "mps":
            pipe = f"{pool.name}/pipe"
            env["CUDA_MPS_PIPE_DIRECTORY"] = f"/mps/{pipe}"
            root = settings.text("mpsRoot").rstrip("/")
            mounts += [Mount(f"{root}/{pipe}", f"/mps/{pipe}"), Mount(f"{root}/shm", _SHARED_MEMORY)]
        env |= {f"NVIDIA_{name}": "enabled" for key, name in _SWITCHES if settings.on(key)}
        if "envvar" in strategies:
            env[VISIBLE] = ",".join(ids)
            if self.channels:
                env["NVIDIA_IMEX_CHANNELS"] = ",".join(map(str, self.channels))
        if "volume-mounts" in strategies:
            env[VISIBLE] = _LISTED
            mounts += [Mount("/dev/null", f"{_LISTED}/{i}") for i in ids]
            mounts += [Mount("/dev/null", f"{_LISTED}/imex/{channel}") for channel in self.channels]
        if settings.on("passDeviceSpecs") and not all(strategy.startswith("cdi-") for strategy in strategies):
            files = dict.fromkeys(file for unit in chosen for file in unit.files)
            channels = tuple(f"/dev/nvidia-caps-imex-channels/channel{channel}" for channel in self.channels)
            extra |= {"devices": (*files, *channels), "optional": _CONTROL}
        return Container(env, tuple(mounts), **extra)
