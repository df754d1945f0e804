"""The hooks of slurm.conf as they lie on disk: what Slurm cannot run, what it runs unasked, and in which order."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybridgpu.consumers.slurm import NEWEST, RELEASES, SlurmSide, consume, gather
from hybridgpu.consumers.slurm.hooks import judge_hooks
from hybridgpu.files.kinds import inputs
from hybridgpu.model.finding import Finding, Severity

HEAD = "ClusterName=c\nSlurmctldHost=ctl\nPartitionName=p Nodes=ALL\nNodeName=n1\n"


def laid(folder: Path, conf: str, scripts: dict[str, int | None]) -> None:
    """A site's folder: slurm.conf with these lines, and files (None: folders) with these modes."""
    (folder / "slurm.conf").write_text(HEAD + conf.replace("{here}", str(folder)))
    for name, mode in scripts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if mode is None:
            path.mkdir()
        else:
            path.write_text("#!/bin/sh\n")
            path.chmod(mode)


def found(folder: Path, release: str = NEWEST.major, roots: tuple[str, ...] | None = None) -> list[Finding]:
    judging = RELEASES[release]
    trees, _ = gather(list(inputs(str(folder))), judging)
    side = SlurmSide(trees[0], consume(trees[0].files, judging))
    return list(judge_hooks(side, (str(folder),) if roots is None else roots))


FIRES: dict[str, tuple[str, dict[str, int | None], list[tuple[str, list[str]]]]] = {
    "a glob of nothing": (
        "Prolog={here}/prolog.d/*.sh",
        {"prolog.d/10-gpu": 0o755},
        [("slurm-hook-glob-matches-nothing", ["prolog.d/*.sh"])],
    ),
    "a glob in a folder that is not there": (
        "Epilog={here}/epilog.d/*",
        {},
        [("slurm-hook-glob-matches-nothing", ["epilog.d"])],
    ),
    "a script that is not there": (
        "TaskProlog={here}/task.sh",
        {},
        [("slurm-hook-missing", ["task.sh", "No such file"])],
    ),
    "a prolog beside slurm.conf that is not there": ("Prolog=prolog.sh", {}, [("slurm-hook-missing", ["prolog.sh"])]),
    "a prolog that cannot be executed": (
        "Prolog={here}/prolog.sh",
        {"prolog.sh": 0o644},
        [("slurm-hook-not-executable", ["prolog.sh", "is", "not", "executable", "0644"])],
    ),
    "one of two that cannot": (
        "Prolog={here}/prolog.d/*",
        {"prolog.d/a": 0o755, "prolog.d/b": 0o600},
        [("slurm-hook-not-executable", ["prolog.d/b", "0600"])],
    ),
    "a task prolog that only root can read": (
        "TaskProlog={here}/task.sh",
        {"task.sh": 0o700},
        [("slurm-hook-not-executable", ["task.sh", "user", "0700"])],
    ),
    "a folder among the scripts": (
        "Prolog={here}/prolog.d/*",
        {"prolog.d/a": 0o755, "prolog.d/lib": None},
        [("slurm-hook-not-executable", ["prolog.d/lib", "no", "ordinary", "file"])],
    ),
    "a README": (
        "Prolog={here}/prolog.d/*",
        {"prolog.d/a": 0o755, "prolog.d/README": 0o644},
        [("slurm-hook-not-executable", ["README", "leftover"])],
    ),
    "a copy that still runs": (
        "Epilog={here}/epilog.d/*",
        {"epilog.d/a": 0o755, "epilog.d/a.bak": 0o755, "epilog.d/a~": 0o755, "epilog.d/a.rpmsave": 0o755},
        [("slurm-hook-leftover", ["a.bak"]), ("slurm-hook-leftover", ["a.rpmsave"]), ("slurm-hook-leftover", ["a~"])],
    ),
    "numbers that say the opposite": (
        "Prolog={here}/prolog.d/*",
        {"prolog.d/10-first": 0o755, "prolog.d/20-second": 0o755, "prolog.d/30-third": 0o755},
        [("slurm-hooks-in-reverse", ["30-third, 20-second, 10-first"])],
    ),
    "a script for everybody to write": (
        "HealthCheckProgram={here}/nhc",
        {"nhc": 0o777},
        [("slurm-hook-world-writable", ["nhc", "root"])],
    ),
    "a relative path where none may be": (
        "HealthCheckProgram=nhc",
        {"nhc": 0o755},
        [("slurm-hook-not-absolute", ["HealthCheckProgram=nhc"])],
    ),
    "a pattern where none may be": (
        "TaskProlog=/etc/slurm/taskprolog.d/*",
        {},
        [("slurm-hook-takes-no-pattern", ["taskprolog.d"])],
    ),
    "both of two lines": (
        "Prolog={here}/a\nProlog={here}/b",
        {},
        [("slurm-hook-missing", ["a", "No such file"]), ("slurm-hook-missing", ["b", "No such file"])],
    ),
    "the controller's": (
        "PrologSlurmctld={here}/ctl.sh",
        {"ctl.sh": 0o644},
        [("slurm-hook-not-executable", ["PrologSlurmctld", "0644"])],
    ),
}

CLEAN: dict[str, tuple[str, dict[str, int | None]]] = {
    "no hooks": ("", {}),
    "one script": ("Prolog={here}/prolog.sh", {"prolog.sh": 0o755}),
    "only root's": ("Prolog={here}/prolog.sh\nEpilog={here}/epilog.sh", {"prolog.sh": 0o700, "epilog.sh": 0o500}),
    "a folder of scripts": (
        "Prolog={here}/prolog.d/*\nEpilog={here}/epilog.d/*.sh",
        {"prolog.d/50-hybridgpu": 0o755, "prolog.d/site": 0o755, "epilog.d/a.sh": 0o755, "epilog.d/README": 0o644},
    ),
    "a hidden file, which no pattern takes in": (
        "Prolog={here}/prolog.d/*",
        {"prolog.d/a": 0o755, "prolog.d/.a.swp": 0o600},
    ),
    "beside slurm.conf": (
        "Prolog=prolog.d/*\nTaskProlog=task.sh",
        {"prolog.d/a": 0o755, "task.sh": 0o755},
    ),
    "a task prolog for a group": ("TaskProlog={here}/task.sh", {"task.sh": 0o750}),
    "elsewhere on the machine": (
        "Prolog=/nowhere/prolog.d/*\nEpilog=/nowhere/epilog\nTaskProlog=/nowhere/task",
        {},
    ),
    "a key without a value": ('Prolog=""', {}),
}


@pytest.mark.parametrize("name", FIRES)
def test_a_hook_that_goes_wrong(name: str, tmp_path: Path) -> None:
    conf, scripts, expected = FIRES[name]
    laid(tmp_path, conf, scripts)
    findings = found(tmp_path)
    assert len(findings) == len(expected)
    for finding, (rule, words) in zip(findings, expected, strict=True):
        assert finding.rule.id == rule
        assert finding.place is not None and finding.place.file == str(tmp_path / "slurm.conf")
        assert all(word in f"{finding.message} {finding.hint}" for word in words)


@pytest.mark.parametrize("name", CLEAN)
def test_a_hook_that_works(name: str, tmp_path: Path) -> None:
    conf, scripts = CLEAN[name]
    laid(tmp_path, conf, scripts)
    assert found(tmp_path) == []


def test_nothing_is_judged_outside_the_folders_given(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    laid(site, f"Prolog={tmp_path}/prolog.d/*", {})
    assert found(site) == []
    assert [f.rule.id for f in found(site, roots=(str(tmp_path),))] == ["slurm-hook-glob-matches-nothing"]
    assert found(site, roots=(str(site / "slurm.conf"),)) == []


def test_a_link_that_leads_out_is_not_judged_and_one_to_nothing_inside_is(tmp_path: Path) -> None:
    laid(tmp_path, "Prolog={here}/prolog.d/*", {"prolog.d/a": 0o755})
    (tmp_path / "prolog.d" / "b").symlink_to("/nowhere/hybridgpu")
    assert found(tmp_path) == []
    (tmp_path / "prolog.d" / "c").symlink_to("../gone")
    assert [f.rule.id for f in found(tmp_path)] == ["slurm-hook-missing"]


RELATIVE = {
    ("Prolog", "23.02"): "from 23.11 on",
    ("Prolog", "23.11"): "",
    ("TaskProlog", "25.05"): "from 25.11 on",
    ("TaskProlog", "25.11"): "",
    ("EpilogSlurmctld", "26.05"): "EpilogSlurmctld",
}


@pytest.mark.parametrize(("key", "release"), RELATIVE)
def test_which_release_finds_a_hook_beside_slurm_conf(key: str, release: str, tmp_path: Path) -> None:
    laid(tmp_path, f"{key}=hook.sh", {"hook.sh": 0o755})
    findings = found(tmp_path, release)
    words = RELATIVE[key, release]
    assert [f.rule.id for f in findings] == (["slurm-hook-not-absolute"] if words else [])
    assert all(words in f.message and f.severity is Severity.ERROR for f in findings)


def test_of_lines_that_do_not_add_up_the_last_is_judged(tmp_path: Path) -> None:
    laid(tmp_path, "Prolog={here}/gone\nProlog={here}/there", {"there": 0o755})
    assert found(tmp_path, "23.11") == []
    assert [f.rule.id for f in found(tmp_path, "24.05")] == ["slurm-hook-missing"]


def test_a_folder_that_everybody_may_write(tmp_path: Path) -> None:
    laid(tmp_path, "Prolog={here}/d/a", {"d/a": 0o755})
    (tmp_path / "d").chmod(0o777)
    assert [f.rule.id for f in found(tmp_path)] == ["slurm-hook-world-writable"]
    (tmp_path / "d").chmod(0o1777)
    assert found(tmp_path) == []
