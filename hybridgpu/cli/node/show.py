"""`hybridgpu node show`: the MPS daemons of this node's jobs, their holders, and what is left over. Changes nothing."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from hybridgpu.check.formats import printable
from hybridgpu.cli import failed, say
from hybridgpu.cli.options import hooks_conf_option, output_option, pause_option
from hybridgpu.cli.table import table

if TYPE_CHECKING:
    from hybridgpu.mps.sweep import DaemonSeen, HolderSeen, JobSeen, Survey


@click.command()
@hooks_conf_option
@pause_option(2)
@output_option("text", "json")
def command(hooks_conf: str, pause: float, output: str) -> int:
    """List the MPS daemons of this node's jobs, the jobs that hold them, job records, and what nobody needs any more.

    State: serving; starting (a prolog is at it); dead (its process is gone, a job holds it); stopping (no job needs it,
    and a hook is at it); leftover (`node sweep` removes it). Needs root: nobody else sees every process, and whether a
    job still runs is told by them.
    """
    from hybridgpu.mps.journal import trouble
    from hybridgpu.mps.settings import read
    from hybridgpu.mps.sweep import survey
    from hybridgpu.mps.trouble import Trouble

    if os.geteuid() != 0:
        return failed("node show needs root, which alone sees every process of the node")
    try:
        settings = read(hooks_conf)
        found = survey(settings, pause)
    except Trouble as problem:
        return failed(str(problem))
    if lost := trouble(settings):
        say(printable(lost))
    if output == "json":
        click.echo(json.dumps(_record(found), indent=2))
    else:
        click.echo(_text(found), nl=False)
    return 0


def _state(daemon: DaemonSeen) -> tuple[str, str | None]:
    """A word, and the reason where there is something wrong."""
    if daemon.busy:
        return "stopping", None
    if daemon.leftover is not None:
        return "leftover", daemon.leftover
    if daemon.alive:
        return "serving", None
    if daemon.pid is None:
        return "starting", None
    return (
        "dead",
        f"process {daemon.pid} is gone, and jobs hold the daemon: their CUDA programs fail or run without MPS",
    )


def _record(found: Survey) -> dict[str, Any]:
    return {
        "daemons": [_daemon(daemon) for daemon in found.daemons],
        "jobs": [_job(job) for job in found.jobs],
        "strays": list(found.strays),
    }


def _daemon(daemon: DaemonSeen) -> dict[str, Any]:
    state, why = _state(daemon)
    return {
        "name": daemon.name,
        "state": state,
        "why": why,
        "pid": daemon.pid,
        "uid": daemon.uid,
        "gid": daemon.gid,
        "boot_id": daemon.boot,
        "devices": [{"slurm_index": d.slurm_index, "minor": d.minor, "uuid": d.uuid} for d in daemon.devices],
        "holders": [_holder(holder) for holder in daemon.holders],
    }


def _holder(holder: HolderSeen) -> dict[str, Any]:
    return {
        "job": holder.job,
        "restart": holder.restart,
        "since": _time(holder.since),
        "ready": holder.ready,
        "ended": holder.ended,
    }


def _job(job: JobSeen) -> dict[str, Any]:
    return {
        "name": job.name,
        "job": job.job,
        "restart": job.restart,
        "uid": job.uid,
        "gpus": list(job.gpus),
        "ended": job.ended,
    }


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _text(found: Survey) -> str:
    parts = [
        _daemons(found.daemons),
        _jobs(found.jobs),
        "".join(f"stray: {printable(path)}\n" for path in found.strays),
    ]
    return "\n".join(part for part in parts if part) or "no MPS daemons, no jobs, nothing left over\n"


def _daemons(daemons: list[DaemonSeen]) -> str:
    rows, remarks = [], []
    for daemon in daemons:
        state, why = _state(daemon)
        devices = " ".join(f"{device.slurm_index}={device.uuid}" for device in daemon.devices)
        jobs = " ".join(f"{h.job}.{h.restart}@{_time(h.since)}{'' if h.ready else '?'}" for h in daemon.holders)
        rows.append((daemon.name, state, _or_dash(daemon.pid), _or_dash(daemon.uid), devices or "-", jobs or "-"))
        remarks += [f"{daemon.name}: {why}\n"] if why else []
    if not rows:
        return ""
    heads = ("DAEMON", "STATE", "PID", "UID", "DEVICES", "HELD BY JOB.RESTART@SINCE")
    return table(heads, rows) + "".join(remarks)


def _jobs(jobs: list[JobSeen]) -> str:
    rows = [(j.name, str(j.restart), str(j.uid), ",".join(map(str, j.gpus)) or "-", j.ended or "-") for j in jobs]
    return table(("JOB", "RESTART", "UID", "GPUS", "ENDED"), rows) if rows else ""


def _or_dash(number: int | None) -> str:
    return "-" if number is None else str(number)
