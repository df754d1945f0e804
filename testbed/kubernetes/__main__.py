"""Build the programs of the API server unless they are there: `python -m testbed.kubernetes`. Says what there is."""

from __future__ import annotations

import sys

from testbed.kubernetes.programs import Programs


def describe() -> str:
    """One line about the programs, which are built first where they are missing and can be."""
    missing = Programs.missing()
    if missing:
        return f"Kubernetes: {missing}; its tests are skipped"
    programs = Programs.found()
    return f"Kubernetes {programs.version} in {programs.folder}"


def main() -> None:
    """Print the line."""
    sys.stdout.write(describe() + "\n")


if __name__ == "__main__":
    main()
