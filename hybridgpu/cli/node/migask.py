"""The part of mig-manager in `node apply`: whether a node has one, and what it is asked. Its trouble is a finding, and
takes nothing else of the report with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hybridgpu.errors import Unavailable

if TYPE_CHECKING:
    from hybridgpu.cli.node.report import Report
    from hybridgpu.devices.nodeconfig import KubernetesWanted
    from hybridgpu.planes.kubernetes.nodes import Nodes


def nodes_by(kubeconfig: str | None) -> Nodes | None:
    """The Nodes that a kubeconfig leads to; None without one.

    Raises OSError where it cannot be read, Unavailable where it says nothing that can be used. Asks nobody.
    """
    if kubeconfig is None:
        return None
    from hybridgpu.planes.kubernetes.nodes import ApiNodes

    return ApiNodes(kubeconfig)


def ask_mig_manager(
    report: Report, nodes: Nodes | None, seconds: float, left_off: Callable[[], bool], *, dry_run: bool
) -> bool:
    """Asks it, and waits so many seconds, or until `left_off`; with dry_run only looks. False where it is not done.

    Without `nodes` only what must be there is said.
    """
    from hybridgpu.model.labels import MIG_CONFIG

    side, name = _side(report), report.wanted.kubernetes_name
    if side is None:
        return True
    if nodes is None:
        label = f"{MIG_CONFIG}={side.labels[MIG_CONFIG]}"
        report.remarks.append(f"Node {name} must have the label {label} (reconcile sets it; so does --kubeconfig)")
        return True
    from hybridgpu.devices.devicemap import boot_id
    from hybridgpu.planes.kubernetes.asking import look, settle
    from hybridgpu.planes.kubernetes.migmanager import findings, unread

    try:
        if dry_run:
            report.mig_manager = look(nodes, name, side.labels, boot_id())
            return True
        report.mig_manager = settle(nodes, name, side.labels, boot_id(), seconds, left_off=left_off)
    except Unavailable as trouble:
        report.findings.append(unread(str(trouble)))
        return False
    said = findings(name, report.mig_manager)
    report.findings += said
    return not said


def _side(report: Report) -> KubernetesWanted | None:
    """The Kubernetes side of a node that has a mig-manager, and a layout for it."""
    from hybridgpu.model.labels import MIG_CONFIG
    from hybridgpu.model.site import OPERATOR

    side = report.wanted.kubernetes
    return side if side and side.delivery == OPERATOR and side.labels.get(MIG_CONFIG) else None
