"""What every test may use. `soak` decides between the sample of `make test` and the full count of `make soak`."""

from __future__ import annotations

import os


def soak(sample: int, full: int) -> int:
    """The number of examples to run: `sample` in `make test`, `full` where HYBRIDGPU_SOAK is set."""
    return full if os.environ.get("HYBRIDGPU_SOAK") else sample
