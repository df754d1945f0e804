"""What Slurm tells its prolog and epilog: the environment, read once and checked, for users choose parts of it.

SPANK_ variables, names and comments of a job are any user's text and are not looked at. Nothing here is believed by a
task: its own environment is its user's (taskprolog.py).
"""

from __future__ import annotations

from hybridgpu.mps.trouble import Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

PERCENTAGE = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
"""Set by Slurm's mps plugin, and by nothing else in a prolog: this is a job with a share (S:gres_mps.c)."""

VISIBLE = "CUDA_VISIBLE_DEVICES"
NOTHING_VISIBLE = ("", "NoDevFiles")
"""Values of CUDA_VISIBLE_DEVICES that show no device; the second is what old releases wrote."""

LARGEST = 0xFFFFFFFF
"""The largest id: job, user and group ids have 32 bits, and so have restart counts here."""

_MOST_DEVICES = 1024
"""S:src/common/gres.h MAX_GRES_BITMAP."""


class Request:
    """A job on this node, as its prolog or epilog is told of it.

    `gpus`: Slurm's numbers. `percentage`: of its share, 0 where Slurm lost it, None without share. `visible`: the
    entries of CUDA_VISIBLE_DEVICES, numbers or UUIDs by release. `restart` is None where the release does not tell.
    `leader`: the het job's id, None outside one. `gid` is None where an epilog is not told.
    """

    __slots__ = ("conf", "gid", "gpus", "job", "leader", "percentage", "restart", "uid", "visible")

    def __init__(
        self,
        job: int,
        restart: int | None,
        uid: int | None,
        gid: int | None,
        gpus: tuple[int, ...],
        percentage: int | None,
        visible: tuple[str, ...],
        leader: int | None,
        conf: str,
    ) -> None:
        self.job, self.restart, self.uid, self.gid, self.gpus = job, restart, uid, gid, gpus
        self.percentage, self.visible, self.leader, self.conf = percentage, visible, leader, conf


def read(environ: Mapping[str, str]) -> Request:
    """The request in the environment of a prolog or epilog (S:prep_script_slurmd.c _build_env).

    Raises Trouble with every variable that is missing or is not what Slurm writes.
    """
    problems: list[str] = []

    def taken(name: str) -> int | None:
        text = environ.get(name)
        if text is None:
            return None
        value = number(text)
        if value is None:
            problems.append(f"{name} is {text[:40]!r}; allowed: a number up to {LARGEST}")
        return value

    job = taken("SLURM_JOB_ID")
    if "SLURM_JOB_ID" not in environ:
        problems.append("SLURM_JOB_ID is not set: only slurmd calls this")
    listed = environ.get("SLURM_JOB_GPUS", "")
    gpus = indices(listed)
    if gpus is None:
        problems.append(f"SLURM_JOB_GPUS is {listed[:40]!r}; allowed: different numbers parted by commas")
    found = Request(
        job=job or 0,
        restart=taken("SLURM_JOB_RESTART_COUNT"),
        uid=taken("SLURM_JOB_UID"),
        gid=taken("SLURM_JOB_GID"),
        gpus=gpus or (),
        percentage=taken(PERCENTAGE),
        visible=tuple(part for part in environ.get(VISIBLE, "").split(",") if part not in NOTHING_VISIBLE),
        leader=taken("SLURM_HET_JOB_ID") or None,
        conf=_one_line(environ.get("SLURM_CONF", "")),
    )
    if problems:
        raise Trouble("; ".join(problems))
    return found


def number(text: str) -> int | None:
    """A number as Slurm writes one: ASCII digits only, 32 bits. None for anything else."""
    if not text.isascii() or not text.isdecimal() or len(text) > len(str(LARGEST)):
        return None
    value = int(text)
    return value if value <= LARGEST else None


def indices(text: str) -> tuple[int, ...] | None:
    """Slurm's numbers for devices, parted by commas; empty for no text, None for anything else."""
    if not text:
        return ()
    found = [value for part in text.split(",") if (value := number(part)) is not None and value < _MOST_DEVICES]
    return tuple(found) if len(found) == text.count(",") + 1 == len(set(found)) else None


def _one_line(path: str) -> str:
    """A path that fits into a record's line; empty where it does not."""
    return path if path.isprintable() else ""
