"""Names of device files in gres.conf that no file has: what else they were meant to be. Looks at no disk.

Source: S:src/interfaces/gres.c _validate_file, _my_stat.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hybridgpu.consumers.slurm.hostlist import folded
from hybridgpu.model.finding import Rule, Severity
from hybridgpu.model.spelling import is_slip

NO_PATH = Rule(
    "slurm-file-is-no-path",
    Severity.ERROR,
    "There is no file of this name: slurmd waits 20 seconds for it and stops with 'can't stat gres.conf file'.",
    "Write every file in full, and ranges in brackets: /dev/nvidia[0-3] or /dev/nvidia0,/dev/nvidia1.",
    "S:src/interfaces/gres.c _validate_file, _my_stat; slurmd -G on 22.05, 24.11, 26.05",
)

RULES = (NO_PATH,)

_BRACE = re.compile(r"[({]([0-9]+)(?:\.\.|-)([0-9]+)[)}]|[({]([0-9]+(?:,[0-9]+)*)[)}]")
_BARE_RANGE = re.compile(r"(/dev/[\w/]*[A-Za-z])([0-9]+)(?:-|\.\.)(?:/dev/[\w/]*[A-Za-z])?([0-9]+)(?=,|\Z)")
_CARD_LIKE = re.compile(r"/dev/([A-Za-z]+)([0-9]+)")


def _is_slip(word: str) -> bool:
    return word != "nvidia" and is_slip(word, "nvidia")


def path_fault(text: str, files: Sequence[str]) -> tuple[str, str] | None:
    """What is wrong with a list of files, and what may be meant by it; None where each may be a file's name.

    `files` are the names that Slurm makes of `text`.
    """
    if _BRACE.search(text):
        mended = _BRACE.sub(lambda found: f"[{found[3] or f'{found[1]}-{found[2]}'}]", text)
        return "Slurm expands square brackets only", f"write {mended}"
    if _BARE_RANGE.search(text):
        mended = _BARE_RANGE.sub(lambda found: f"{found[1]}[{found[2]}-{found[3]}]", text)
        return "a range stands in brackets; this is the name of one file", f"write {mended}"
    pattern = next((file for file in files if "*" in file or "?" in file), None)
    if pattern:
        return f"Slurm expands no pattern, and there is no file '{pattern}'", "write the numbers: /dev/nvidia[0-3]"
    slip = next((found for file in files if (found := _CARD_LIKE.fullmatch(file)) and _is_slip(found[1])), None)
    if slip:
        cards = [_CARD_LIKE.sub(lambda found: f"/dev/nvidia{found[2]}", file) for file in files]
        return f"'{slip[0]}' is no card of NVIDIA's", f"did you mean {folded(cards)}?"
    relative = next((file for file in files if not file.startswith("/")), None)
    if relative is None:
        return None
    full = [file if file.startswith("/") else f"/dev/{file.removeprefix('dev/')}" for file in files]
    return f"'{relative}' does not begin with '/'", f"write {folded(full)}"
