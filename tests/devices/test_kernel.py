"""What the kernel's files say, whole or in part."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybridgpu.devices.kernel import DriverRoot, KernelCard, driver_root, read_kernel
from hybridgpu.devices.port import Unread

INFORMATION = """\
Model: \t\t NVIDIA A100-SXM4-80GB
IRQ:   \t\t 16
GPU UUID: \t {uuid}
Bus Location: \t 0000:07:00.0
Device Minor: \t {minor}
GPU Excluded:\t {excluded}
"""


def put(root: Path, path: str, text: str = "") -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


@pytest.mark.parametrize(
    ("uuid", "minor", "excluded", "card"),
    [
        ("GPU-1", "3", "No", KernelCard("0000:0a:00.0", 3, "GPU-1", False)),
        ("GPU-1", "3", "Yes", KernelCard("0000:0a:00.0", 3, "GPU-1", True)),
        ("GPU-????????-????", "", "No", KernelCard("0000:0a:00.0", None, None, False)),
    ],
)
def test_a_card(uuid: str, minor: str, excluded: str, card: KernelCard, tmp_path: Path) -> None:
    text = INFORMATION.format(uuid=uuid, minor=minor, excluded=excluded)
    put(tmp_path, "proc/driver/nvidia/gpus/0000:0A:00.0/information", text)
    assert read_kernel(driver_root(tmp_path), capabilities=False).cards == (card,)


def test_a_card_without_details_is_a_card(tmp_path: Path) -> None:
    (tmp_path / "proc/driver/nvidia/gpus/0000:07:00.0").mkdir(parents=True)
    assert read_kernel(driver_root(tmp_path), capabilities=False).cards == (
        KernelCard("0000:07:00.0", None, None, False),
    )


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"nvidia-caps/mig-minors": "config 1\ngpu3/gi1/access 417\ngpu3/gi1/ci0/access 418\n"}, 417),
        ({"nvidia/capabilities/gpu3/mig/gi1/access": "DeviceFileMinor: 417\nDeviceFileMode: 292\n"}, 417),
        (
            {
                "nvidia-caps/mig-minors": "gpu3/gi1/access 417\n",
                "nvidia/capabilities/gpu3/mig/gi1/access": "DeviceFileMinor: 9\n",
            },
            417,
        ),
        ({"nvidia-caps/mig-minors": "gpu3/gi1/access\n"}, "no list of numbers"),
        ({"nvidia-caps/mig-minors": "gpu3/gi1/access x\n"}, "no list of numbers"),
        ({"nvidia/version": ""}, "No such file"),
    ],
)
def test_capability_numbers(files: dict[str, str], expected: int | str, tmp_path: Path) -> None:
    for path, text in files.items():
        put(tmp_path, f"proc/driver/{path}", text)
    found = read_kernel(DriverRoot(None, tmp_path, tmp_path), capabilities=True).capabilities
    if isinstance(found, Unread):
        assert isinstance(expected, str)
        assert expected in str(found)
    else:
        assert found["gpu3/gi1/access"] == expected


@pytest.mark.parametrize(
    ("paths", "library", "kernel", "dev"),
    [
        ([], None, "/", "/"),
        (["usr/lib64/libnvidia-ml.so.1"], "usr/lib64/libnvidia-ml.so.1", "/", "/"),
        (["lib/aarch64-linux-gnu/libnvidia-ml.so.1", "dev/null"], "lib/aarch64-linux-gnu/libnvidia-ml.so.1", "/", ""),
        (["proc/driver/nvidia/version", "dev/nvidia0"], None, "", ""),
    ],
)
def test_a_driver_root(paths: list[str], library: str | None, kernel: str, dev: str, tmp_path: Path) -> None:
    for path in paths:
        put(tmp_path, path)
    expected = DriverRoot(tmp_path / library if library else None, tmp_path / kernel, tmp_path / dev)
    assert driver_root(tmp_path) == expected


def test_device_files(tmp_path: Path) -> None:
    for name in ("nvidia0", "nvidiactl", "nvidia-caps/nvidia-cap3", "sda"):
        put(tmp_path, f"dev/{name}")
    files = read_kernel(driver_root(tmp_path), capabilities=False).files
    assert files == frozenset(f"/dev/nvidia{end}" for end in ("0", "ctl", "-caps", "-caps/nvidia-cap3"))
