"""Build every program and root for the tests that is not there yet, side by side: `python -m testbed`."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

from testbed.kubernetes import __main__ as kubernetes
from testbed.slurm import __main__ as slurm
from testbed.slurm.root import SUITES


def main() -> None:
    """Print a line for each, as soon as it is there."""
    with ThreadPoolExecutor() as pool:
        longest = pool.submit(kubernetes.describe)
        for line in pool.map(slurm.describe, SUITES):
            sys.stdout.write(line + "\n")
        sys.stdout.write(longest.result() + "\n")


if __name__ == "__main__":
    main()
