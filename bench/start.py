"""`hybridgpu --help` against `python -c 'import click'`: what the command costs before it does anything."""

from __future__ import annotations

import sys

from bench.measure import in_turn, median, table


def main() -> None:
    """Prints both, and the ratio (at most 3)."""
    results = in_turn(
        {
            "hybridgpu --help": (sys.executable, "-m", "hybridgpu", "--help"),
            "import click": (sys.executable, "-c", "import click"),
        },
        runs=15,
    )
    table(results)
    help_, click = median(results["hybridgpu --help"]), median(results["import click"])
    print(f"ratio {help_.wall / click.wall:.2f} (bound 3)")


if __name__ == "__main__":
    main()
