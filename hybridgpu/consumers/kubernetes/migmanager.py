"""mig-manager: from the label nvidia.com/mig.config to cards cut anew, and the states it can stop in.

A pure account of one reconfiguration and of what makes it run again. It neither cordons nor drains; user pods and
Slurm's jobs are no concern of its. Source: mig-parted v0.15.0 cmd/nvidia-mig-manager/main.go, pkg/mig/reconfigure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from hybridgpu.consumers.kubernetes.migparted import apply, assert_config, assert_mode
from hybridgpu.consumers.kubernetes.migspec import read_mig, selected
from hybridgpu.consumers.kubernetes.node import Node
from hybridgpu.model.labels import DEPLOY, MIG_CONFIG, MIG_CONFIG_STATE

LABEL, STATE = MIG_CONFIG, MIG_CONFIG_STATE
PAUSED = "paused-for-mig-change"
OPERANDS = tuple(
    f"{DEPLOY}{name}" for name in ("device-plugin", "gpu-feature-discovery", "dcgm-exporter", "dcgm", "nvsm")
)
CLIENT = f"{DEPLOY}client"


class Obstacle(StrEnum):
    """What can go wrong around a reconfiguration, that neither the file nor the cards show."""

    PODS_STAY = "an operand's pod is still there after five minutes"
    VALIDATOR_STAYS = "the validator pod cannot be deleted"
    MODE_STAYS = "the MIG mode does not change"


@dataclass(frozen=True, slots=True)
class Manager:
    """How mig-manager is started: WITH_REBOOT, and WITH_SHUTDOWN_HOST_GPU_CLIENTS (a pre-installed driver)."""

    with_reboot: bool = False
    host_driver: bool = False


@dataclass(frozen=True, slots=True)
class Reconfigured:
    """A node after one run. `labels` are those of its Node that the run touched; `words` its last line, if it failed.

    `wedged`: operands stay paused and the state stays `pending` until the label changes: nothing is tried again.
    `kubelet_stopped`: the host's kubelet was stopped on the way; `rebooted`: the host was told to reboot.
    """

    node: Node
    labels: Mapping[str, str]
    words: str | None = None
    kubelet_stopped: bool = False
    rebooted: bool = False

    @property
    def state(self) -> str:
        """pending, success, failed or rebooting."""
        return self.labels[STATE]

    @property
    def wedged(self) -> bool:
        """Whether it stopped without a final state."""
        return self.state == "pending"


def triggers(before: str, after: str) -> bool:
    """Whether a change of the label ("" where there is none) wakes a waiting mig-manager.

    Setting the value that is there already and removing the label do nothing; setting it again after that does.
    """
    return after not in ("", before)


def next_value(acted: str, label: str) -> str | None:
    """What it acts on at once after a run for `acted`, the label being `label` by now; None: it waits for a change.

    A label that was removed meanwhile is acted on as "": the only config of a file with one, else state failed.
    """
    return None if label == acted else label


def reconfigure(
    text: str,
    label: str,
    node: Node,
    labels: Mapping[str, str],
    manager: Manager = Manager(),
    *,
    obstacles: frozenset[Obstacle] = frozenset(),
    busy: frozenset[int] = frozenset(),
) -> Reconfigured:
    """One run for a label's value over a mig-parted file and a node's cards, with the labels its Node has before.

    `busy` are cards on which somebody works.
    """
    run = _Run(node, labels, manager)
    reading = read_mig(text)
    config = selected(reading.file, label) if reading.file else reading.words or ""
    if isinstance(config, str):
        return run.failed(node, f"failed to validate MIG configuration: {config}")
    if not assert_config(config, node):
        return run.ended("success", node)
    change = assert_mode(config, node) is not None
    if change and labels.get(STATE) == "rebooting":
        return run.failed(node, "MIG mode change did not take effect after rebooting")
    run = replace(run, kubelet=change and manager.host_driver)
    if Obstacle.PODS_STAY in obstacles:
        return run.stuck(node, "failed to wait for pods to be deleted: context deadline exceeded")
    mode = apply(config, node, mode_only=True, busy=busy)
    stays = change and Obstacle.MODE_STAYS in obstacles
    after = node if stays else mode.node
    if (stays or mode.words or assert_mode(config, after)) and manager.with_reboot:
        return run.rebooting(after)
    cut = apply(config, after, busy=busy)
    words = "MIG mode is not what the config says" if stays else cut.words
    if words:
        return run.failed(after if stays else cut.node, f"failed to apply MIG configuration: {words}")
    if Obstacle.VALIDATOR_STAYS in obstacles:
        return run.stuck(cut.node, "failed to restart validator pod")
    return run.ended("success", cut.node)


@dataclass(frozen=True, slots=True)
class _Run:
    node: Node
    labels: Mapping[str, str]
    manager: Manager
    kubelet: bool = False

    def ended(self, state: str, node: Node) -> Reconfigured:
        """Operands on again, whatever they were but `false`, and a final state."""
        return Reconfigured(node, self._labels("true", state), kubelet_stopped=self.kubelet)

    def failed(self, node: Node, words: str) -> Reconfigured:
        return replace(self.ended("failed", node), words=words)

    def stuck(self, node: Node, words: str) -> Reconfigured:
        """It returns early: operands stay paused, the state stays pending."""
        return Reconfigured(node, self._labels(PAUSED, "pending"), words, self.kubelet)

    def rebooting(self, node: Node) -> Reconfigured:
        return Reconfigured(node, self._labels(PAUSED, "rebooting"), None, self.kubelet, rebooted=True)

    def _labels(self, operands: str, state: str) -> dict[str, str]:
        names = (*OPERANDS, CLIENT) if self.labels.get(CLIENT) else OPERANDS
        return {
            **{name: "false" if self.labels.get(name) == "false" else operands for name in names},
            STATE: state,
        }
