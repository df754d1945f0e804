"""The Includes of Slurm's files: which of them cannot be followed, and which do not reach nodes without files.

Following them is the reader's work (files.slurmlines); here it is only said what becomes of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hybridgpu.files.slurmlines import Include
from hybridgpu.model.finding import Finding, Place, Related, Rule, Severity

INCLUDE_MISSING = Rule(
    "slurm-include-missing",
    Severity.ERROR,
    "The included file is not there: Slurm waits a minute for it, then stops with a fatal error.",
    "Put the file there, or remove the Include. Up to 22.05 its name is relative to the including file, from 23.02 to "
    "slurm.conf.",
    "S:src/common/parse_config.c s_p_parse_file; S:src/common/read_config.c get_extra_conf_path",
)
INCLUDE_PATTERN = Rule(
    "slurm-include-pattern",
    Severity.ERROR,
    "Slurm takes no pattern in Include: nothing is included, and every daemon stops with a fatal error.",
    "Name each file in an Include of its own.",
    "S:src/common/parse_config.c _parse_include_directive; slurmd -G on 22.05, 24.11, 26.05",
)
INCLUDE_NO_CLUSTER = Rule(
    "slurm-include-without-cluster-name",
    Severity.ERROR,
    "%c stands for the ClusterName that was read before it from the same file, and there is none (in gres.conf and "
    "cgroup.conf there never is): every daemon that reads the file stops with a fatal error.",
    "Write the name out, or put ClusterName before the Include.",
    "S:src/common/parse_config.c _parse_for_format; slurmd -G on 22.05, 24.11, 26.05",
)
INCLUDE_RUNS_OVER = Rule(
    "slurm-include-without-line-end",
    Severity.ERROR,
    "Slurm reads on behind the name of an included file until it finds a blank: at the end of a file without a line "
    "end, or where a comment follows at once, it takes what lies in its memory for text, and every daemon stops.",
    "End the line behind the name.",
    "S:src/common/parse_config.c _parse_include_directive; slurmd -G on 22.05, 24.11, 26.05",
)
INCLUDE_LOOP = Rule(
    "slurm-include-loop",
    Severity.ERROR,
    "The file includes itself: Slurm reads until it runs out of memory.",
    "Remove the Include.",
    "S:src/common/parse_config.c _parse_include_directive",
)
INCLUDES_TOO_MANY = Rule(
    "slurm-includes-too-many",
    Severity.ERROR,
    "So many files are included that what they say is not judged: Includes that double at every step never end.",
    "Include each file once.",
    "hybridgpu limit",
)
INCLUDE_NOT_GIVEN = Rule(
    "slurm-include-not-given",
    Severity.INFO,
    "The included file is not among the inputs: what it says is not judged.",
    "Give the file too.",
    "S:src/common/parse_config.c _parse_include_directive",
)
INCLUDE_FROM_COPY = Rule(
    "slurm-include-from-copy",
    Severity.INFO,
    "The Include names a file that is not among the inputs; one of its name that is there is read in its place.",
    "Nothing, where the files are a copy of that folder.",
    "S:src/common/parse_config.c _parse_include_directive",
)
INCLUDE_NOT_PUSHED = Rule(
    "slurm-include-not-pushed",
    Severity.WARNING,
    "Under enable_configless slurmctld hands nodes only those included files whose names have no '/': a node that has "
    "not got the file by other ways does not start.",
    "Put the file beside slurm.conf and write its bare name.",
    "S:src/common/parse_config.c _parse_include_directive, _handle_include; configless_slurm.shtml",
)

RULES = (
    *(INCLUDE_MISSING, INCLUDE_PATTERN, INCLUDE_NO_CLUSTER, INCLUDE_LOOP, INCLUDES_TOO_MANY, INCLUDE_NOT_GIVEN),
    *(INCLUDE_FROM_COPY, INCLUDE_NOT_PUSHED, INCLUDE_RUNS_OVER),
)

FATAL = frozenset(
    (INCLUDE_MISSING, INCLUDE_PATTERN, INCLUDE_NO_CLUSTER, INCLUDE_LOOP, INCLUDES_TOO_MANY, INCLUDE_RUNS_OVER)
)
"""Those that no daemon survives."""

_RULES = {
    "missing": (INCLUDE_MISSING, "there is no such file"),
    "loop": (INCLUDE_LOOP, "this file is being read already"),
    "too many": (INCLUDES_TOO_MANY, "too many files were included before it"),
    "not given": (INCLUDE_NOT_GIVEN, "not among the files given"),
}


def findings(includes: Iterable[Include], whole: bool = True) -> Iterator[Finding]:
    """One finding for every Include that was not followed, or not to the file that it names.

    `whole`: what stands before the first file is given too, so that a ClusterName that is not there is nowhere.
    """
    for include in includes:
        if include.overrun:
            message = f"Include {include.name}: neither a blank nor a line end follows the name"
            yield Finding(INCLUDE_RUNS_OVER, include.place, message, INCLUDE_RUNS_OVER.fix)
        if include.problem == "no cluster":
            rule = INCLUDE_NO_CLUSTER if whole else INCLUDE_NOT_GIVEN
            yield Finding(rule, include.place, f"Include {include.name}: no ClusterName before it for %c", rule.fix)
        elif include.problem == "pattern":
            message = f"Include {include.name}: Slurm expands no pattern"
            yield Finding(INCLUDE_PATTERN, include.place, message, INCLUDE_PATTERN.fix)
        elif include.problem:
            rule, what = _RULES[include.problem]
            yield Finding(rule, include.place, f"Include {include.path}: {what}", rule.fix)
        elif include.found != include.path:
            message = f"Include {include.path}: not among the inputs; {include.found} is read in its place"
            related = (Related(Place(include.found, 1), "read here"),)
            yield Finding(INCLUDE_FROM_COPY, include.place, message, related=related)


def not_pushed(includes: Iterable[Include]) -> Iterator[Finding]:
    """The Includes that configless nodes do not get."""
    for include in includes:
        if "/" in include.name:
            message = f"Include {include.name}: not handed to nodes under enable_configless, for the '/' in its name"
            yield Finding(INCLUDE_NOT_PUSHED, include.place, message, INCLUDE_NOT_PUSHED.fix)
