"""Devices in gres.conf that are not what a job then gets: names of no file, cards twice, types in another order."""

from __future__ import annotations

import pytest

from hybridgpu.model.naming import device_files
from tests.consumers.slurm.sites import found, site

A100 = "Name=gpu Type=a100 File=/dev/nvidia[0-1]"
T4 = "Name=gpu Type=t4 File=/dev/nvidia[2-3]"
CONFINED = {"conf": "TaskPlugin=affinity,cgroup", "cgroup_conf": "ConstrainDevices=yes"}


def instance(card: int, gi: int, kind: str, numbered: int | None = None) -> str:
    """A record of a MIG instance of this card; its capability files numbered like those of card `numbered`."""
    files = (f"/dev/nvidia{card}", *device_files(card if numbered is None else numbered, gi)[1:])
    return f"Name=gpu Type={kind} MultipleFiles={','.join(files)}"


def with_file(text: str) -> dict[str, str]:
    return site(records=f"Name=gpu Type=a100 File={text}")


WRONG: dict[str, tuple[dict[str, str], str, str, list[str]]] = {
    "second name relative": (
        with_file("/dev/nvidia0,nvidia1"),
        "slurm-file-is-no-path",
        "gres.conf:1:20",
        ["'nvidia1'", "write /dev/nvidia[0-1]"],
    ),
    "relative to the root": (
        with_file("dev/nvidia[0-1]"),
        "slurm-file-is-no-path",
        "gres.conf:1:20",
        ["/dev/nvidia[0-1]"],
    ),
    "braces": (with_file("/dev/nvidia{0..1}"), "slurm-file-is-no-path", "gres.conf:1:20", ["write /dev/nvidia[0-1]"]),
    "brace list": (with_file("/dev/nvidia{0,1}"), "slurm-file-is-no-path", "gres.conf:1:20", ["/dev/nvidia[0,1]"]),
    "no brackets": (with_file("/dev/nvidia0-1"), "slurm-file-is-no-path", "gres.conf:1:20", ["write /dev/nvidia[0-1]"]),
    "pattern": (with_file("/dev/nvidia*"), "slurm-file-is-no-path", "gres.conf:1:20", ["/dev/nvidia*"]),
    "misspelt": (with_file("/dev/nvdia[0-1]"), "slurm-file-is-no-path", "gres.conf:1:20", ["/dev/nvidia[0-1]?"]),
    "in MultipleFiles": (
        site("gpu:a100:1", "Name=gpu Type=a100 MultipleFiles=/dev/nvidia0,nvidia-caps/nvidia-cap3"),
        "slurm-file-is-no-path",
        "gres.conf:1:20",
        ["nvidia-caps/nvidia-cap3"],
    ),
    "card and instances": (
        site("gpu:a100:2,gpu:3g.40gb:2", [A100, instance(1, 1, "3g.40gb"), instance(1, 2, "3g.40gb")]),
        "slurm-card-beside-its-instances",
        "gres.conf:2:1",
        ["/dev/nvidia1", "3g.40gb"],
    ),
    "three halves": (
        site("gpu:3g.20gb:3", [instance(0, gi, "3g.20gb") for gi in (1, 2, 3)]),
        "slurm-card-holds-fewer",
        "gres.conf:3:1",
        ["/dev/nvidia0", "3 of 3g.20gb"],
    ),
    "a whole and a seventh": (
        site("gpu:7g.40gb:1,gpu:1g.5gb:1", [instance(0, 0, "7g.40gb"), instance(0, 7, "1g.5gb")]),
        "slurm-card-holds-fewer",
        "gres.conf:2:1",
        ["1 of 7g.40gb and 1 of 1g.5gb"],
    ),
    "numbers of card 0": (
        site("gpu:3g.20gb:1", instance(1, 1, "3g.20gb", 0)),
        "slurm-capability-of-another-card",
        "gres.conf:1:1",
        ["nvidia-cap12", "/dev/nvidia1", "/dev/nvidia0", "nvidia-cap138"],
    ),
    "letters turned": (
        site("gpu:3g.20bg:2", "AutoDetect=nvml"),
        "slurm-autodetect-profile-unknown",
        "slurm.conf:6:47",
        ["3g.20bg", "did you mean 3g.20gb?"],
    ),
    "order of types": (
        site("gpu:t4:2,gpu:a100:2", [A100, T4]),
        "slurm-types-out-of-device-order",
        "slurm.conf:6:47",
        ["t4", "/dev/nvidia0", "a100", "write Gres=gpu:a100:2,gpu:t4:2"],
    ),
    "order of types, ConstrainDevices without task/cgroup": (
        site("gpu:t4:2,gpu:a100:2", [A100, T4], conf="TaskPlugin=affinity", cgroup_conf="ConstrainDevices=yes"),
        "slurm-types-out-of-device-order",
        "slurm.conf:7:47",
        ["t4", "a100"],
    ),
    "order of types, mixed": (
        site("gpu:a100:2,gpu:t4:2", [A100.replace("0-1", "0,2"), T4.replace("2-3", "1,3")]),
        "slurm-types-out-of-device-order",
        "slurm.conf:6:47",
        ["ConstrainDevices=yes"],
    ),
}

RIGHT: dict[str, dict[str, str]] = {
    "order of devices": site("gpu:a100:2,gpu:t4:2", [T4, A100]),
    "devices confined": site("gpu:t4:2,gpu:a100:2", [A100, T4], **CONFINED),
    "one type, files out of order": site("gpu:a100:4", [A100.replace("0-1", "2-3"), A100]),
    "halves": site("gpu:3g.20gb:2", [instance(0, gi, "3g.20gb") for gi in (1, 2)]),
    "sevenths": site("gpu:1g.5gb:7", [instance(0, gi, "1g.5gb") for gi in range(7, 14)]),
    "profiles that no model has": site("gpu:5g.99gb:3", [instance(0, gi, "5g.99gb") for gi in (1, 2, 3)]),
    "two cards": site("gpu:3g.20gb:3", [instance(0, gi, "3g.20gb") for gi in (1, 2)] + [instance(1, 1, "3g.20gb")]),
    "a card beside another one's instance": site("gpu:a100:2,gpu:3g.40gb:1", [A100, instance(2, 1, "3g.40gb")]),
    "typed shares of an untyped count": site(
        "gpu:a100:2,shard:a100:20", [A100, "Name=shard Count=20"], types="gpu,shard"
    ),
    "typed mps of an untyped count": site("gpu:a100:2,mps:a100:400", [A100, "Name=mps Count=400"], types="gpu,mps"),
    "a count for nodes that have none": site(records=[A100, "Name=craynetwork Count=4"], types="gpu,craynetwork"),
    "devices of others": site(
        records=[A100, "Name=x File=/dev/nvme0,/dev/dri/renderD128,/dev/amdgpu0"],
        nodes="NodeName=n1 Gres=gpu:a100:2,x:3",
        types="gpu,x",
    ),
    "other devices": site("gpu:a100:2,nic:1", [A100, "Name=nic File=/dev/infiniband/uverbs0"], types="gpu,nic"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_device_that_a_job_does_not_get_is_told(name: str) -> None:
    files, rule, place, words = WRONG[name]
    finding = found(files)[rule]
    assert str(finding.place) == place
    for word in words:
        assert word in finding.message + finding.hint


@pytest.mark.parametrize("name", RIGHT)
def test_devices_that_are_right_are_left_alone(name: str) -> None:
    assert found(RIGHT[name]) == {}


def test_a_list_that_cannot_be_read_is_told_once() -> None:
    assert found(with_file("/dev/nvidia[1-0]")).keys() == {"slurm-bad-file-list"}
    assert found(with_file("/dev/nvidia{0..1}")).keys() == {"slurm-file-is-no-path"}


def test_a_card_beside_its_instances_points_at_both_lines() -> None:
    files, rule, _, _ = WRONG["card and instances"]
    assert [str(related.place) for related in found(files)[rule].related] == ["gres.conf:1:1"]
