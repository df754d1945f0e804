"""Which daemons a job gets, by its request and its node's DeviceMap."""

from __future__ import annotations

import pytest

from hybridgpu.hooks.environment import Request, read
from hybridgpu.hooks.prolog import wanted
from hybridgpu.mps.devicemap import DeviceMap
from hybridgpu.mps.trouble import Trouble
from tests.hooks.cards import CUT, UID, device_map, gpu, gpus, recorded

GPUS = gpus()
MPS = device_map(GPUS)
WHOLE = device_map(GPUS, "exclusive", whole=True)


def request(
    *indices: int,
    percentage: int | None = None,
    visible: tuple[str, ...] = (),
    uid: int | None = UID,
    gid: int | None = UID,
) -> Request:
    return Request(12, 0, uid, gid, indices, percentage, visible, None, "/etc/slurm/slurm.conf")


@pytest.mark.parametrize(
    ("asked", "devices", "expected"),
    [
        (request(3, percentage=25), MPS, [("u1001-3", [3], False)]),
        (request(3, percentage=0), MPS, [("u1001-3", [3], False)]),
        (request(5, 3, percentage=25), MPS, [("u1001-3+5", [3, 5], False)]),
        (request(3, percentage=25), device_map(GPUS, whole=True), [("u1001-3", [3], False)]),
        # EXCLUSIVE_PROCESS is for whole GPUs only: two users' daemons may share a card.
        (
            request(3, percentage=25),
            device_map(GPUS, whole=True, compute_mode="exclusive_process"),
            [("u1001-3", [3], False)],
        ),
        (request(0), MPS, []),
        (request(2, 0), WHOLE, [("j12-0+2", [0, 2], False)]),
        (request(*range(8)), WHOLE, [("j12-0+1+2+3+4+5+6+7", list(range(8)), False)]),
        (
            request(1),
            device_map(GPUS, "exclusive", whole=True, compute_mode="exclusive_process"),
            [("j12-1", [1], True)],
        ),
        (request(1, 2), device_map(CUT, "mig", whole=True), [("j12-1", [1], False), ("j12-2", [2], False)]),
        (request(0, 3), device_map(CUT, "mig", whole=True), [("j12-0", [0], False), ("j12-3", [3], False)]),
        # Never EXCLUSIVE_PROCESS on a node with MIG (MIG user guide).
        (
            request(0, 1),
            device_map(CUT, "mig", whole=True, compute_mode="exclusive_process"),
            [("j12-0", [0], False), ("j12-1", [1], False)],
        ),
        (request(1, 2), device_map(CUT, "mig"), []),
        (request(), WHOLE, []),
        (request(3, percentage=25, visible=(gpu(3).uuid,)), MPS, [("u1001-3", [3], False)]),
        (request(2, 0, visible=("2", "0")), WHOLE, [("j12-0+2", [0, 2], False)]),
    ],
)
def test_daemons(asked: Request, devices: DeviceMap, expected: list[tuple[str, list[int], bool]]) -> None:
    found = wanted(asked, devices)
    assert [(w.name, [d.slurm_index for d in w.devices], w.exclusive) for w in found] == expected
    assert all((w.uid, w.gid) == (UID, UID) for w in found)


@pytest.mark.parametrize(
    ("asked", "devices", "said"),
    [
        (request(0, percentage=25), device_map(GPUS, "exclusive"), "the mode of this node is exclusive"),
        (request(0, percentage=25), device_map(CUT, "mig", whole=True), "the mode of this node is mig"),
        (request(percentage=25), MPS, "names no GPU"),
        (request(8, percentage=25), MPS, "GPU 8 is not in the DeviceMap"),
        (request(0, percentage=25, gid=None), MPS, "SLURM_JOB_GID"),
        (request(0, uid=None), WHOLE, "SLURM_JOB_UID"),
        # slurmd has another card behind the number: the daemon would serve a card that is another job's.
        (request(0, percentage=25, visible=(gpu(1).uuid,)), MPS, f"Slurm's GPU 0 is {gpu(1).uuid}"),
        (request(1, 2, visible=(CUT[2].uuid, CUT[1].uuid)), device_map(CUT, "mig", whole=True), "Slurm's GPU 1 is MIG"),
    ],
)
def test_what_does_not_fit(asked: Request, devices: DeviceMap, said: str) -> None:
    with pytest.raises(Trouble) as caught:
        wanted(asked, devices)
    assert said in str(caught.value)


def test_every_recorded_share_gets_one_daemon_and_no_other_job_any() -> None:
    shares = 0
    for run in recorded("prolog"):
        asked = read(run.environment)
        whole = all(device.profile is None for device in run.devices.values())
        mode = "mps" if asked.percentage is not None else "exclusive" if whole else "mig"
        found = wanted(asked, device_map(run.devices, mode))
        shares += asked.percentage is not None
        assert [w.name for w in found] == ([f"u{UID}-0"] if asked.percentage is not None else []), run.scenario
    assert shares > 10
