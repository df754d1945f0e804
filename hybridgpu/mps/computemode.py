"""The compute mode of whole GPUs, by NVML through ctypes: pynvml is not on every node, nvidia-smi takes a second.

Cards are named by UUID, so no order of numbers is in between. What a mode was before is its caller's to keep.
Source: NVML's reference, "Device Queries" and "Device Commands".
"""

from __future__ import annotations

import ctypes

from hybridgpu.mps.trouble import Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

DEFAULT, EXCLUSIVE_PROCESS = 0, 3
"""NVML_COMPUTEMODE_DEFAULT and NVML_COMPUTEMODE_EXCLUSIVE_PROCESS."""


class ComputeModes:
    """NVML of the library with this path or name, between its start and its end: `close`, or a `with` block.

    Everything raises Trouble with what NVML says. Its start touches no card.
    """

    __slots__ = ("_nvml", "_path")

    def __init__(self, library: str) -> None:
        self._path = library
        try:
            self._nvml = ctypes.CDLL(library)
            self._nvml.nvmlErrorString.restype = ctypes.c_char_p
        except (OSError, AttributeError) as error:
            raise Trouble(f"{library} cannot be used: {error}; is NVIDIA's driver installed?") from None
        self._call("nvmlInit_v2", "NVML does not start")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End NVML; its answer changes nothing any more."""
        self._nvml.nvmlShutdown()

    def get(self, uuid: str) -> int:
        """The mode of a card, one of NVML's numbers."""
        mode = ctypes.c_uint()
        self._call("nvmlDeviceGetComputeMode", f"compute mode of {uuid}", self._card(uuid), ctypes.byref(mode))
        return mode.value

    def set(self, uuid: str, mode: int) -> None:
        """Set the mode of a card; needs root, and a card that is not in MIG mode."""
        what = f"compute mode {mode} for {uuid}"
        self._call("nvmlDeviceSetComputeMode", what, self._card(uuid), ctypes.c_uint(mode))

    def _card(self, uuid: str) -> ctypes.c_void_p:
        handle = ctypes.c_void_p()
        name = ctypes.c_char_p(uuid.encode("ascii", "replace"))
        self._call("nvmlDeviceGetHandleByUUID", f"card {uuid}", name, ctypes.byref(handle))
        return handle

    def _call(self, name: str, what: str, *arguments: object) -> None:
        function = getattr(self._nvml, name, None)
        if function is None:
            raise Trouble(f"{what}: {self._path} has no {name}: is it NVIDIA's library?")
        code = function(*arguments)
        if code:
            said = self._nvml.nvmlErrorString(code) or b"?"
            raise Trouble(f"{what}: {said.decode('ascii', 'replace')} (NVML error {code})")
