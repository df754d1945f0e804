"""The units, folders and container files that a node gets: systemd's programs take them, they agree on paths, and the
units stand in the order that the cards need.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hybridgpu.cli.node.apply import command
from hybridgpu.devices.clients import KNOWN
from hybridgpu.mps.settings import Settings
from testbed.slurm.root import SlurmRoot
from tests.conftest import root_of

UNITS = Path("systemd")
HOOK = "/usr/lib/hybridgpu/hybridgpu-hook"
DAEMONS = Settings().daemons


@pytest.fixture
def root() -> SlurmRoot:
    """A root that has systemd's programs beside its Slurm."""
    return root_of("24.11")


@pytest.fixture
def inside(root: SlurmRoot) -> Iterator[Path]:
    """A folder in it."""
    site = root.path / "site"
    site.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=site, prefix="units-") as folder:
        yield Path(folder)


def run(root: SlurmRoot, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*root.enter(), *command], check=False, capture_output=True, text=True, timeout=60)


def seen(root: SlurmRoot, path: Path) -> str:
    return f"/{path.relative_to(root.path)}"


@pytest.mark.slurm
def test_systemd_takes_every_unit_without_a_word(root: SlurmRoot, inside: Path) -> None:
    units = sorted(path for path in UNITS.iterdir() if path.is_file())
    assert {path.suffix for path in units} == {".service", ".timer"}
    for unit in units:  # the hook is not installed in there, and systemd looks
        (inside / unit.name).write_text(unit.read_text().replace(HOOK, "/bin/true"))
    done = run(root, "systemd-analyze", "verify", *(seen(root, inside / unit.name) for unit in units))
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.slurm
@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [("hybridgpu-sweep.service", "Nice", "Nicest"), ("hybridgpu-apply.service", "oneshot", "onshot")],
)
def test_systemd_would_say_if_a_unit_were_wrong(
    root: SlurmRoot, inside: Path, name: str, right: str, wrong: str
) -> None:
    text = Path(UNITS, name).read_text().replace(HOOK, "/bin/true")
    assert right in text
    (inside / name).write_text(text.replace(right, wrong))
    assert wrong in run(root, "systemd-analyze", "verify", seen(root, inside / name)).stderr


@pytest.mark.slurm
def test_the_folders_are_made_as_the_hooks_demand_them(root: SlurmRoot, inside: Path) -> None:
    (inside / "etc/tmpfiles.d").mkdir(parents=True)
    (inside / "etc/tmpfiles.d/hybridgpu.conf").write_text(Path(UNITS, "tmpfiles.d/hybridgpu.conf").read_text())
    (inside / "etc/passwd").write_text("root:x:0:0::/:/bin/sh\n")
    (inside / "etc/group").write_text("root:x:0:\n")
    done = run(root, "systemd-tmpfiles", "--create", f"--root={seen(root, inside)}")
    assert (done.returncode, done.stderr) == (0, "")
    for path, mode in ((DAEMONS, 0o755), (Settings().jobs, 0o755), (Settings().run, 0o755)):
        made = inside / path.lstrip("/")
        assert (made.stat().st_mode & 0o7777, made.stat().st_uid) == (mode, 0)


def test_all_name_the_folder_where_the_daemons_are() -> None:
    fstab = Path("slurm/enroot/50-hybridgpu.fstab").read_text()
    assert f"\n{DAEMONS} {DAEMONS} none x-create=dir,rbind," in fstab  # each daemon's pipe is a mount below it
    assert f"\nbind path = {DAEMONS}\n" in Path("slurm/apptainer/hybridgpu.conf").read_text()
    assert (
        f"ReadWritePaths=-{Settings().run} -{Path(Settings().log).parent}\n"
        in Path(UNITS, "hybridgpu-sweep.service").read_text()
    )


def settings(name: str) -> dict[str, list[str]]:
    """Each key's words; lines of one key add up, as systemd has it for lists."""
    found: dict[str, list[str]] = {}
    for key, value in re.findall(r"^([A-Za-z]+)=(.*)$", Path(UNITS, name).read_text(), re.MULTILINE):
        found.setdefault(key, []).extend(value.split())
    return found


def test_the_cards_are_cut_before_the_schedulers_and_after_what_they_need() -> None:
    unit = settings("hybridgpu-apply.service")
    assert {"local-fs.target", "nvidia-persistenced.service", "nvidia-fabricmanager.service"} <= set(unit["After"])
    assert {"slurmd.service", "kubelet.service"} <= set(unit["Before"])
    assert not [name for name in unit["After"] if name.startswith(("network", "remote-fs"))]
    assert (unit["Type"], unit["RemainAfterExit"]) == (["oneshot"], ["yes"])
    assert (unit["WantedBy"], unit["RequiredBy"]) == (["multi-user.target"], ["slurmd.service"])
    assert not set(unit["Before"]) & set(unit["After"])


def test_clients_ordered_by_it_are_known_ones() -> None:
    before = set(settings("hybridgpu-apply.service")["Before"]) - {"slurmd.service", "kubelet.service"}
    assert before < set(KNOWN)


def test_what_it_runs_is_a_command_of_ours() -> None:
    words = settings("hybridgpu-apply.service")["ExecStart"]
    assert words[:4] == ["/usr/bin/env", "hybridgpu", "node", "apply"]
    assert set(words[4:]) <= {option for parameter in command.params for option in parameter.opts}


def test_what_is_left_is_swept_once_the_cards_are_right_and_before_slurmd() -> None:
    sweep = settings("hybridgpu-sweep.service")
    assert "hybridgpu-apply.service" in sweep["After"]
    assert "slurmd.service" in sweep["Before"]
    named = {
        name for path in UNITS.glob("*.service") for name in re.findall(r"hybridgpu-\w+\.service", path.read_text())
    }
    assert named <= {path.name for path in UNITS.iterdir()}, "no unit names one that is not shipped"


PIPE = {"CUDA_MPS_PIPE_DIRECTORY": f"{DAEMONS}/u7-0/pipe"}
LIMITS = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=9M\nCUDA_MPS_ACTIVE_THREAD_PERCENTAGE=25\n"
GIVEN = {
    "a share": (
        {**PIPE, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=9M", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "25"},
        "",
        f"CUDA_MPS_PIPE_DIRECTORY={DAEMONS}/u7-0/pipe\n" + LIMITS,
    ),
    "devices by UUID": ({"CUDA_VISIBLE_DEVICES": "MIG-1,MIG-2"}, "", "CUDA_VISIBLE_DEVICES=MIG-1,MIG-2\n"),
    "devices by number": ({"CUDA_VISIBLE_DEVICES": "0,1"}, "", ""),
    "no job of ours": ({"HOME": "/x"}, "A=b\n", "A=b\n"),
    "what was there already": (PIPE, "CUDA_MPS_PIPE_DIRECTORY=/own\n", "CUDA_MPS_PIPE_DIRECTORY=/own\n"),
    "no option": ({"CUDA_VISIBLE_DEVICES": "GPU-1 -e"}, "", "CUDA_VISIBLE_DEVICES=GPU-1 -e\n"),
}


@pytest.mark.parametrize("what", GIVEN)
def test_enroot_containers_get_what_the_task_prolog_gave(what: str, tmp_path: Path) -> None:
    environment, before, after = GIVEN[what]
    environ = tmp_path / "environ"
    environ.write_text(before)
    hook = ["slurm/enroot/50-hybridgpu.sh"]
    subprocess.run(hook, env={"PATH": "/usr/bin:/bin", "ENROOT_ENVIRON": str(environ), **environment}, check=True)
    assert environ.read_text() == after
