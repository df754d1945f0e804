"""The four things that are raised on purpose. Nothing else is: the cli maps these, and only these, to exit codes."""

from __future__ import annotations

from collections.abc import Iterable

from hybridgpu.model.finding import Finding


class HybridgpuError(Exception):
    """The common root, so that the cli can tell what was raised on purpose from a bug."""


class Refused(HybridgpuError):
    """The input is not acceptable. Carries every finding of the run, not only the first error."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = tuple(findings)
        first = next((f for f in self.findings if f.is_error), None)
        super().__init__(first.message if first else "refused")


class Unavailable(HybridgpuError):
    """A plane (device, slurm, kubernetes) cannot be read or reached for these nodes."""

    def __init__(self, plane: str, nodes: Iterable[str], why: str) -> None:
        self.plane, self.nodes, self.why = plane, tuple(nodes), why
        super().__init__(f"{plane} is unavailable: {why}")


class Overruled(HybridgpuError):
    """Somebody took away a mark of ours on this node: we stop, and say so."""

    def __init__(self, node: str, by: str) -> None:
        self.node, self.by = node, by
        super().__init__(f"{node}: overruled by {by}")


class Bug(HybridgpuError):
    """hybridgpu contradicts itself: exit code 70."""
