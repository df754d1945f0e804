"""The shell scripts that Slurm calls, under each shell there is: what they decide, write, start and fork."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from hybridgpu.devices.devicemap import BoundDevice, DeviceMap, as_json
from hybridgpu.model.sharing import Mode, Sharing
from hybridgpu.mps import job
from hybridgpu.mps.settings import Settings
from tests.hooks.cards import recorded
from tests.hooks.smallroot import HOOK, SHELLS, SmallRoot

JOB = {"SLURM_JOB_ID": "12", "SLURM_JOB_UID": "1001", "SLURM_JOB_GID": "1002", "SLURM_JOB_RESTART_COUNT": "0"}
GPUS = {**JOB, "SLURM_JOB_GPUS": "0,2", "CUDA_VISIBLE_DEVICES": "0,2", "SLURM_CONF": "/etc/slurm/slurm.conf"}
SHARE = {**JOB, "SLURM_JOB_GPUS": "0", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "25"}
TASK = {"SLURM_JOB_ID": "12", "CUDA_VISIBLE_DEVICES": "0", "PATH": "/nowhere"}


@pytest.fixture(params=SHELLS)
def root(request: pytest.FixtureRequest, tmp_path: Path) -> SmallRoot:
    """No program but the shell."""
    found = SmallRoot(tmp_path / "root", request.param)
    found.jobs.mkdir(parents=True, mode=0o755)
    return found


@pytest.fixture(params=SHELLS)
def full_root(request: pytest.FixtureRequest, tmp_path: Path) -> SmallRoot:
    """With the two programs that the scripts call where there is something to do."""
    return SmallRoot(tmp_path / "root", request.param, ("mkdir", "rm"))


def device_map(mode: Mode = Mode.EXCLUSIVE, whole: bool = False, node: str = "gpu001") -> str:
    """As `node bind` writes it."""
    device = BoundDevice(0, 0, 0, "GPU-0", "0000:07:00.0", ("/dev/nvidia0",), 1 << 30, None, None)
    sharing = Sharing(mode, whole_gpu_jobs=whole)
    return as_json(DeviceMap("0b4c", node, sharing, ("gpu",), (device,)))


def records(root: SmallRoot) -> dict[str, str]:
    return {path.name: path.read_text() for path in root.jobs.iterdir()} if root.jobs.exists() else {}


def text(mode: str = "", **changed: str) -> str:
    lines = {
        "job": "12",
        "restart": "0",
        "uid": "1001",
        "gid": "1002",
        "gpus": "0,2",
        "mode": mode,
        "conf": "/etc/slurm/slurm.conf",
    }
    return "".join(f"{key}={value}\n" for key, value in {**lines, **changed}.items())


def test_a_fork_would_be_seen(root: SmallRoot) -> None:
    """The test's own eyes: a script that forks, and one that calls a program, fail here."""
    root.write("forks", "x=$(:) || exit 1\n(:) || exit 1\n")
    assert root.call("forks", {}, without_forks=True).returncode != 0
    assert root.call("forks", {}).returncode == 0
    root.write("calls", "cat /dev/null\n")
    assert root.call("calls", {}).returncode == 127


@pytest.mark.parametrize(
    "environment",
    [
        JOB,
        {},
        {**JOB, "SLURM_JOB_GPUS": ""},
        {**JOB, "SPANK_SLURM_JOB_GPUS": "0", "SPANK_CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "25"},
        {**JOB, "SLURM_JOB_NAME": "\n$(touch /run/x)", "SLURM_JOB_COMMENT": "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=1"},
    ],
)
@pytest.mark.parametrize("script", ["prolog", "epilog", "taskprolog"])
def test_nothing_to_do(root: SmallRoot, script: str, environment: dict[str, str]) -> None:
    done = root.call(script, environment, without_forks=True)
    assert (done.returncode, done.stdout, done.stderr, root.called(), records(root)) == (0, "", "", [], {})


@pytest.mark.parametrize(
    ("devices", "environment", "name", "expected"),
    [
        (None, GPUS, "12", text()),
        (device_map(), GPUS, "12", text("exclusive")),
        (device_map(Mode.MPS), GPUS, "12", text("mps")),
        (device_map(Mode.MIG), GPUS, "12", text("mig")),
        (device_map(Mode.TIME_SLICING), GPUS, "12", text("time-slicing")),
        # A node's name can hold nothing that looks like a key: JSON writes its quotes otherwise.
        (device_map(node='x", "mode": "mig", "whole_gpu_jobs": true'), GPUS, "12", text("exclusive")),
        (None, {**GPUS, "SLURM_JOB_RESTART_COUNT": "3"}, "12", text(restart="3")),
        (None, {**GPUS, "SLURM_HET_JOB_ID": "11"}, "11+12", text()),
        (None, {**GPUS, "SLURM_HET_JOB_ID": "12"}, "12+12", text()),
        (None, {**GPUS, "SLURM_HET_JOB_ID": "0"}, "12", text()),
        (None, {**GPUS, "SLURM_HET_JOB_ID": "../../x"}, "12", text()),
        (None, {**GPUS, "SLURM_CONF": "/etc/slurm/\ndaemon=j1"}, "12", text(conf="")),
        (None, {**GPUS, "SLURM_CONF": "/a b\\n%s$(id)`id`"}, "12", text(conf="/a b\\n%s$(id)`id`")),
        (None, {k: v for k, v in GPUS.items() if k != "SLURM_JOB_RESTART_COUNT"}, "12", text()),
        (None, {k: v for k, v in GPUS.items() if k != "SLURM_JOB_GID"}, "12", text(gid="1001")),
        (None, {**GPUS, "IFS": "0", "PATH": "/run", "ENV": "/run/x"}, "12", text()),
    ],
)
def test_a_job_without_mps_is_recorded_and_nothing_forked(
    root: SmallRoot, devices: str | None, environment: Mapping[str, str], name: str, expected: str
) -> None:
    if devices is not None:
        root.write("run/hybridgpu/devices.json", devices)
    done = root.call("prolog", environment, without_forks=True)
    assert (done.returncode, done.stdout, done.stderr, root.called()) == (0, "", "", [])
    assert records(root) == {name: expected}
    assert (root.jobs / name).stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SLURM_JOB_ID", "12;id"),
        ("SLURM_JOB_ID", "../12"),
        ("SLURM_JOB_ID", "１２"),
        ("SLURM_JOB_ID", ""),
        ("SLURM_JOB_ID", "1" * 100_000),
        ("SLURM_JOB_UID", "1001\ndaemon=x"),
        ("SLURM_JOB_GID", "-1"),
        ("SLURM_JOB_GPUS", "0\ndaemon=j1"),
        ("SLURM_JOB_GPUS", "0-3"),
        ("SLURM_JOB_RESTART_COUNT", "0\n"),
    ],
)
def test_what_slurmd_does_not_write_is_not_recorded(root: SmallRoot, name: str, value: str) -> None:
    done = root.call("prolog", {**GPUS, name: value}, without_forks=True)
    assert (done.returncode, root.called(), records(root)) == (0, [], {})


def test_every_recorded_job_is_read_back_as_it_was(root: SmallRoot) -> None:
    """What the shell writes is what Python reads, for all that real slurmds have told."""
    seen = set()
    settings = Settings(run=str(root.run_folder))
    for run in recorded("prolog"):
        environment = run.environment
        if "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE" in environment or "SLURM_JOB_GPUS" not in environment:
            continue
        assert root.call("prolog", environment).returncode == 0
        (name,) = records(root)
        found = job.read(settings, name)
        assert found is not None
        assert (found.job, found.restart) == (int(environment["SLURM_JOB_ID"]), 0), run.scenario
        assert (found.uid, found.gid, found.conf) == (1001, 1001, environment["SLURM_CONF"])
        assert ",".join(map(str, found.gpus)) == environment["SLURM_JOB_GPUS"]
        assert str(found.leader or "") == environment.get("SLURM_HET_JOB_ID", "")
        (root.jobs / name).unlink()
        seen.add(run.scenario)
    assert len(seen) > 10


@pytest.mark.parametrize("percentage", ["25", "0", "100", ""])
@pytest.mark.parametrize("status", [0, 1, 3])
def test_a_share_is_pythons_and_its_status_slurmds(root: SmallRoot, percentage: str, status: int) -> None:
    root.stub(status)
    environment = {**SHARE, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": percentage}
    done = root.call("prolog", environment, without_forks=True)  # an exec is no fork
    assert (done.returncode, root.called(), records(root)) == (status, ["prolog"], {})


def test_a_share_fails_where_the_hook_is_missing(root: SmallRoot) -> None:
    (root.path / HOOK).unlink()
    done = root.call("prolog", SHARE)
    assert done.returncode != 0
    assert "hybridgpu-hook" in done.stderr


@pytest.mark.parametrize("broken", [None, "status", "missing"])
def test_whole_gpus_get_a_daemon_and_run_without_one(root: SmallRoot, broken: str | None) -> None:
    root.write("run/hybridgpu/devices.json", device_map(whole=True))
    if broken == "status":
        root.stub(1)
    if broken == "missing":
        (root.path / HOOK).unlink()
    done = root.call("prolog", GPUS)
    assert done.returncode == 0
    assert root.called() == ([] if broken == "missing" else ["prolog"])
    why = {"status": "hybridgpu-hook said nothing", "missing": "lib/hybridgpu/hybridgpu-hook", None: ""}[broken]
    assert ("runs without MPS" in done.stderr) == bool(broken)
    assert why in done.stderr
    written = records(root).get("12", "")
    assert written.startswith(text("exclusive") if broken else "")
    assert written.count("\nwhy=the prolog failed: ") == bool(broken)
    assert why in written


@pytest.mark.parametrize("devices", ["", "{", '{"mode": "$(id)"}', '{"mode": ""}', None])
@pytest.mark.parametrize("status", [0, 1])
def test_a_broken_map_is_pythons_to_tell_of(root: SmallRoot, devices: str | None, status: int) -> None:
    """slurmd drops what a prolog says that does not fail. A node without a NodeConfig needs no map."""
    root.stub(status)
    if devices is None:
        root.write("etc/hybridgpu/node.json", "{}")
    else:
        root.write("run/hybridgpu/devices.json", devices)
    done = root.call("prolog", GPUS)
    assert (done.returncode, root.called()) == (0, ["prolog"])
    assert set(records(root)) == ({"12"} if status else set())
    assert root.call("prolog", JOB, without_forks=True).returncode == 0
    assert root.called() == []  # a job without GPUs


def test_a_hook_that_cannot_tell_is_told_of_in_syslog(full_root: SmallRoot) -> None:
    full_root.write("bin/logger", '#!/bin/sh\nfor word; do printf "%s\\n" "$word"; done >>/run/logged\n', 0o755)
    full_root.write("bin/timeout", '#!/bin/sh\nshift\nexec "$@"\n', 0o755)
    full_root.write("run/hybridgpu/devices.json", device_map(whole=True))
    full_root.write(HOOK, "#!/bin/sh\necho first >&2\nprintf '%s\\n' 'no \\n $(id) %s there' >&2\nexit 1\n", 0o755)
    assert full_root.call("prolog", GPUS).returncode == 0
    why = "the prolog failed: no \\n $(id) %s there"
    logged = (full_root.path / "run/logged").read_text().splitlines()
    assert logged[-1] == f'prolog job=12 uid=1001 gpus=0,2 outcome=without-mps why="{why}"'
    assert records(full_root) == {"12": text("exclusive", why=why)}
    found = job.read(Settings(run=str(full_root.run_folder)), "12")
    assert found is not None and found.why == why


def test_a_task_reads_why_it_runs_without_mps(root: SmallRoot) -> None:
    why = "no \\n $(id) %s daemon=j1"
    root.write("run/hybridgpu/jobs/12", text("exclusive", why=why))
    done = root.call("taskprolog", TASK, without_forks=True)
    assert (done.returncode, done.stderr, root.called()) == (0, "", [])
    assert done.stdout == f"print hybridgpu: this task runs without MPS: {why}\n"
    assert root.call("taskprolog", {"SLURM_JOB_ID": "12"}, without_forks=True).stdout == ""


def test_the_folder_is_made_once_a_boot(full_root: SmallRoot) -> None:
    assert full_root.call("prolog", GPUS).returncode == 0
    assert records(full_root) == {"12": text()}
    assert full_root.jobs.stat().st_mode & 0o7777 == 0o755


def test_a_prolog_that_cannot_write_fails_no_job(root: SmallRoot) -> None:
    root.jobs.rmdir()
    root.jobs.write_text("no folder")
    done = root.call("prolog", GPUS)
    assert done.returncode == 0
    assert "no record of job 12" in done.stderr


def test_a_prolog_that_runs_twice_writes_anew(full_root: SmallRoot) -> None:
    for restart in ("0", "1"):
        assert full_root.call("prolog", {**GPUS, "SLURM_JOB_RESTART_COUNT": restart}).returncode == 0
    assert records(full_root) == {"12": text(restart="1")}


@pytest.mark.parametrize("with_rm", [True, False])
def test_no_record_is_written_through_a_link(tmp_path: Path, with_rm: bool) -> None:
    root = SmallRoot(tmp_path / "root", "dash", ("rm", "mkdir") if with_rm else ())
    root.jobs.mkdir(parents=True)
    elsewhere = root.write("etc/passwd", "root:x:0:0::/:/bin/sh\n")
    (root.jobs / "12").symlink_to("/etc/passwd")
    assert root.call("prolog", GPUS).returncode == 0
    assert elsewhere.read_text() == "root:x:0:0::/:/bin/sh\n"
    assert (root.jobs / "12").is_symlink() != with_rm


@pytest.mark.parametrize(
    ("names", "environment", "left"),
    [
        ({"12": text(), "13": text()}, JOB, {"13"}),
        ({"11+12": text(), "12+13": text(), "112": text(), "1+112": text()}, JOB, {"12+13", "112", "1+112"}),
        ({"12": text(restart="1")}, JOB, {"12"}),
        ({"12": text(restart="1")}, {**JOB, "SLURM_JOB_RESTART_COUNT": "1"}, set()),
        ({"12": text(restart="1")}, {"SLURM_JOB_ID": "12"}, set()),
        ({"12": ""}, JOB, set()),
        ({"12": "restart=$(id)\n"}, JOB, set()),
    ],
)
def test_an_epilog_removes_its_own_record(
    full_root: SmallRoot, names: dict[str, str], environment: dict[str, str], left: set[str]
) -> None:
    for name, content in names.items():
        full_root.write(f"run/hybridgpu/jobs/{name}", content)
    for _ in range(2):
        done = full_root.call("epilog", environment)
        assert (done.returncode, done.stdout, done.stderr, full_root.called()) == (0, "", "", [])
        assert set(records(full_root)) == left


@pytest.mark.parametrize("status", [0, 1])
@pytest.mark.parametrize("held", ["record", "holder", "both", "het"])
def test_an_epilog_of_a_holder_is_pythons(root: SmallRoot, held: str, status: int) -> None:
    root.stub(status)
    if held in ("record", "both"):
        root.write("run/hybridgpu/jobs/12", text() + "daemon=u1001-0\n")
    if held == "het":
        root.write("run/hybridgpu/jobs/11+12", text() + "daemon=u1001-0\n")
    if held in ("holder", "both"):
        root.write("run/hybridgpu/mps/u1001-0/holders/12", "{}")
    root.write("run/hybridgpu/mps/u1001-0/holders/13", "{}")
    done = root.call("epilog", JOB, without_forks=True)
    assert (done.returncode, root.called()) == (status, ["epilog"])


def test_an_epilog_without_its_prolog_forks_nothing_beside_others(root: SmallRoot) -> None:
    root.write("run/hybridgpu/jobs/13", text() + "daemon=u1001-0\n")
    root.write("run/hybridgpu/mps/u1001-0/holders/13", "{}")
    done = root.call("epilog", JOB, without_forks=True)
    assert (done.returncode, done.stderr, root.called()) == (0, "", [])
    assert set(records(root)) == {"13"}


def test_a_record_that_stays_fails_no_epilog(root: SmallRoot) -> None:
    """No rm in there, which is as good as a file system that is read-only; busybox is its own."""
    root.write("run/hybridgpu/jobs/12", text())
    done = root.call("epilog", JOB)
    assert done.returncode == 0
    assert "stays" in done.stderr or not records(root)


MIG_UUID = "MIG-00000000-0000-0000-0000-000000000001"


@pytest.mark.parametrize(
    ("name", "content", "environment", "calls"),
    [
        (None, "", TASK, False),
        ("13", text() + "daemon=x\n", TASK, False),
        ("112", text() + "daemon=x\n", TASK, False),
        ("12", text(), TASK, False),
        ("12", text("mig"), TASK, True),
        ("12", text("mig"), {**TASK, "CUDA_VISIBLE_DEVICES": MIG_UUID}, False),
        ("12", text("mig"), {**TASK, "CUDA_VISIBLE_DEVICES": f"{MIG_UUID},1"}, True),
        ("12", text("mig"), {**TASK, "CUDA_VISIBLE_DEVICES": f"0,{MIG_UUID}"}, True),
        ("12", text("mig"), {"SLURM_JOB_ID": "12"}, False),
        ("12", text() + "daemon=j12-0\n", TASK, True),
        ("12", text() + "daemon=j12-0\n", {"SLURM_JOB_ID": "12"}, False),
        ("12", text() + "daemon=u1-0\n", {"SLURM_JOB_ID": "12", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "25"}, True),
        ("12+14", text() + "daemon=j14-0\n", TASK, True),
        ("12", text("time-slicing"), {"SLURM_JOB_ID": "12", "SLURM_SHARDS_ON_NODE": "3"}, True),
        ("12", text("time-slicing"), {**TASK, "SLURM_SHARDS_ON_NODE": "3"}, False),
        ("12", text("time-slicing"), {**TASK, "SLURM_JOB_ID": "12;id"}, False),
        ("12", text() + "daemon=j12-0\n", {**TASK, "SLURM_JOB_ID": "１２"}, False),
    ],
)
@pytest.mark.parametrize(
    "hostile",
    [
        {},
        {
            "IFS": "=daemon12/",
            "record": "x",
            "key": "daemon",
            "hook": "/run/evil",
            "run": "/tmp",
            "ENV": "/run/evil",
            "BASH_ENV": "/run/evil",
            "PS4": "$(echo evil >/run/evil)",
            "CDPATH": "/",
        },
    ],
    ids=["plain", "hostile"],
)
def test_the_task_prolog_starts_python_where_it_must(
    root: SmallRoot, name: str | None, content: str, environment: dict[str, str], calls: bool, hostile: dict[str, str]
) -> None:
    if name is not None:
        root.write(f"run/hybridgpu/jobs/{name}", content)
    done = root.call("taskprolog", {**hostile, **environment}, without_forks=not calls)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert root.called() == (["taskprolog"] if calls else [])
    assert not (root.path / "run/evil").exists()


SHARE_TASK = {**TASK, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "25"}
OF_SHARE = text("mps", percentage="25", daemon="u1001-0")
OF_WHOLE = text(daemon="j12-0")


@pytest.mark.parametrize(
    ("names", "environment", "status", "refused", "said"),
    [
        ({"12": OF_SHARE}, SHARE_TASK, 0, False, ""),
        ({"12": OF_SHARE}, SHARE_TASK, 3, True, ""),
        ({"12": OF_SHARE}, SHARE_TASK, 1, True, "is refused"),
        ({"12": OF_SHARE}, SHARE_TASK, 139, True, "is refused"),
        ({"12": text("mps", percentage="25")}, SHARE_TASK, 1, True, "is refused"),
        ({"12": OF_SHARE}, TASK, 1, True, "is refused"),
        ({"12": OF_WHOLE}, TASK, 0, False, ""),
        ({"12": OF_WHOLE}, TASK, 3, True, ""),
        ({"12": OF_WHOLE}, TASK, 1, False, "goes on as Slurm made it"),
        ({"12": OF_WHOLE}, SHARE_TASK, 1, False, "goes on as Slurm made it"),
        ({"12": text("mig")}, TASK, 127, False, "goes on as Slurm made it"),
        ({"12": text()}, {"SLURM_JOB_ID": "12", "SLURM_SHARDS_ON_NODE": "1"}, 1, False, "goes on as Slurm made it"),
        # Of a het job's components the one with a share has a percentage.
        ({"12+12": OF_SHARE, "12+13": OF_WHOLE}, TASK, 1, False, "goes on as Slurm made it"),
        ({"12+12": OF_SHARE, "12+13": OF_WHOLE}, SHARE_TASK, 1, True, "is refused"),
    ],
)
def test_only_a_shares_task_is_refused_where_the_hook_does_not_work(
    root: SmallRoot, names: dict[str, str], environment: dict[str, str], status: int, refused: bool, said: str
) -> None:
    """A node that refuses every task stays idle, and draws job after job."""
    root.stub(status)
    for name, content in names.items():
        root.write(f"run/hybridgpu/jobs/{name}", content)
    done = root.call("taskprolog", environment)
    assert done.returncode == int(refused)
    assert root.called() == ["taskprolog"]
    assert said in done.stdout
    assert done.stdout.count("\n") == bool(said)
    assert done.stdout == "" or done.stdout.startswith("print hybridgpu: ")


def test_sites_own_task_prologs_run_in_order_with_the_tasks_environment(root: SmallRoot) -> None:
    """The one TaskProlog of Slurm runs them all; an `export PATH=...:$PATH` of a site must see the task's PATH."""
    ours = root.path / "etc/slurm/taskprolog.d/50-hybridgpu"
    ours.write_text("#!/bin/sh\necho ours\n")
    root.write("etc/slurm/taskprolog.d/10-site", '#!/bin/sh\necho "export PATH=/opt:$PATH $1$script"\n', 0o755)
    root.write("etc/slurm/taskprolog.d/90-site", "#!/bin/sh\necho print last\n", 0o755)
    root.write("etc/slurm/taskprolog.d/20-README", "echo not run\n")
    (root.path / "etc/slurm/taskprolog.d/30-dead").symlink_to("/nowhere")
    (root.path / "etc/slurm/taskprolog.d/40-folder").mkdir()
    done = root.call("all-taskprologs", {"PATH": "/srv/u/bin", "script": "mine"})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "export PATH=/opt:/srv/u/bin mine\nours\nprint last\n"


def test_a_link_to_itself_is_passed_over(root: SmallRoot) -> None:
    (root.path / "etc/slurm/taskprolog.d/10-all").symlink_to("/usr/lib/hybridgpu/taskprolog")
    root.write("etc/slurm/taskprolog.d/20-site", "#!/bin/sh\necho second\n", 0o755)
    done = root.call("all-taskprologs", {}, without_forks=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "second\n", "")


def test_the_first_task_prolog_that_fails_ends_it(root: SmallRoot) -> None:
    root.write("etc/slurm/taskprolog.d/10-site", "#!/bin/sh\necho first\n", 0o755)
    root.write("etc/slurm/taskprolog.d/20-site", "#!/bin/sh\nexit 7\n", 0o755)
    root.write("etc/slurm/taskprolog.d/30-site", "#!/bin/sh\necho third\n", 0o755)
    done = root.call("all-taskprologs", {})
    assert (done.returncode, done.stdout) == (7, "first\n")


def test_no_task_prologs_no_trouble(root: SmallRoot) -> None:
    for path in (root.path / "etc/slurm/taskprolog.d").iterdir():
        path.unlink()
    assert root.call("all-taskprologs", {}, without_forks=True).returncode == 0


def test_scripts_are_alone_in_their_folders() -> None:
    """slurmd runs whatever a site's glob finds beside ours."""
    folders = [folder for folder in Path("slurm").iterdir() if folder.name.endswith("log.d")]
    assert sorted(folder.name for folder in folders) == ["epilog.d", "prolog.d", "taskprolog.d"]
    assert all([path.name for path in folder.iterdir()] == ["50-hybridgpu"] for folder in folders)
    assert all(os.access(path, os.X_OK) for folder in folders for path in folder.iterdir())
