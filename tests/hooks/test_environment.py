"""What a prolog and an epilog read of their environment, from what Slurm writes to what a user would like it to be."""

from __future__ import annotations

import pytest

from hybridgpu.hooks.environment import indices, number, read
from hybridgpu.mps.trouble import Trouble
from tests.hooks.cards import recorded

SHARE = {
    "SLURM_CONF": "/etc/slurm/slurm.conf",
    "SLURM_JOB_ID": "12",
    "SLURM_JOB_UID": "1001",
    "SLURM_JOB_GID": "1002",
    "SLURM_JOB_GPUS": "3",
    "SLURM_JOB_RESTART_COUNT": "2",
    "CUDA_VISIBLE_DEVICES": "3",
    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "25",
}


def test_a_share_is_read() -> None:
    request = read(SHARE)
    assert (request.job, request.restart, request.uid, request.gid) == (12, 2, 1001, 1002)
    assert (request.gpus, request.percentage, request.visible) == ((3,), 25, ("3",))
    assert (request.leader, request.conf) == (None, "/etc/slurm/slurm.conf")


def test_what_a_release_does_not_tell_is_none() -> None:
    request = read({"SLURM_JOB_ID": "12"})
    assert (request.restart, request.uid, request.gid, request.percentage, request.gpus) == (None, None, None, None, ())


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("SLURM_JOB_ID", "12; reboot", "'12; reboot'"),
        ("SLURM_JOB_ID", "../../etc", "'../../etc'"),
        ("SLURM_JOB_ID", "", "SLURM_JOB_ID is ''"),
        ("SLURM_JOB_ID", "-1", "'-1'"),
        ("SLURM_JOB_ID", " 12", "' 12'"),
        ("SLURM_JOB_ID", "1_2", "'1_2'"),
        ("SLURM_JOB_ID", "４２", "SLURM_JOB_ID"),
        ("SLURM_JOB_ID", "²", "SLURM_JOB_ID"),
        ("SLURM_JOB_ID", "4294967296", "up to 4294967295"),
        ("SLURM_JOB_UID", "9" * 100_000, "SLURM_JOB_UID"),
        ("SLURM_JOB_GID", "staff", "'staff'"),
        ("SLURM_JOB_GPUS", "0,,1", "SLURM_JOB_GPUS"),
        ("SLURM_JOB_GPUS", "0,0", "different numbers"),
        ("SLURM_JOB_GPUS", "0-3", "'0-3'"),
        ("SLURM_JOB_GPUS", "0\n1", "SLURM_JOB_GPUS"),
        ("SLURM_JOB_GPUS", "1024", "SLURM_JOB_GPUS"),
        ("SLURM_JOB_RESTART_COUNT", "0x1", "'0x1'"),
        ("SLURM_HET_JOB_ID", "12+13", "'12+13'"),
        ("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "25%", "'25%'"),
    ],
)
def test_what_slurm_does_not_write_is_refused(name: str, value: str, said: str) -> None:
    with pytest.raises(Trouble) as caught:
        read({**SHARE, name: value})
    assert said in str(caught.value)
    assert len(str(caught.value)) < 300


def test_everything_wrong_is_told_at_once() -> None:
    with pytest.raises(Trouble) as caught:
        read({"SLURM_JOB_UID": "x", "SLURM_JOB_GPUS": "y"})
    assert all(f"SLURM_JOB_{name} is " in str(caught.value) for name in ("ID", "UID", "GPUS"))


@pytest.mark.parametrize("conf", ["/etc/slurm/\nslurm.conf", "/etc/\x00slurm", "/etc/slurm\x1b[2J"])
def test_a_path_that_no_line_can_hold_is_left_out(conf: str) -> None:
    assert read({**SHARE, "SLURM_CONF": conf}).conf == ""


def test_text_of_users_is_not_looked_at() -> None:
    hostile = "\n$(touch /x)`id`\x00';--daemon=j1"
    names = ("SLURM_JOB_NAME", "SLURM_JOB_COMMENT", "SPANK_SLURM_JOB_ID", "SPANK_LD_PRELOAD", "SLURM_JOB_WORK_DIR")
    request = read({**SHARE, **dict.fromkeys(names, hostile)})
    assert (request.job, request.conf) == (12, "/etc/slurm/slurm.conf")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0", 0), ("007", 7), ("4294967295", 4294967295), ("4294967296", None), ("00000000001", None), ("", None)],
)
def test_numbers(text: str, expected: int | None) -> None:
    assert number(text) == expected


@pytest.mark.parametrize(("text", "expected"), [("", ()), ("0", (0,)), ("2,0", (2, 0)), (",", None), ("0,", None)])
def test_lists_of_devices(text: str, expected: tuple[int, ...] | None) -> None:
    assert indices(text) == expected


@pytest.mark.parametrize("what", ["prolog", "epilog"])
def test_what_every_release_writes_is_read(what: str) -> None:
    seen = list(recorded(what))
    assert len(seen) > 20
    for run in seen:
        request = read(run.environment)
        assert request.job == int(run.environment["SLURM_JOB_ID"]), run.scenario
        assert request.restart is not None, run.scenario
        assert request.uid is not None, run.scenario
        assert request.gid is not None, run.scenario
        assert len(request.visible) == len(request.gpus), run.scenario
        assert (request.percentage is not None) == ("gres=mps:" in run.command), run.scenario
        assert bool(request.leader) == ("/het-" in run.scenario), run.scenario
