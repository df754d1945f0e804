"""The epilog of a job that may hold MPS daemons: it lets them go, and the last holder of each stops it.

Runs twice, without a prolog before it, or late, and then does nothing that is not its own: what a later restart of the
job holds stays. What cannot be cleaned fails it, so that the node is drained with the reason.
"""

from __future__ import annotations

from hybridgpu.hooks import environment
from hybridgpu.hooks.told import Told
from hybridgpu.mps import daemon, job
from hybridgpu.mps.trouble import Trouble, reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from hybridgpu.mps.settings import Settings


def run(settings: Settings, environ: Mapping[str, str]) -> int:
    """Let go what the job of `environ` holds. Gives the exit code: 1 where something could not be cleaned."""
    told = Told(settings, "epilog", environ)
    try:
        request = environment.read(environ)
    except Trouble as problem:
        return told.failed(reason(problem))
    # A release that does not tell which run of the job this was has none that is later.
    restart = environment.LARGEST if request.restart is None else request.restart
    records = [record for record in job.every(settings) if record.job == request.job and record.restart <= restart]
    names = daemon.held_by(settings, request.job)
    names += [name for record in records for name in record.daemons if name not in names]
    problems = []
    for name in names:
        try:
            told.outcome([(daemon.release(settings, name, request.job, restart), name)])
        except (Trouble, OSError) as problem:
            problems.append(reason(problem))
    for record in records:
        try:
            job.remove(settings, record)
        except (Trouble, OSError) as problem:
            problems.append(reason(problem))
    return told.failed("; ".join(problems)) if problems else told.done()
