"""Every card of the catalogue: what the driver offers of it is what hybridgpu plans with, and can be created."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator
from typing import Any

import pynvml as nv
import pytest

from hybridgpu.model.catalogue import identify, models
from hybridgpu.model.geometry import Layout, layouts
from hybridgpu.model.gpu import GpuModel, Placement
from hybridgpu.model.packing import gpu_instance_id
from testbed.driver import generate
from testbed.driver.library import NvmlError
from testbed.driver.machine import Machine
from tests.conftest import soak
from tests.driver.calls import listed
from tests.driver.world import Untyped
from tests.simulated import nvml

WITH_MIG = [model for model in models() if model.has_mig]


def infos(card: Untyped) -> Iterator[Any]:
    for kind in range(nv.NVML_GPU_INSTANCE_PROFILE_COUNT):
        try:
            yield nv.nvmlDeviceGetGpuInstanceProfileInfo(card, kind)
        except nv.NVMLError as error:
            assert error.value == nv.NVML_ERROR_NOT_SUPPORTED


def places(card: Untyped, profile: int) -> tuple[Placement, ...]:
    found = listed("nvmlDeviceGetGpuInstancePossiblePlacements_v2", nv.c_nvmlGpuInstancePlacement_t, 8, card, profile)
    return tuple(Placement(place.start, place.size) for place in found)


def create(card: Untyped, profile: int, place: Placement) -> Untyped:
    wanted = nv.c_nvmlGpuInstancePlacement_t(place.start, place.size)
    return nv.nvmlDeviceCreateGpuInstanceWithPlacement(card, profile, ctypes.byref(wanted))


@pytest.mark.parametrize("model", models(), ids=lambda model: model.name)
def test_a_card_is_what_the_catalogue_says(make: Callable[..., Machine], model: GpuModel) -> None:
    with nvml(make(model.name)):
        card = nv.nvmlDeviceGetHandleByIndex(0)
        assert nv.nvmlDeviceGetName(card) == model.driver_name
        assert nv.nvmlDeviceGetCudaComputeCapability(card) == model.compute_capability
        pci = nv.nvmlDeviceGetPciInfo(card).pciDeviceId
        assert f"{pci >> 16:04x}" == (model.pci_ids or ("0000",))[0]
        if model.has_mig:
            assert identify(model.driver_name, nv.nvmlDeviceGetMemoryInfo(card).total) == model


@pytest.mark.parametrize("model", WITH_MIG, ids=lambda model: model.name)
def test_every_profile_at_every_place(make: Callable[..., Machine], model: GpuModel) -> None:
    with nvml(make(model.name)):
        card = nv.nvmlDeviceGetHandleByIndex(0)
        nv.nvmlDeviceSetMigMode(card, 1)
        offered = {info.name.removeprefix("MIG "): info for info in infos(card)}
        assert set(offered) == {profile.name for profile in model.profiles}
        for profile in model.profiles:
            info = offered[profile.name]
            assert profile.smi_id in (None, info.id)
            assert (info.sliceCount, info.instanceCount) == (profile.compute, profile.max_count)
            assert places(card, info.id) == profile.placements
            for place in profile.placements:
                gi = create(card, info.id, place)
                made = nv.nvmlGpuInstanceGetInfo(gi)
                assert (made.placement.start, made.placement.size) == (place.start, place.size)
                assert made.id == gpu_instance_id(model, place)
                nv.nvmlGpuInstanceDestroy(gi)


def sampled(model: GpuModel) -> list[Layout]:
    every = layouts(model, attributes=True)
    step = max(1, len(every) // soak(3, len(every)))
    return [*every[::step]]


@pytest.mark.parametrize("model", WITH_MIG, ids=lambda model: model.name)
def test_maximal_layouts_are_created_and_are_maximal(make: Callable[..., Machine], model: GpuModel) -> None:
    with nvml(make(model.name)):
        card = nv.nvmlDeviceGetHandleByIndex(0)
        nv.nvmlDeviceSetMigMode(card, 1)
        ids = {info.name.removeprefix("MIG "): info.id for info in infos(card)}
        for layout in sampled(model):
            made = [create(card, ids[i.profile.name], i.placement) for i in layout.instances]
            assert [nv.nvmlGpuInstanceGetInfo(gi).id for gi in made] == [i.gi for i in layout.instances]
            room = {name: nv.nvmlDeviceGetGpuInstanceRemainingCapacity(card, profile) for name, profile in ids.items()}
            assert not any(room.values())
            for gi in made:
                nv.nvmlGpuInstanceDestroy(gi)


def catalogue_hash() -> int:
    found = re.search(r"models_hash = (0x[0-9a-f]{16})ull;", "\n".join(generate.geometry()))
    assert found is not None
    return int(found[1], 16)


def test_a_state_of_another_catalogue_is_refused(make: Callable[..., Machine], monkeypatch: pytest.MonkeyPatch) -> None:
    """What it says of a model by its number would mean another one."""
    machine = make("A100-SXM4-80GB")
    state = machine.root / "gpusim.state"
    ours = state.read_bytes()
    known = catalogue_hash()
    monkeypatch.setattr(generate, "models", lambda: models()[1:])
    another = int.from_bytes(ours[:8], "little") ^ known ^ catalogue_hash()
    state.write_bytes(another.to_bytes(8, "little") + ours[8:])
    with pytest.raises(NvmlError) as raised:
        machine.show()
    assert raised.value.code == nv.NVML_ERROR_LIB_RM_VERSION_MISMATCH
    state.write_bytes(ours)
    assert len(machine.show()["gpus"]) == 1
