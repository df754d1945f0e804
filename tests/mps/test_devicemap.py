"""The DeviceMap as hooks read it: what `node bind` writes is understood, and what is not certain is refused."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hybridgpu.devices import devicemap as written
from hybridgpu.model.sharing import ComputeMode, Mode, Sharing
from hybridgpu.mps.devicemap import read
from hybridgpu.mps.trouble import Trouble

BOOT = "0b4c"
CARD = written.BoundDevice(0, 1, 3, "GPU-5c8e", "0000:07:00.0", ("/dev/nvidia3",), 40 << 30, None, None)
SLICE = written.BoundDevice(
    1, 1, 3, "MIG-0d1f", "0000:07:00.0", ("/dev/nvidia3", "/dev/nvidia-caps/nvidia-cap9"), 5 << 30, "1g.5gb", "GPU-5c8e"
)
KUBERNETES = written.BoundDevice(None, 2, 4, "GPU-9999", "0000:08:00.0", ("/dev/nvidia4",), 40 << 30, None, None)


def text(sharing: Sharing, *devices: written.BoundDevice) -> str:
    return written.as_json(written.DeviceMap(BOOT, "n1", sharing, ("gpu",), devices))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    if os.geteuid() != 0:
        pytest.skip("needs root: a DeviceMap is root's")
    return tmp_path / "devices.json"


def test_what_bind_writes_is_understood(path: Path) -> None:
    sharing = Sharing(mode=Mode.MIG, whole_gpu_jobs=True, compute_mode=ComputeMode.DEFAULT)
    path.write_text(text(sharing, CARD, SLICE, KUBERNETES))
    found = read(str(path), BOOT)
    assert (found.mode, found.daemons, found.whole_gpu_jobs, found.compute_mode) == ("mig", True, True, "default")
    assert sorted(found.devices) == [0, 1]
    device = found.devices[1]
    assert (device.uuid, device.minor, device.profile, device.parent_uuid) == ("MIG-0d1f", 3, "1g.5gb", "GPU-5c8e")
    assert (device.files, device.memory_bytes) == (SLICE.files, 5 << 30)
    assert [device.uuid for device in found.of((1, 0))] == ["MIG-0d1f", "GPU-5c8e"]


def test_without_daemons_there_is_no_compute_mode(path: Path) -> None:
    path.write_text(text(Sharing(mode=Mode.EXCLUSIVE), CARD))
    found = read(str(path), BOOT)
    assert (found.daemons, found.whole_gpu_jobs, found.compute_mode) == (False, False, None)


def test_a_number_that_is_not_there_is_named(path: Path) -> None:
    path.write_text(text(Sharing(mode=Mode.EXCLUSIVE), CARD))
    with pytest.raises(Trouble, match="Slurm's GPU 5, 7 is not in the DeviceMap"):
        read(str(path), BOOT).of((5, 0, 7))


def changed(change: Callable[[Any], object]) -> str:
    value = json.loads(text(Sharing(mode=Mode.MPS, replicas=2), CARD))
    change(value)
    return json.dumps(value)


@pytest.mark.parametrize(
    "broken",
    [
        "",
        "{",
        "[]",
        "null",
        "[" * 100_000,
        changed(lambda value: value.update(kind="Facts")),
        changed(lambda value: value.update(apiVersion="hybridgpu/v2")),
        changed(lambda value: value.pop("mps")),
        changed(lambda value: value.update(devices=None)),
        changed(lambda value: value["devices"][0].update(slurm_index="0")),
        changed(lambda value: value["devices"][0].update(slurm_index=-1)),
        changed(lambda value: value["devices"][0].update(slurm_index=True)),
        changed(lambda value: value["devices"][0].update(uuid="0")),
        changed(lambda value: value["devices"][0].update(uuid="GPU-1,GPU-2")),
        changed(lambda value: value["devices"][0].update(uuid="GPU-1\nunset PATH")),
        changed(lambda value: value["devices"][0].pop("memory_bytes")),
    ],
)
def test_what_is_broken_is_refused_with_what_to_do(path: Path, broken: str) -> None:
    path.write_text(broken)
    with pytest.raises(Trouble, match=r"cannot be read .*run `hybridgpu node bind`"):
        read(str(path), BOOT)


def test_one_of_another_boot_or_none_is_refused(path: Path) -> None:
    with pytest.raises(Trouble, match="is not there"):
        read(str(path), BOOT)
    path.write_text(text(Sharing(mode=Mode.EXCLUSIVE), CARD))
    with pytest.raises(Trouble, match="is of another boot"):
        read(str(path), "x")


def test_one_that_others_may_write_is_refused(path: Path) -> None:
    path.write_text(text(Sharing(mode=Mode.EXCLUSIVE), CARD))
    path.chmod(0o666)
    with pytest.raises(Trouble):
        read(str(path), BOOT)
