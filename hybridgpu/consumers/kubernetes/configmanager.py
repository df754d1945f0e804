"""NVIDIA's config-manager: which key of the ConfigMap a node's program really runs, at its start and after each event.

A pure state machine: a pod's volume and link, the label, the keys, and what happens to them; each step says what was
applied, whether the program was signalled, and with which words the process died. What a key's content does is not
known here. Sources: k8s-device-plugin v0.20.0 cmd/config-manager/main.go; run against v0.20.0 (five times of five it
reads "" before it has seen the label).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from hybridgpu.model.labels import PLUGIN_CONFIG

LABEL = PLUGIN_CONFIG
NAMED = "default"
EMPTY = "/dev/null"
"""What the link leads to where the fallback `empty` is taken: built-in defaults, no sharing."""

_SOURCE, _LINK = "/available-configs", "/config/config.yaml"


@dataclass(frozen=True, slots=True)
class Settings:
    """How the config-manager is started. `default` is DEFAULT_CONFIG, `fallbacks` FALLBACK_STRATEGIES in order."""

    default: str = ""
    fallbacks: tuple[str, ...] = ("named", "single")


CHART = Settings()
"""The device plugin's Helm chart, as it comes."""

OPERATOR = Settings(fallbacks=("empty",))
"""The GPU Operator, where the ClusterPolicy names no default (controllers/object_controls.go)."""


@dataclass(frozen=True, slots=True)
class Applied:
    """What the program has read last: a key, or EMPTY, and the content it had then (None: built-in defaults)."""

    key: str
    content: str | None


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod on one node. `keys` is what its volume shows now, `label` the node's label as it is now.

    `link` is where the program's config leads (None: not made yet; it outlives containers, not the pod). `seen` is the
    value that the sidecar acted on last. `died` has its words while it is in a crash loop.
    """

    keys: Mapping[str, str]
    label: str = ""
    settings: Settings = CHART
    link: str | None = None
    seen: str | None = None
    running: Applied | None = None
    died: str | None = None

    @property
    def dangling(self) -> bool:
        """Whether the link leads to a key that is gone: no restart of a container mends that, only a new pod."""
        return self.link not in (None, EMPTY, *self.keys)


@dataclass(frozen=True, slots=True)
class Step:
    """One reading of the label by the config-manager: what it read, what it did, or why it exited 1."""

    value: str
    applied: str | None = None
    signalled: bool = False
    died: str | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """A pod after an event, and the steps in between, in order: a node offers what each of them applied."""

    pod: Pod
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Died:
    """The words with which the config-manager exits 1."""

    words: str


def choose(value: str, keys: Mapping[str, str], settings: Settings) -> str | Died:
    """The key for a label's value, EMPTY for built-in defaults, or the words with which the process exits 1."""
    if not keys:
        return Died("no configuration files available")
    if value:
        return value if value in keys else Died(f"specified config {value} does not exist")
    if settings.default:
        # The words name the label's value, which is empty, and not the default that is missing.
        return settings.default if settings.default in keys else Died("specified config  does not exist")
    for fallback in settings.fallbacks:
        if fallback == "named" and NAMED in keys:
            return NAMED
        if fallback == "single" and len(keys) == 1:
            return next(iter(keys))
        if fallback == "empty":
            return EMPTY
        if fallback not in ("named", "single", "empty"):
            return Died(f"unknown fallback strategy: {fallback}")
    return Died("no config was set, no default was provided, and all fallbacks failed")


def create(keys: Mapping[str, str], label: str = "", settings: Settings = CHART) -> Run:
    """A new pod: the init container, which never honours the label, then the program, then the sidecar."""
    pod = Pod(dict(keys), label, settings)
    first, step = _update(pod, "", signals=False)
    if step.died:
        return Run(replace(first, died=step.died), (step,))
    loaded = replace(first, running=_loaded(first))
    started = _start_sidecar(loaded)
    return Run(started.pod, (step, *started.steps))


def recreate(pod: Pod) -> Run:
    """The pod deleted and made anew: with an empty volume for the link."""
    return create(pod.keys, pod.label, pod.settings)


def restart_sidecar(pod: Pod) -> Run:
    """The sidecar's container restarted: it applies the default again before the label's config.

    A pod whose init container failed has no sidecar: it is the init container that runs again.
    """
    return recreate(pod) if pod.running is None else _start_sidecar(pod)


def restart_program(pod: Pod) -> Run:
    """The program's container restarted: it reads whatever the link leads to now."""
    return Run(pod if pod.running is None else replace(pod, running=_loaded(pod)))


def set_label(pod: Pod, value: str) -> Run:
    """The node's label set, changed, or with "" emptied or removed. The same value again is no event."""
    changed = replace(pod, label=value)
    if value == pod.label:
        return Run(pod)
    if pod.running is None:
        return recreate(changed)
    if pod.died:
        return _start_sidecar(changed)
    done, step = _update(changed, value)
    return Run(done, (step,))


def set_keys(pod: Pod, keys: Mapping[str, str]) -> Run:
    """The ConfigMap changed: nobody looks. The volume shows it, the program keeps what it has read."""
    changed = replace(pod, keys=dict(keys))
    if pod.running is None:
        return recreate(changed)
    return _start_sidecar(changed) if pod.died else Run(changed)


def _start_sidecar(pod: Pod) -> Run:
    """It reads "" first, because the label has not been seen yet; then the label if there is one."""
    first, step = _update(replace(pod, seen=None, died=None), "")
    if step.died or not pod.label:
        return Run(first, (step,))
    second, after = _update(first, pod.label)
    return Run(second, (step, after))


def _update(pod: Pod, value: str, signals: bool = True) -> tuple[Pod, Step]:
    key = choose(value, pod.keys, pod.settings)
    if isinstance(key, Died):
        return replace(pod, seen=value, died=key.words), Step(value, died=key.words)
    if pod.dangling:
        words = f"error creating symlink: symlink {_path(key)} {_LINK}: file exists"
        return replace(pod, seen=value, died=words), Step(value, died=words)
    if pod.link == key:
        return replace(pod, seen=value), Step(value, key)
    linked = replace(pod, seen=value, link=key)
    if not signals:
        return linked, Step(value, key)
    return replace(linked, running=_loaded(linked)), Step(value, key, signalled=True)


def _loaded(pod: Pod) -> Applied:
    """What the program reads through the link; one that dangles is no file, and the program exits."""
    link = pod.link or EMPTY
    return Applied(link, pod.keys.get(link))


def _path(key: str) -> str:
    return key if key == EMPTY else f"{_SOURCE}/{key}"
