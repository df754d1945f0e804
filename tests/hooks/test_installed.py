"""The hooks as slurm/install puts them on a node, run as slurmd runs them, over NVIDIA's own control daemon."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from testbed.slurm.namespace import Namespace, User
from tests.conftest import root_of

pytestmark = pytest.mark.slurm

HOUSE = Path(__file__).parents[2]
RELEASE = "22.05"
"""Its root has the oldest Python that the hooks promise to run on, 3.11."""

USER, OTHER = User("alice", 1001), User("mallory", 1002)
SOURCES = ("slurm", "systemd", "hybridgpu/__init__.py", "hybridgpu/mps", "hybridgpu/hooks")
PROLOG, EPILOG = "/etc/slurm/prolog.d/50-hybridgpu", "/etc/slurm/epilog.d/50-hybridgpu"
TASK_PROLOG = "/usr/lib/hybridgpu/taskprolog"
CONF = "/etc/hybridgpu/hooks.conf"
UUIDS = [f"GPU-00000000-0000-0000-0000-{index:012d}" for index in range(2)]

JOB = {
    "SLURM_CONF": "/etc/slurm/slurm.conf",
    "SLURM_JOB_ID": "12",
    "SLURM_JOB_UID": str(USER.uid),
    "SLURM_JOB_GID": str(USER.uid),
    "SLURM_JOB_RESTART_COUNT": "0",
    "SLURM_JOB_GPUS": "1",
    "CUDA_VISIBLE_DEVICES": "1",
}
SHARE = {**JOB, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "25"}
TASK = {
    "SLURM_JOB_ID": "12",
    "SLURM_STEP_ID": "0",
    "SLURM_NODEID": "0",
    "SLURM_STEP_TASKS_PER_NODE": "2",
    "CUDA_VISIBLE_DEVICES": "1",
    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "25",
}


class Node:
    """A machine of its own, with our sources in /src, and the hooks installed from there."""

    def __init__(self, inside: Namespace) -> None:
        self.inside = inside
        for user in (USER, OTHER):
            inside.add_user(user)
        for source in SOURCES:
            for path in (HOUSE / source).rglob("*") if (HOUSE / source).is_dir() else [HOUSE / source]:
                if path.is_file() and path.suffix != ".pyc":
                    mode = path.stat().st_mode & 0o777
                    inside.write(f"/src/{path.relative_to(HOUSE)}", path.read_text(encoding="utf-8"), mode=mode)
        # The machine's cgroups have names of other tests in them.
        self.done("mount", "-t", "tmpfs", "tmpfs", "/sys/fs/cgroup")
        self.done("/src/slurm/install")
        self.map()

    def done(self, *argv: str) -> str:
        done = self.inside.run(argv)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def call(
        self, program: str, environment: Mapping[str, str], user: User | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a hook with this environment and no other. Its output is a pipe that is read to its end, as slurmd's."""
        variables = [f"{name}={value}" for name, value in environment.items()]
        return self.inside.run(["env", "-i", *variables, program], user=None if user is None else user.name, timeout=40)

    def map(self, mode: str = "mps", whole: bool = False, **changed: object) -> None:
        """The DeviceMap."""
        boot = self.inside.path("/proc/sys/kernel/random/boot_id").read_text().strip()
        device = {"pci_bus_id": "0000:07:00.0", "memory_bytes": 8 << 30, "profile": None, "parent_uuid": None}
        head = {
            "apiVersion": "hybridgpu/v1",
            "kind": "DeviceMap",
            "boot_id": boot,
            "node": "n1",
            "mode": mode,
            "mps": {"whole_gpu_jobs": whole, "compute_mode": "default"},
            "gres_types": ["gpu", "mps"],
            **changed,
        }
        devices = [
            {"slurm_index": i, "index": i, "minor": i, "uuid": uuid, "files": ["/dev/null"], **device}
            for i, uuid in enumerate(UUIDS)
        ]
        self.inside.write(
            "/run/hybridgpu/devices.json", f'{json.dumps(head)[:-1]},\n"devices": {json.dumps(devices)}}}'
        )

    def left(self) -> list[str]:
        """Files and processes beyond those of an idle node."""
        files = self.done("find", "/run/hybridgpu", "-mindepth", "1").split()
        idle = {f"/run/hybridgpu/{name}" for name in ("devices.json", "jobs", "mps")}
        return [path for path in files if path not in idle] + [f"process {pid}" for pid in self.daemons()]

    def daemons(self) -> list[int]:
        """The pids of control daemons, as the node counts them."""
        found = []
        for entry in self.inside.path("/proc").iterdir():
            if entry.name.isdecimal():
                try:
                    if b"nvidia-cuda-mps" in (entry / "cmdline").read_bytes():
                        found.append(int(entry.name))
                except OSError:
                    continue
        return found


@pytest.fixture(scope="module")
def shared() -> Iterator[Node]:
    with Namespace(root_of(RELEASE).path) as inside:
        yield Node(inside)


@pytest.fixture
def node(shared: Node) -> Iterator[Node]:
    """The node, idle, before and after."""
    yield shared
    shared.done("rm", "-f", CONF, "/etc/hybridgpu/node.json")
    shared.done("/src/slurm/install")
    shared.done("rm", "-rf", "/run/hybridgpu")
    for pid in shared.daemons():
        shared.inside.run(["kill", "-KILL", str(pid)])
    shared.map()


def test_what_is_installed(node: Node) -> None:
    modes = dict(
        line.split(" ", 1)[::-1]
        for line in node.done(
            "find", "/usr/lib/hybridgpu", "/etc/hybridgpu", *_folders(), "-type", "f", "-printf", "%m:%U %p\n"
        ).splitlines()
    )
    programs = {
        PROLOG,
        EPILOG,
        "/etc/slurm/taskprolog.d/50-hybridgpu",
        TASK_PROLOG,
        "/usr/lib/hybridgpu/hybridgpu-hook",
    }
    code = "import hybridgpu.hooks as h; print(h.main.__code__.co_filename)"
    path = "import sys; sys.path.insert(0, '/usr/lib/hybridgpu'); "
    assert node.done("python3", "-IS", "-c", path + code) == "/usr/lib/hybridgpu/hybridgpu/hooks/__init__.py\n"
    examples = {"/usr/lib/hybridgpu/examples/enroot/50-hybridgpu.sh"}
    assert {path for path, mode in modes.items() if mode == "755:0"} == programs | examples
    assert {mode for path, mode in modes.items() if path not in programs | examples} == {"644:0"}
    for room in ("mps", "hooks"):
        for source in (HOUSE / "hybridgpu" / room).glob("*.py"):
            assert f"/usr/lib/hybridgpu/hybridgpu/{room}/{source.name}" in modes
            assert f"/usr/lib/hybridgpu/hybridgpu/{room}/__pycache__/{source.stem}.cpython-311.pyc" in modes
    assert modes[CONF] == "644:0"


def _folders() -> list[str]:
    return [f"/etc/slurm/{kind}.d" for kind in ("prolog", "epilog", "taskprolog")]


def test_installing_again_changes_nothing(node: Node) -> None:
    listing = ("find", "/usr/lib/hybridgpu", "/usr/lib/systemd/system", "/etc/hybridgpu", *_folders(), "-type", "f")
    before = node.done("sh", "-c", f"{' '.join(listing)} -exec sha256sum {{}} + | grep -v pyc | sort")
    node.inside.write("/usr/lib/hybridgpu/hybridgpu/mps/gone.py", "an older release had it\n")
    assert node.done("/src/slurm/install") == ""
    assert node.done("sh", "-c", f"{' '.join(listing)} -exec sha256sum {{}} + | grep -v pyc | sort") == before


@pytest.mark.parametrize("release", ["24.11", "26.05"])
def test_every_python_installs_without_a_word(release: str) -> None:
    """These roots have newer ones than RELEASE."""
    with Namespace(root_of(release).path) as inside:
        node = Node(inside)
        for dest in ("", "/image"):
            done = inside.run(["/src/slurm/install", *([dest] if dest else [])])
            assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
            compiled = node.done("find", f"{dest}/usr/lib/hybridgpu", "-name", "taskprolog.*.pyc").splitlines()
            assert len(compiled) == 1
        code = (
            "import sys; sys.path.insert(0, '/usr/lib/hybridgpu'); import hybridgpu.hooks as h; print(h.main.__code__)"
        )
        assert "/usr/lib/hybridgpu/hybridgpu/hooks/__init__.py" in node.done("python3", "-IS", "-c", code)


def test_edited_settings_stay_and_others_follow(node: Node) -> None:
    edited = "PYTHON=/usr/bin/python3\nSTART_SECONDS=3\n"
    node.inside.write(CONF, edited)
    done = node.inside.run(["/src/slurm/install"])
    assert done.returncode == 0
    assert "has been edited and stays" in done.stderr
    assert node.inside.path(CONF).read_text() == edited
    older = "# an older example\n"
    node.inside.write(CONF, older)
    node.inside.write("/usr/lib/hybridgpu/examples/hooks.conf", older)
    node.done("/src/slurm/install")
    assert node.inside.path(CONF).read_text() == (HOUSE / "slurm/hooks.conf").read_text()


def test_a_folder_of_a_package_is_filled(node: Node) -> None:
    node.done("rm", "-rf", "/pkg")
    node.done("/src/slurm/install", "/pkg")
    found = node.done("find", "/pkg", "-type", "f")
    assert f"/pkg{PROLOG}\n" in found
    node.done(
        "python3",
        "-c",
        "import marshal,sys,glob;"
        "assert all(marshal.loads(open(p,'rb').read()[16:]).co_filename.startswith('/usr/lib/hybridgpu/')"
        " for p in glob.glob('/pkg/usr/lib/hybridgpu/hybridgpu/*/__pycache__/*.pyc'))",
    )


def test_hooks_go_where_the_inventory_says(node: Node) -> None:
    """gpu.conf names prolog and epilog in slurm.hooks.dir; its task prolog runs what is in /etc/slurm/taskprolog.d."""
    for folder in ("/shared/slurm", "/a b/%s"):
        for dest in ("", "/image"):
            node.done("rm", "-rf", "/image", folder)
            done = node.inside.run(["env", f"HOOKS_DIR={folder}", "/src/slurm/install", *([dest] if dest else [])])
            assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
            found = node.done("find", f"{dest}{folder}", "-type", "f").splitlines()
            assert sorted(found) == [f"{dest}{folder}/{kind}.d/50-hybridgpu" for kind in ("epilog", "prolog")]
            assert node.inside.path(f"{dest}/etc/slurm/taskprolog.d/50-hybridgpu").exists()
    assert not node.inside.path("/image/etc/slurm/prolog.d").exists()
    done = node.inside.run(["env", "HOOKS_DIR=slurm", "/src/slurm/install"])
    assert (done.returncode, done.stdout) == (64, "")
    assert "allowed: an absolute path" in done.stderr


@pytest.mark.parametrize("python", ["/usr/bin/python9", "/bin/false", "/usr/bin/old"])
def test_an_image_may_have_another_python(node: Node, python: str) -> None:
    node.inside.write("/usr/bin/old", "#!/bin/sh\necho 'SyntaxError' >&2\nexit 1\n", mode=0o755)
    node.done("rm", "-rf", "/image")
    node.inside.write("/image/etc/hybridgpu/hooks.conf", f"PYTHON={python}\n")
    done = node.inside.run(["/src/slurm/install", "/image"])
    assert done.returncode == 0
    assert done.stderr.splitlines()[-1].startswith(f"not compiled: {python} of /etc/hybridgpu/hooks.conf")
    assert node.inside.path(f"/image{PROLOG}").exists()
    node.inside.write(CONF, f"PYTHON={python}\n")
    done = node.inside.run(["/src/slurm/install"])
    assert done.returncode == 1
    assert "the hooks need Python 3.11" in done.stderr


def test_every_setting_is_in_the_example() -> None:
    from hybridgpu.mps.settings import FOR_THE_SHELL, KEYS, Settings

    lines = (HOUSE / "slurm/hooks.conf").read_text().splitlines()
    assert all(line.startswith("#") for line in lines if line)
    shown = dict(
        line[1:].split("=", 1) for line in lines if line.startswith("#") and line[1:2].isupper() and "=" in line
    )
    defaults = Settings()
    assert set(shown) == {*FOR_THE_SHELL, *(name.upper() for name in KEYS)}
    for name in KEYS:
        value = getattr(defaults, name)
        assert shown[name.upper()] == (f"{value:g}" if isinstance(value, float) else value)


def test_a_share_from_prolog_to_epilog(node: Node) -> None:
    began = time.monotonic()
    done = node.call(PROLOG, SHARE)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert time.monotonic() - began < 5  # the daemon does not hold slurmd's pipe
    (pid,) = node.daemons()
    status = node.inside.path(f"/proc/{pid}/status").read_text()
    assert f"Uid:\t{USER.uid}\t{USER.uid}\t{USER.uid}\t{USER.uid}\n" in status
    environment = node.inside.path(f"/proc/{pid}/environ").read_text()
    assert "SLURM" not in environment
    assert "PERCENTAGE" not in environment
    task = node.call(TASK_PROLOG, TASK, USER)
    assert (task.returncode, task.stderr) == (0, "")
    assert task.stdout.splitlines() == [
        "export CUDA_MPS_PIPE_DIRECTORY=/run/hybridgpu/mps/u1001-1/pipe",
        f"export CUDA_VISIBLE_DEVICES={UUIDS[1]}",
        "export CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=1024M",
    ]
    assert node.call(TASK_PROLOG, TASK, OTHER).stdout == ""
    done = node.call(EPILOG, SHARE)
    assert (done.returncode, done.stdout, done.stderr, node.left()) == (0, "", "", [])
    log = node.inside.path("/var/log/hybridgpu/hooks.log").read_text()
    assert "prolog job=12 restart=0 uid=1001 gpus=1 daemon=u1001-1 outcome=started seconds=0." in log
    assert "epilog job=12 restart=0 uid=1001 gpus=1 daemon=u1001-1 outcome=stopped seconds=0." in log


def test_another_user_reaches_no_socket(node: Node) -> None:
    node.call(PROLOG, SHARE)
    ask = "echo get_server_list | CUDA_MPS_PIPE_DIRECTORY=/run/hybridgpu/mps/u1001-1/pipe nvidia-cuda-mps-control"
    assert node.inside.run(["sh", "-c", ask], user=USER.name).returncode == 0
    assert node.inside.run(["sh", "-c", ask], user=OTHER.name).returncode != 0
    for path in ("pipe", "log"):
        assert node.inside.run(["ls", f"/run/hybridgpu/mps/u1001-1/{path}"], user=OTHER.name).returncode != 0
    node.call(EPILOG, SHARE)
    assert node.left() == []


@pytest.mark.parametrize("order", [("12", "13"), ("13", "12")])
def test_two_jobs_of_one_user_share_a_daemon(node: Node, order: tuple[str, str]) -> None:
    for job in ("12", "13"):
        assert node.call(PROLOG, {**SHARE, "SLURM_JOB_ID": job}).returncode == 0
    (pid,) = node.daemons()
    other = {**SHARE, "SLURM_JOB_ID": "14", "SLURM_JOB_UID": str(OTHER.uid), "SLURM_JOB_GID": str(OTHER.uid)}
    assert node.call(PROLOG, other).returncode == 0
    assert len(node.daemons()) == 2
    assert node.call(EPILOG, {**SHARE, "SLURM_JOB_ID": order[0]}).returncode == 0
    assert pid in node.daemons()
    assert node.call(EPILOG, {**SHARE, "SLURM_JOB_ID": order[1]}).returncode == 0
    assert pid not in node.daemons()
    assert node.call(EPILOG, other).returncode == 0
    assert node.left() == []


def test_a_task_may_have_what_it_likes_in_its_environment(node: Node) -> None:
    """Python, the shell and the loader are the node's, whatever the user's are; nothing of his is run for the hook."""
    node.call(PROLOG, SHARE)
    evil = "import os\nos.system('touch /tmp/evil')\n"
    for name in ("json", "os", "sitecustomize", "hybridgpu", "usercustomize"):
        node.inside.write(f"/srv/alice/{name}.py", evil, owner=USER.uid)
    for name in ("python3", "hybridgpu-hook", "sh", "mkdir"):
        node.inside.write(f"/srv/alice/{name}", "#!/bin/sh\ntouch /tmp/evil\n", mode=0o755, owner=USER.uid)
    hostile = {
        "PATH": "/srv/alice",
        "PYTHONPATH": "/srv/alice",
        "PYTHONHOME": "/srv/alice",
        "PYTHONSTARTUP": "/srv/alice/os.py",
        "PYTHONINSPECT": "1",
        "PYTHONMALLOC": "debug",
        "PYTHONWARNINGS": "error",
        "HOME": "/srv/alice",
        "LD_LIBRARY_PATH": "/srv/alice",
        "IFS": "/",
        "ENV": "/srv/alice/sh",
        "SLURM_JOB_NAME": "x\nexport LD_PRELOAD=/tmp/evil.so",
        "SLURM_RESTART_COUNT": "7",
        "SPANK_SLURM_JOB_ID": "13",
    }
    task = node.call(TASK_PROLOG, {**hostile, **TASK}, USER)
    assert (task.returncode, task.stderr) == (0, "")
    assert task.stdout == node.call(TASK_PROLOG, TASK, USER).stdout
    assert len(task.stdout.splitlines()) == 3
    assert not node.inside.path("/tmp/evil").exists()
    node.call(EPILOG, SHARE)
    assert node.left() == []


def test_users_text_in_a_prolog_is_text(node: Node) -> None:
    text = "\n$(touch /tmp/evil)`touch /tmp/evil`; touch /tmp/evil #'\"\\"
    names = ("SLURM_JOB_NAME", "SLURM_JOB_COMMENT", "SPANK_X", "SLURM_JOB_WORK_DIR", "SLURM_JOB_ACCOUNT", "SPANK_PATH")
    environment = {**SHARE, **dict.fromkeys(names, text)}
    assert node.call(PROLOG, environment).returncode == 0
    (pid,) = node.daemons()
    assert "touch" not in node.inside.path(f"/proc/{pid}/environ").read_text()
    assert node.call(EPILOG, environment).returncode == 0
    assert not node.inside.path("/tmp/evil").exists()
    assert node.left() == []


WHOLE = {**JOB, "SLURM_JOB_GPUS": "0,1", "CUDA_VISIBLE_DEVICES": "0,1"}


def broken(node: Node, what: str) -> str:
    """Break the node in one way; gives what the reason must say."""
    match what:
        case "map missing":
            node.done("rm", "/run/hybridgpu/devices.json")
            return "node bind"
        case "map stale":
            node.map(whole=True, boot_id="another")
            return "another boot"
        case "map broken":
            node.inside.write("/run/hybridgpu/devices.json", '{"whole_gpu_jobs": true\n')
            return "cannot be read"
        case "map another's":
            node.done("chown", "1002", "/run/hybridgpu/devices.json")
            return "user 1002's"
        case "binary missing":
            node.inside.write(CONF, "CONTROL=/usr/bin/none\n")
            return "/usr/bin/none"
        case "binary fails":
            node.inside.write(CONF, "CONTROL=/bin/false\n")
            return "/bin/false"
        case "binary hangs":
            node.inside.write("/usr/bin/hanging", "#!/bin/sh\nexec sleep 1000\n", mode=0o755)
            node.inside.write(CONF, "CONTROL=/usr/bin/hanging\nSTART_SECONDS=1\nQUIT_SECONDS=1\n")
            return "does not answer after 1 s"
        case "all hangs":
            node.inside.write("/usr/bin/hanging", "#!/bin/sh\nexec sleep 1000\n", mode=0o755)
            node.inside.write(CONF, "CONTROL=/usr/bin/hanging\nWHOLE_SECONDS=1\nSTART_SECONDS=30\nQUIT_SECONDS=1\n")
            return "not done after 1 s"
        case "settings wrong":
            node.inside.write(CONF, "STRAT_SECONDS=3\nLOG=here\n")
            return "hooks.conf:1"
        case "python missing":
            node.inside.write(CONF, "PYTHON=/usr/bin/python9\n")
            return "/usr/bin/python9"
        case "python broken":
            node.inside.write("/usr/lib/hybridgpu/hybridgpu/hooks/prolog.py", "raise ValueError(1)\n")
            return "ValueError"
    raise AssertionError(what)


BREAKS = (
    *("map missing", "map stale", "map broken", "map another's", "binary missing", "binary fails", "binary hangs"),
    *("all hangs", "settings wrong", "python missing", "python broken"),
)


@pytest.mark.parametrize("what", BREAKS)
def test_a_share_fails_with_the_reason_and_leaves_nothing(node: Node, what: str) -> None:
    said = broken(node, what)
    began = time.monotonic()
    done = node.call(PROLOG, SHARE)
    assert done.returncode == 1, done.stderr
    assert said in done.stderr
    if what != "python missing":
        log = node.inside.path("/var/log/hybridgpu/hooks.log").read_text()
        assert re.search(rf"prolog job=12 .*outcome=failed .*why=.*{re.escape(said)}", log)
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1
    assert time.monotonic() - began < 10
    assert [path for path in node.left() if "devices.json" not in path] == []


@pytest.mark.parametrize("what", BREAKS)
def test_whole_gpus_run_without_mps(node: Node, what: str) -> None:
    node.map(mode="exclusive", whole=True)
    node.inside.write("/etc/hybridgpu/node.json", "{}")
    said = broken(node, what)
    began = time.monotonic()
    done = node.call(PROLOG, WHOLE)
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - began < 10
    assert node.daemons() == []
    task = node.call(TASK_PROLOG, {"SLURM_JOB_ID": "12", "CUDA_VISIBLE_DEVICES": "0"}, USER)
    assert (task.returncode, task.stderr) == (0, "")
    assert re.fullmatch(rf"print hybridgpu: this task runs without MPS: .*{re.escape(said)}.*\n", task.stdout)
    assert node.call(EPILOG, WHOLE).returncode == 0
    assert node.left() == []


MIG_TASK = {"SLURM_JOB_ID": "12", "CUDA_VISIBLE_DEVICES": "1"}


def unusable(node: Node, what: str) -> str:
    """Take the task prolog's interpreter away in one way; gives what its user must read."""
    match what:
        case "missing":
            node.inside.write(CONF, "PYTHON=/usr/bin/python9\n")
            return "/usr/bin/python9 is not there"
        case "a folder":
            node.inside.write(CONF, "PYTHON=/usr/bin\n")
            return "/usr/bin is not for this user to run"
        case "root's":
            node.inside.write("/usr/bin/python-of-root", '#!/bin/sh\nexec python3 "$@"\n', mode=0o700)
            node.inside.write(CONF, "PYTHON=/usr/bin/python-of-root\n")
            return "/usr/bin/python-of-root is not for this user to run"
        case "fails":
            node.inside.write(CONF, "PYTHON=/bin/false\n")
            return "(status 1)"
        case "dies":
            node.inside.write("/usr/bin/dies", "#!/bin/sh\nkill -SEGV $$\n", mode=0o755)
            node.inside.write(CONF, "PYTHON=/usr/bin/dies\n")
            return "(status 139)"
        case "half an upgrade":
            node.inside.write("/usr/lib/hybridgpu/hybridgpu/mps/trouble.py", "class Trouble(Exception): ...\n")
            return "ImportError: cannot import name 'reason'"
    raise AssertionError(what)


def mended(node: Node) -> None:
    """End the job that has a daemon, by hooks that work again."""
    node.done("rm", "-f", CONF)
    node.done("/src/slurm/install")
    assert node.call(EPILOG, SHARE).returncode == 0


UNUSABLE = ("missing", "a folder", "root's", "fails", "dies", "half an upgrade")


@pytest.mark.parametrize("what", UNUSABLE)
def test_a_python_that_does_not_work_refuses_the_tasks_of_shares_alone(node: Node, what: str) -> None:
    assert node.call(PROLOG, SHARE).returncode == 0
    assert node.call(PROLOG, {**JOB, "SLURM_JOB_ID": "13"}).returncode == 0
    node.map(mode="mig")
    assert node.call(PROLOG, {**JOB, "SLURM_JOB_ID": "14"}).returncode == 0
    said = unusable(node, what)
    share = node.call(TASK_PROLOG, TASK, USER)
    others = [node.call(TASK_PROLOG, {**MIG_TASK, "SLURM_JOB_ID": job}, USER) for job in ("13", "14")]
    assert (share.returncode, [other.returncode for other in others]) == (1, [0, 0])
    assert said in share.stdout
    assert "this task is refused" in share.stdout
    assert others[0].stdout == ""  # whole devices of a node without daemons need nothing
    assert said in others[1].stdout
    assert "goes on as Slurm made it" in others[1].stdout
    assert all(line.startswith("print hybridgpu: ") for line in (share.stdout + others[1].stdout).splitlines())
    assert "Traceback" not in share.stderr + others[1].stderr
    mended(node)


@pytest.mark.parametrize("path", [CONF, "/run/hybridgpu/devices.json"])
def test_a_share_runs_where_users_can_read_neither_settings_nor_map(node: Node, path: str) -> None:
    assert node.call(PROLOG, SHARE).returncode == 0
    expected = node.call(TASK_PROLOG, TASK, USER).stdout
    node.done("chmod", "600", path)
    task = node.call(TASK_PROLOG, TASK, USER)
    assert (task.returncode, task.stdout, task.stderr) == (0, expected, "")
    assert len(expected.splitlines()) == 3
    mended(node)


def test_a_python_that_a_task_cannot_be_told_of_is_said(node: Node) -> None:
    assert node.call(PROLOG, SHARE).returncode == 0
    node.done("chmod", "600", CONF)
    node.done("mv", "/usr/bin/python3", "/usr/bin/python3-away")
    try:
        task = node.call(TASK_PROLOG, TASK, USER)
    finally:
        node.done("mv", "/usr/bin/python3-away", "/usr/bin/python3")
    assert task.returncode == 1
    assert "PYTHON in /etc/hybridgpu/hooks.conf, which this user may not read" in task.stdout
    node.done("chmod", "600", CONF)
    again = node.inside.run(["/src/slurm/install"])
    assert again.returncode == 0
    node.inside.write(CONF, "START_SECONDS=3\n", mode=0o600)
    again = node.inside.run(["/src/slurm/install"])
    assert again.returncode == 0
    assert "users cannot read it" in again.stderr
    mended(node)


def test_settings_may_have_been_written_elsewhere(node: Node) -> None:
    node.done("ln", "-sf", "/usr/bin/python3", "/usr/bin/python-elsewhere")
    node.inside.write(CONF, "PYTHON=/usr/bin/python-elsewhere\r\nQUIT_SECONDS=5\r\n")
    assert node.call(PROLOG, SHARE).returncode == 0
    assert len(node.call(TASK_PROLOG, TASK, USER).stdout.splitlines()) == 3
    mended(node)


def test_whole_gpus_have_one_daemon(node: Node) -> None:
    node.map(mode="exclusive", whole=True)
    assert node.call(PROLOG, WHOLE).returncode == 0
    (pid,) = node.daemons()
    assert f"CUDA_VISIBLE_DEVICES={','.join(UUIDS)}" in node.inside.path(f"/proc/{pid}/environ").read_text().split("\0")
    task = node.call(TASK_PROLOG, {"SLURM_JOB_ID": "12", "CUDA_VISIBLE_DEVICES": "1"}, USER)
    assert task.stdout.splitlines() == [
        "export CUDA_MPS_PIPE_DIRECTORY=/run/hybridgpu/mps/j12-0+1/pipe",
        f"export CUDA_VISIBLE_DEVICES={UUIDS[1]}",
    ]
    assert node.call(EPILOG, WHOLE).returncode == 0
    assert node.left() == []


def test_hooks_run_twice_and_not_at_all(node: Node) -> None:
    for _ in range(2):
        assert node.call(PROLOG, SHARE).returncode == 0
        assert len(node.daemons()) == 1
    for _ in range(2):
        assert node.call(EPILOG, SHARE).returncode == 0
        assert node.left() == []


def test_a_requeued_job_is_another_run(node: Node) -> None:
    """Its first epilog may come with the count of the next run (run on 22.05); one of an earlier run ends nothing."""
    again = {**SHARE, "SLURM_JOB_RESTART_COUNT": "1"}
    assert node.call(PROLOG, SHARE).returncode == 0
    assert node.call(PROLOG, again).returncode == 0
    log = node.inside.path("/var/log/hybridgpu/hooks.log").read_text().splitlines()
    assert "job=12 restart=1 uid=1001 gpus=1 daemon=u1001-1,u1001-1 outcome=stopped,started " in log[-1]
    assert len(node.daemons()) == 1
    assert node.call(EPILOG, SHARE).returncode == 0
    assert len(node.daemons()) == 1
    assert node.call(EPILOG, again).returncode == 0
    assert node.left() == []


def test_what_cannot_be_cleaned_fails_the_epilog(node: Node) -> None:
    assert node.call(PROLOG, SHARE).returncode == 0
    node.done("mount", "--bind", "/run/hybridgpu/mps/u1001-1", "/run/hybridgpu/mps/u1001-1")
    node.done("mount", "-o", "remount,bind,ro", "/run/hybridgpu/mps/u1001-1")
    done = node.call(EPILOG, SHARE)
    assert done.returncode == 1
    assert "u1001-1" in done.stderr
    assert "Read-only" in done.stderr
    node.done("umount", "/run/hybridgpu/mps/u1001-1")
    node.call(EPILOG, SHARE)
    assert node.inside.run(["/usr/lib/hybridgpu/hybridgpu-hook", "sweep"]).returncode == 0
    assert node.left() == []


def test_the_sweep_takes_what_a_dead_prolog_left(node: Node) -> None:
    node.inside.write("/usr/bin/hanging", "#!/bin/sh\nexec sleep 1000\n", mode=0o755)
    node.inside.write(CONF, "CONTROL=/usr/bin/hanging\n")
    script = f"env -i {' '.join(f'{name}={value}' for name, value in SHARE.items())} timeout -s KILL 0.7 {PROLOG}"
    assert node.inside.run(["sh", "-c", script]).returncode == 137
    assert node.left() != []
    done = node.inside.run(["/usr/lib/hybridgpu/hybridgpu-hook", "sweep"])
    assert done.returncode == 0
    assert "daemon u1001-1: removed: job 12: its prolog died" in done.stdout
    assert node.left() == []


@pytest.mark.parametrize("words", [[], ["prologue"], ["prolog", "now"], ["--help"]])
def test_wrong_words(node: Node, words: list[str]) -> None:
    done = node.inside.run(["/usr/lib/hybridgpu/hybridgpu-hook", *words])
    assert done.returncode == 64
    assert done.stderr == "usage: hybridgpu-hook prolog|epilog|taskprolog|sweep\n"


def test_a_task_prolog_imports_little(node: Node) -> None:
    """Of a task of eight thousand: no module that costs more than it does."""
    code = (
        "import sys; sys.path.insert(0, '/usr/lib/hybridgpu'); import hybridgpu.hooks.taskprolog; print(*sys.modules)"
    )
    loaded = set(node.done("python3", "-IS", "-c", code).split())
    assert not loaded & {
        "subprocess",
        "dataclasses",
        "argparse",
        "logging",
        "pathlib",
        "contextlib",
        "ctypes",
        "typing",
    }
