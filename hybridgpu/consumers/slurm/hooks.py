"""The hooks that slurm.conf names, as they lie on disk: globs that match nothing, scripts that cannot be run.

Judged only where a hook's folder lies in a folder that was given. Nothing is run, and no script is read.
"""

from __future__ import annotations

import glob
import os
import posixpath
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hybridgpu.consumers.slurm.conf import SlurmFiles
from hybridgpu.consumers.slurm.given import SlurmSide
from hybridgpu.consumers.slurm.release import RELEASES, Release
from hybridgpu.files.slurmlines import Pair
from hybridgpu.model.finding import Finding, Place, Related, Rule, Severity

GLOB_EMPTY = Rule(
    "slurm-hook-glob-matches-nothing",
    Severity.ERROR,
    "The pattern of a hook matches no file: every prolog fails, its job is held and its node drained; an epilog "
    "drains it too.",
    "Put a script there, or remove the line.",
    "S:src/plugins/prep/script/prep_script_slurmd.c _script_list_create, slurmd_script",
)
MISSING = Rule(
    "slurm-hook-missing",
    Severity.ERROR,
    "The hook is not there: it fails wherever Slurm runs it, and with a prolog or epilog its node is drained.",
    "Put the script there, or remove the line.",
    "S:src/common/run_command.c run_command; S:src/plugins/prep/script/prep_script.c init",
)
NOT_RUNNABLE = Rule(
    "slurm-hook-not-executable",
    Severity.ERROR,
    "The hook cannot be read and executed: it ends with status 127 wherever Slurm runs it, and with a prolog or epilog "
    "its node is drained.",
    "chmod 755 the file.",
    "S:src/common/run_command.c run_command",
)
LEFTOVER = Rule(
    "slurm-hook-leftover",
    Severity.WARNING,
    "The pattern takes in a file that looks like a leftover, and Slurm runs it with the others.",
    "Move the file out of the folder, or write a pattern that takes in scripts only.",
    "S:src/plugins/prep/script/prep_script_slurmd.c _script_list_create",
)
REVERSED = Rule(
    "slurm-hooks-in-reverse",
    Severity.WARNING,
    "Slurm runs the files of one pattern backwards, from 9 to 0 and z to a: numbers before the names say the opposite.",
    "Number them so that the first to run has the highest number, or give each its own line (24.05 and newer).",
    "S:src/plugins/prep/script/prep_script_slurmd.c _script_list_create (list_push)",
)
WRITABLE = Rule(
    "slurm-hook-world-writable",
    Severity.WARNING,
    "Everybody may write what Slurm runs for every job: whoever can log in there has root's, or another's, rights.",
    "chmod 755 the file and its folder.",
    "S:src/common/run_command.c run_command",
)
NOT_ABSOLUTE = Rule(
    "slurm-hook-not-absolute",
    Severity.ERROR,
    "This hook needs a full path: Slurm does not find it, and with a prolog or epilog the node is drained.",
    "Write the full path.",
    "S:src/common/run_command.c run_command; S:src/slurmd/slurmd/slurmd.c _read_config",
)
NO_GLOB = Rule(
    "slurm-hook-takes-no-pattern",
    Severity.ERROR,
    "Only Prolog and Epilog take a pattern: here it is the name of a file that is not there, and the hook fails.",
    "Name one script.",
    "S:src/slurmd/slurmstepd/task.c _run_script_and_set_env; S:src/plugins/prep/script/prep_script.c init",
)

_ROOT, _DAEMON, _USER = "root", "SlurmUser", "the job's user"
_HOOKS = {
    **dict.fromkeys(("prolog", "epilog", "healthcheckprogram"), _ROOT),
    **dict.fromkeys(("prologslurmctld", "epilogslurmctld", "resvprolog", "resvepilog"), _DAEMON),
    **dict.fromkeys(("taskprolog", "taskepilog"), _USER),
}
"""The hooks with a program for a value, in lower case, and as whom they run."""

_GLOBBED = ("prolog", "epilog")
_PATTERN = re.compile(r"[*?\[]")
_NUMBERED = re.compile(r"[0-9]+[-_.]?\D")
_LEFTOVER = re.compile(
    r"~$|^#.*#$|^\.|^readme|\.(?:md|txt|bak|backup|old|orig|save|swp|tmp|rpm(?:new|save|orig)|dpkg-\w+|disabled|example"
    r"|sample)$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Hook:
    """A line of slurm.conf that names a hook: the key in lower case, and the path it means."""

    pair: Pair
    key: str
    path: str

    @property
    def pattern(self) -> bool:
        return self.key in _GLOBBED and _PATTERN.search(self.path) is not None

    @property
    def folder(self) -> str:
        """The folder the path begins with, before any pattern."""
        plain = _PATTERN.split(self.path)[0] if self.pattern else self.path
        return posixpath.dirname(plain) or "."

    @property
    def said(self) -> str:
        return f"{self.pair.key}={self.pair.value}"


def judge_hooks(slurm: SlurmSide, roots: Sequence[str]) -> Iterator[Finding]:
    """Findings on Prolog, Epilog and their kin.

    What lies on disk is judged where the hook's folder is in one of `roots`, folders that were named.
    """
    folders = [os.path.realpath(root) for root in roots if Path(root).is_dir()]
    release = slurm.consumption.release
    for hook in _hooks(slurm.tree.files, release):
        if not hook.pair.value.startswith("/") and hook.key not in release.relative_hooks:
            yield _not_absolute(hook, release)
        elif "*" in hook.path and hook.key not in _GLOBBED:
            yield Finding(NO_GLOB, hook.pair.place, f"{hook.said}: {hook.pair.key} takes no pattern", NO_GLOB.fix)
        elif (hook.pair.value.startswith("/") or slurm.tree.files.whole) and _inside(hook.folder, folders):
            yield from _on_disk(hook, folders)


def _hooks(files: SlurmFiles, release: Release) -> Iterator[_Hook]:
    """The lines that hold: all of a key where they add up, else the last."""
    beside = posixpath.dirname(files.slurm_conf)
    for key in _HOOKS:
        pairs = files.settings.get(key, ())
        adding = release.prolog_lines_add_up and key.startswith(("prolog", "epilog"))
        for pair in pairs if adding else pairs[-1:]:
            if pair.value:
                yield _Hook(pair, key, posixpath.join(beside, pair.value))


def _not_absolute(hook: _Hook, release: Release) -> Finding:
    since = next((r.major for r in RELEASES.values() if hook.key in r.relative_hooks), None)
    later = f"; from {since} on the file beside slurm.conf is meant" if since else ""
    message = f"{hook.said} is no full path, which Slurm {release} needs for {hook.pair.key}{later}"
    return Finding(NOT_ABSOLUTE, hook.pair.place, message, NOT_ABSOLUTE.fix)


def _inside(folder: str, folders: Sequence[str]) -> bool:
    real = os.path.realpath(folder)
    return any(real == root or real.startswith(root.rstrip("/") + "/") for root in folders)


def _on_disk(hook: _Hook, folders: Sequence[str]) -> Iterator[Finding]:
    paths = sorted(glob.glob(hook.path)) if hook.pattern else [hook.path]  # noqa: PTH207 - glob(3)'s own rules
    if not paths:
        message = f"{hook.said} matches no file: there is nothing like that in {hook.folder}"
        yield Finding(GLOB_EMPTY, hook.pair.place, message, GLOB_EMPTY.fix)
    for path in paths:
        if _inside(posixpath.dirname(os.path.realpath(path)), folders):  # a link may lead out of what was given
            yield from _on_file(hook, path)
    names = [posixpath.basename(path) for path in paths]
    if hook.pattern and sum(_NUMBERED.match(name) is not None for name in names) > 1:
        order = ", ".join(reversed(names))
        yield Finding(REVERSED, hook.pair.place, f"{hook.said}: Slurm runs them in the order {order}", REVERSED.fix)


def _on_file(hook: _Hook, path: str) -> Iterator[Finding]:
    """What is wrong with one file that Slurm would run."""
    place, related = hook.pair.place, (Related(Place(path, 1), "the file"),)
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - any text
    except OSError as error:
        yield Finding(MISSING, place, f"{hook.said}: {path}: {error.strerror}", MISSING.fix)
        return
    leftover = hook.pattern and _LEFTOVER.search(posixpath.basename(path)) is not None
    fault = _fault(mode, _HOOKS[hook.key])
    if fault:
        fix = LEFTOVER.fix if leftover or stat.S_ISDIR(mode) else NOT_RUNNABLE.fix
        said = " and looks like a leftover" if leftover else ""
        yield Finding(NOT_RUNNABLE, place, f"{hook.said}: {path} {fault}{said}", fix, related)
    elif leftover:
        message = f"{hook.said} takes in {path}, which Slurm runs like the others"
        yield Finding(LEFTOVER, place, message, LEFTOVER.fix, related)
    folder = os.stat(posixpath.dirname(path) or ".").st_mode  # noqa: PTH116
    if mode & stat.S_IWOTH or (folder & stat.S_IWOTH and not folder & stat.S_ISVTX):
        what = path if mode & stat.S_IWOTH else f"the folder of {path}"
        message = f"{hook.said}: everybody may write {what}, which {_HOOKS[hook.key]} runs"
        yield Finding(WRITABLE, place, message, WRITABLE.fix, related)


def _fault(mode: int, user: str) -> str:
    """Why this user cannot run a file of this mode, in words; empty where they can.

    root reads everything, and runs what anybody may run; whose group a job's user has is not known.
    """
    if not stat.S_ISREG(mode):
        return "is no ordinary file, and cannot be run"
    said = f"(mode {stat.S_IMODE(mode):04o})"
    if not mode & 0o111:
        return f"is not executable {said}"
    if user == _USER and mode & 0o005 != 0o005 and mode & 0o050 != 0o050:
        return f"cannot be read and executed by {user} {said}"
    return ""
