"""What to write instead of a host list that only later releases take: text behind the last bracket (`n[1-2]-ib`)."""

from __future__ import annotations

from hybridgpu.consumers.slurm.hostlist import BadHostlist, expand

_TOLD = 4


def written_out(text: str) -> str:
    """A hint with the first names of the list; empty where no release takes it."""
    try:
        names = expand(text, True)
    except BadHostlist:
        return ""
    return f"write the names out: {','.join(names[:_TOLD])}{',...' if len(names) > _TOLD else ''}"
