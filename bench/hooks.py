"""What the hooks add to a job: without MPS beside an empty script, with MPS beside the bare start of the daemon.

In a Slurm root with the real nvidia-cuda-mps-control and no card, by turns in one run. Beside them a prolog of the kind
that sites copy from each other: a daemon for each GPU, then a sleep. Needs root and the root file systems with Slurm.
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import Any

from bench.measure import machine
from hybridgpu.devices.devicemap import BoundDevice, DeviceMap, as_json, boot_id
from hybridgpu.model.sharing import Mode, Sharing
from testbed.hooks.installed import EPILOG, PROLOG, ours
from testbed.slurm.namespace import Namespace, User
from testbed.slurm.root import SlurmRoot

RELEASE = "24.11"
GPUS = 8
ROUNDS = 15
USER = User("bench", 1001)
CONTROL = "/usr/bin/nvidia-cuda-mps-control"
EMPTY, PUBLIC = "/bench/empty", "/bench/public"
BARE = "/run/bare"

SCRIPTS = {
    EMPTY: "#!/bin/sh\nexit 0\n",
    # In the manner of the public ones, and kinder: no scontrol, no nvidia-smi; an epilog of theirs would killall.
    PUBLIC: f"""\
#!/bin/sh
for gpu in $(echo "$SLURM_JOB_GPUS" | /usr/bin/tr , ' '); do
    export CUDA_VISIBLE_DEVICES="$gpu" CUDA_MPS_PIPE_DIRECTORY="/tmp/mps_$gpu" CUDA_MPS_LOG_DIRECTORY="/tmp/mps_$gpu"
    /bin/mkdir -p "/tmp/mps_$gpu"
    {CONTROL} -d >/dev/null 2>&1
    /bin/sleep 3
done
""",
}


def main() -> None:
    """Prints the differences and their bounds, or why it cannot run here."""
    missing = SlurmRoot.missing(RELEASE)
    if missing:
        print(f"hooks: not run: {missing}")
        return
    root = SlurmRoot.for_version(RELEASE)
    with Namespace(root.path) as inside:
        _install(inside)
        print(f"{machine()}; Slurm's root {root.version}; medians of {ROUNDS} rounds, in ms")
        _without_mps(inside)
        _with_mps(inside)


def _install(inside: Namespace) -> None:
    inside.add_user(USER)
    for path, text in {**ours(), **SCRIPTS}.items():
        inside.write(path, text, mode=0o755 if text.startswith("#!") else 0o644)
    inside.write("/bench/inside.py", Path(__file__).with_name("inside.py").read_text(encoding="utf-8"))
    inside.folder(BARE)


def _without_mps(inside: Namespace) -> None:
    """A job with GPUs and one without, on a node where whole-GPU jobs get no daemon."""
    inside.write("/run/hybridgpu/devices.json", _device_map(whole=False))
    gpus = _job(SLURM_JOB_GPUS="0", CUDA_VISIBLE_DEVICES="0")
    times = _times(
        inside,
        ROUNDS * 10,
        [
            _step("empty, twice", EMPTY, gpus),
            _step("empty, twice", EMPTY, gpus),
            _step("job with a GPU", PROLOG, gpus),
            _step("job with a GPU", EPILOG, gpus),
            _step("job without", PROLOG, _job()),
            _step("job without", EPILOG, _job()),
        ],
    )
    both = {name: [a + b for a, b in zip(took[::2], took[1::2], strict=True)] for name, took in times.items()}
    print("\nprolog + epilog, no MPS")
    empty = _tell("an empty script, twice", both["empty, twice"])
    for name in ("job with a GPU", "job without"):
        print(f"  above it: {_tell(name, both[name]) - empty:.1f} (bound 10)")


def _with_mps(inside: Namespace) -> None:
    """A whole-GPU job over all GPUs, and a share of one, beside the daemon alone and a script of the public kind."""
    inside.write("/run/hybridgpu/devices.json", _device_map(whole=True))
    numbers = ",".join(map(str, range(GPUS)))
    whole = _job(SLURM_JOB_GPUS=numbers, CUDA_VISIBLE_DEVICES=numbers)
    share = _job(SLURM_JOB_GPUS="0", CUDA_VISIBLE_DEVICES="0", CUDA_MPS_ACTIVE_THREAD_PERCENTAGE="25")
    bare = {"CUDA_MPS_PIPE_DIRECTORY": BARE, "CUDA_MPS_LOG_DIRECTORY": BARE}
    times = _times(
        inside,
        ROUNDS,
        [
            _step("bare", CONTROL, bare, "-d"),
            _step("bare quit", CONTROL, bare, stdin="quit\n"),
            _step("whole", PROLOG, whole),
            _step("whole epilog", EPILOG, whole),
            _step("share", PROLOG, share),
            _step("share epilog", EPILOG, share),
        ],
    )
    public = _times(inside, 0, [_step("first", PUBLIC, whole)], first=True)["first"][0]
    print(f"\nprolog, MPS on {GPUS} GPUs")
    start = _tell("nvidia-cuda-mps-control -d, alone", times["bare"])
    ours_ = _tell("prolog of a whole-GPU job", times["whole"])
    print(f"  above it: {ours_ - start:.0f} (bound 60)")
    _tell("prolog of a share of one GPU", times["share"])
    print(f"{'prolog of the public kind, once':38} {public * 1e3:8.0f}")
    print(f"  times ours: {public * 1e3 / ours_:.0f} (bound 100)")
    print("\nepilog, last holder")
    _tell("quit, alone", times["bare quit"])
    _tell("epilog of a whole-GPU job", times["whole epilog"])
    _tell("epilog of a share", times["share epilog"])


def _times(inside: Namespace, rounds: int, steps: list[dict[str, Any]], first: bool = False) -> dict[str, list[float]]:
    inside.write("/bench/plan.json", json.dumps({"rounds": rounds, "first": first, "steps": steps}))
    done = inside.run(["/usr/bin/python3", "-IS", "/bench/inside.py", "/bench/plan.json"], timeout=600)
    if done.returncode:
        sys.exit(f"hooks: {done.stderr.strip()}")
    times: dict[str, list[float]] = json.loads(done.stdout)
    return times


def _tell(what: str, seconds: list[float]) -> float:
    """Prints a median with the spread; gives it, in ms."""
    middle = statistics.median(seconds) * 1e3
    print(f"{what:38} {middle:8.1f} {min(seconds) * 1e3:8.1f} {max(seconds) * 1e3:8.1f}")
    return middle


def _step(name: str, program: str, env: dict[str, str], *arguments: str, stdin: str = "") -> dict[str, Any]:
    return {"name": name, "argv": [program, *arguments], "env": env, "stdin": stdin}


def _job(**gpus: str) -> dict[str, str]:
    """The environment of a prolog, as slurmd makes it; `%d` is another job each round."""
    return {
        "SLURM_JOB_ID": "%d",
        "SLURM_JOBID": "%d",
        "SLURM_JOB_UID": str(USER.uid),
        "SLURM_JOB_GID": str(USER.uid),
        "SLURM_JOB_USER": USER.name,
        "SLURM_JOB_RESTART_COUNT": "0",
        "SLURM_CONF": "/etc/slurm/slurm.conf",
        "SLURMD_NODENAME": "n1",
        "SLURM_SCRIPT_CONTEXT": "prolog_slurmd",
        **gpus,
    }


def _device_map(whole: bool) -> str:
    """Of a node in mode mps."""
    devices = tuple(
        BoundDevice(
            slurm_index=number,
            index=number,
            minor=number,
            uuid=f"GPU-00000000-0000-0000-0000-{number:012}",
            pci_bus_id=f"0000:{number:02x}:00.0",
            files=(f"/dev/nvidia{number}",),
            memory_bytes=80 * 2**30,
            profile=None,
            parent_uuid=None,
        )
        for number in range(GPUS)
    )
    return as_json(DeviceMap(boot_id(), "n1", Sharing(Mode.MPS, whole_gpu_jobs=whole), ("gpu", "mps"), devices))


if __name__ == "__main__":
    main()
