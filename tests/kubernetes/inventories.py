"""Generated inventories of hybrid sites: those of Slurm's tests, with what the Kubernetes side may say beside it."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.slurm.inventories import Case
from tests.slurm.inventories import cases as slurm_cases

CHART, OPERATOR = "device-plugin", "gpu-operator"
RELEASE = "24.11"
NAMESPACE = "gpu"
TOLERATION = {"key": "example.org/reserved", "operator": "Equal", "value": "gpu", "effect": "NoExecute"}


@st.composite
def cases(draw: st.DrawFn, delivery: str, *, leaving: bool = False) -> Case:
    """Sites of every mode; split nodes under the chart only, some nodes in Kubernetes alone.

    `leaving`: some nodes, or all, have left Kubernetes and are in Slurm alone.
    """
    case = draw(slurm_cases(RELEASE, splits=delivery == CHART))
    block: dict[str, Any] = {"delivery": delivery, "namespace": NAMESPACE}
    if draw(st.booleans()):
        block["mpsRoot"] = "/var/lib/mps"
    if draw(st.booleans()):
        block["tolerations"] = [TOLERATION]
    if delivery == CHART and draw(st.booleans()):
        block["runtimeClassName"] = "nvidia"
        case.inventory["devices"] = {"driverRoot": "/run/nvidia/driver"}
    case.inventory["kubernetes"] = block
    for entry in case.inventory["nodes"]:
        if leaving and entry["owner"] == "slurm" and draw(st.booleans()):
            entry["schedulers"] = ["slurm"]
        _say_more(draw, entry, delivery, case.inventory["nodeClasses"][entry["class"]]["gpus"])
    return case


def site(delivery: str, *entries: dict[str, Any]) -> Case:
    """A site of two models with these node entries; what an entry leaves out is filled in."""
    models = {"a100": "A100-SXM4-80GB", "h200": "H200"}
    filled = [{"owner": "kubernetes", "sharing": {"mode": "exclusive"}, **entry} for entry in entries]
    inventory = {
        "apiVersion": "hybridgpu/v1",
        "kind": "Inventory",
        "metadata": {"name": "t"},
        "slurm": {"version": RELEASE},
        "kubernetes": {"delivery": delivery, "namespace": NAMESPACE},
        "nodeClasses": {
            name: {"model": model, "gpus": "2", "slurm": {"CPUs": "64", "Sockets": "2", "RealMemory": "1000"}}
            for name, model in models.items()
        },
        "nodes": [{"hosts": f"n{number}", **entry} for number, entry in enumerate(filled)],
    }
    return Case(inventory)


def _say_more(draw: st.DrawFn, entry: dict[str, Any], delivery: str, cards: list[dict[str, str]]) -> None:
    sharing = entry["sharing"]
    if entry["owner"] == "kubernetes" and draw(st.booleans()):
        entry["schedulers"] = ["kubernetes"]
    if sharing["mode"] in ("time-slicing", "mps"):
        sharing["failRequestsGreaterThanOne"] = draw(st.sampled_from(["true", "false"]))
        if delivery == CHART:
            sharing["renameByDefault"] = draw(st.sampled_from(["true", "false"]))
    if sharing["mode"] == "mig" and _uniform(sharing["layout"], cards):
        sharing["migStrategy"] = draw(st.sampled_from(["single", "mixed"]))


def _uniform(layout: dict[str, Any], cards: list[dict[str, str]]) -> bool:
    """Whether migStrategy single can be: every card of one model, and cut into one and the same profile."""
    profiles = {profile for cut in layout.values() for profile in ("off" if cut == "off" else cut)}
    return len({card["model"] for card in cards}) == 1 and len(profiles) == 1
