"""What stands in the way of a hook, in one line that a person can act on. Nothing else is raised on purpose here."""

from __future__ import annotations


class Trouble(Exception):
    """Carries the line."""


class ByUser(Trouble):
    """What the job's own user may have caused: it costs him his job, and must not cost the site its node."""


class Busy(ByUser):
    """Another hook is at it, and did not finish in time: at a daemon that is one user's, who may have made it slow."""


def reason(problem: Exception) -> str:
    """A Trouble or an OSError in one line."""
    if isinstance(problem, OSError) and problem.strerror:
        return f"{problem.filename}: {problem.strerror}" if problem.filename else problem.strerror
    return str(problem)
