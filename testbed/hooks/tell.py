"""A task that tells all it sees, as JSON in FOLDER/PROCID.PID: `tell FOLDER`. Runs in the root, by its Python.

Standard library only: what is imported here is what the oldest root has.
"""

import errno
import json
import os
import socket
import sys
from pathlib import Path


def opened(path: str) -> str:
    """`open`, or the name of the error: EPERM where the cgroup denies, ENXIO where only the driver is lacking."""
    try:
        os.close(os.open(path, os.O_RDONLY))
    except OSError as problem:
        return errno.errorcode.get(problem.errno or 0, str(problem))
    return "open"


def connected(path: str) -> str:
    """`connected`, or the name of the error; to a socket of either kind."""
    for kind in (socket.SOCK_SEQPACKET, socket.SOCK_STREAM):
        with socket.socket(socket.AF_UNIX, kind) as client:
            try:
                client.connect(path)
            except OSError as problem:
                if problem.errno == errno.EPROTOTYPE:
                    continue
                return errno.errorcode.get(problem.errno or 0, str(problem))
        return "connected"
    return "EPROTOTYPE"


def main() -> None:
    """Tell, whole or not at all."""
    folder = sys.argv[1]
    pipe = os.environ.get("CUDA_MPS_PIPE_DIRECTORY")
    cgroup = (line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines())
    cards = sorted(map(str, Path("/dev").glob("nvidia[0-9]*")))
    capabilities = sorted(map(str, Path("/dev/nvidia-caps").glob("*")))
    told = {
        "pid": os.getpid(),
        "uid": os.getuid(),
        "gid": os.getgid(),
        "environment": dict(os.environ),
        "cgroup": {controllers: path for _, controllers, path in cgroup},
        "devices": {path: opened(path) for path in cards + capabilities},
        "mps": connected(f"{pipe}/control") if pipe else None,
    }
    target = Path(folder, f"{os.environ.get('SLURM_PROCID', '0')}.{os.getpid()}")
    beside = target.with_name(f".{target.name}")
    beside.write_text(json.dumps(told))
    beside.rename(target)


main()
