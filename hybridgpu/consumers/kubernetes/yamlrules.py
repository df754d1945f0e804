"""What Go's reading of YAML passes over without a word: keys twice, second documents, odd numbers, a key's case.

Common to every file that NVIDIA's programs read. Sources: go.yaml.in/yaml/v2, sigs.k8s.io/yaml, Go encoding/json.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hybridgpu.files.gotree import GoKey, GoNode, GoScalar, GoYaml
from hybridgpu.files.quoting import shown
from hybridgpu.files.where import Where
from hybridgpu.model.finding import Finding, Related, Rule, Severity

_SOURCE = "sigs.k8s.io/yaml v1.6.0, go.yaml.in/yaml/v2 v2.4.3; run"

KEY_TWICE = Rule(
    "k8s-yaml-key-twice",
    Severity.ERROR,
    "Of a key that stands twice in one mapping the last one counts, and the first is dropped without a word.",
    "Keep one of the two.",
    _SOURCE,
)
KEY_REPEATED = Rule(
    "k8s-yaml-key-repeated",
    Severity.WARNING,
    "A key stands twice in one mapping with the same value; whoever changes the first one changes nothing.",
    "Keep one of the two.",
    _SOURCE,
)
SECOND_DOCUMENT = Rule(
    "k8s-yaml-second-document",
    Severity.ERROR,
    "Only the first YAML document is read; what follows `---` is dropped without a word.",
    "Remove what follows, or move it into a file or key of its own.",
    _SOURCE,
)
ODD_NUMBER = Rule(
    "k8s-yaml-odd-number",
    Severity.WARNING,
    "YAML 1.1 reads this number otherwise than most people do: 010 is 8, 1_0 is 10, 0x4 is 4.",
    "Write the number in plain decimal.",
    _SOURCE,
)
KEY_CASE = Rule(
    "k8s-yaml-key-case",
    Severity.WARNING,
    "Go's JSON takes a key in any case at this place, but not inside timeSlicing and mps, and other tools do not.",
    "Write the key as documented.",
    "Go encoding/json; k8s-device-plugin api/config/v1; run",
)

RULES = (KEY_TWICE, KEY_REPEATED, SECOND_DOCUMENT, ODD_NUMBER, KEY_CASE)


def judge_yaml(yaml: GoYaml, where: Where) -> Iterator[Finding]:
    """Keys that stand twice, and a second document."""
    for twice in yaml.twice:
        rule = KEY_TWICE if twice.differs else KEY_REPEATED
        message = f"the key {shown(twice.name)} stands here twice: first in line {where(twice.first.line, 1).line}"
        related = (Related(where(twice.first.line, twice.first.column), "the first one, which does not count"),)
        yield Finding(rule, where(twice.again.line, twice.again.column), message, rule.fix, related)
    if yaml.ignored:
        message = "a second document begins here, and is not read"
        yield Finding(SECOND_DOCUMENT, where(*yaml.ignored), message, SECOND_DOCUMENT.fix)


def judge_case(folded: Iterable[tuple[GoKey, str]], where: Where) -> Iterator[Finding]:
    """Keys that are known in another case."""
    for key, name in folded:
        message = f"the key {shown(key.name)} is taken for {name}"
        yield Finding(KEY_CASE, where(key.line, key.column), message, f"write {name}")


def judge_number(node: GoNode | None, where: Where) -> Iterator[Finding]:
    """A number that is not written in plain decimal."""
    if isinstance(node, GoScalar) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        value = int(node.value) if node.value == int(node.value) else node.value
        if node.text != str(value) and not isinstance(value, float):
            yield Finding(ODD_NUMBER, where(node.line, node.column), f"{node.text} is read as {value}", ODD_NUMBER.fix)
