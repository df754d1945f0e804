"""Build every Slurm root that is not there yet, side by side: `python -m testbed.slurm`. Says what there is."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

from testbed.slurm.root import SUITES, SlurmRoot


def describe(release: str) -> str:
    """One line about a release's root, which is built first where it is missing and can be."""
    missing = SlurmRoot.missing(release)
    if missing:
        return f"Slurm {release}: {missing}; its tests are skipped"
    root = SlurmRoot.for_version(release)
    return f"Slurm {release}: {root.version} in {root.path}"


def main() -> None:
    """Print a line for each release."""
    with ThreadPoolExecutor() as pool:
        for line in pool.map(describe, SUITES):
            sys.stdout.write(line + "\n")


if __name__ == "__main__":
    main()
