"""Kubernetes objects out of a file: several documents, `kubectl get -o json|yaml` lists, and texts inside of them.

Read as kubectl reads them (Go's YAML); what an object means is not known here. A value that holds a file of its own, as
a ConfigMap's, is handed out with a `Where`, so that a mistake in it is told at its place in the outer file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hybridgpu.files.goscalar import GoValue
from hybridgpu.files.gotree import GoKey, GoList, GoMap, GoNode, GoScalar, GoYaml
from hybridgpu.files.goyaml import load
from hybridgpu.files.tabs import with_tab
from hybridgpu.files.where import Where, in_block, in_file
from hybridgpu.model.finding import Finding, Place, Rule, Severity

UNREADABLE = Rule(
    "k8s-manifest-unreadable",
    Severity.ERROR,
    "kubectl and the API server cannot read the document, and apply nothing of it.",
    "Mend the line, or the one before it.",
    "sigs.k8s.io/yaml v1.6.0; kubectl apply",
)

_SEPARATOR = re.compile(r"^---(?=\s|$)[^\n]*\n?", re.MULTILINE)
_SECRET = re.compile(r"""kind["']?[ \t]*:[ \t]*["']?Secret""")
_BLOCK = re.compile(r"[|][0-9+-]*[ \t]*(?:#.*)?\r?$")


@dataclass(frozen=True, slots=True, eq=False)
class Manifest:
    """One object. `namespace` is "" where none is given; `lines` and `first` find texts in the file again.

    `yaml` is what was read of its document, for keys that stand twice in it. `indent` and `fixed` are those of a
    document that is itself a text in another: how far it is moved to the right, or the one place for all of it.
    """

    path: str
    kind: str
    api_version: str
    name: str
    namespace: str
    root: GoMap
    yaml: GoYaml
    lines: tuple[str, ...]
    first: int
    indent: int = 0
    fixed: Place | None = None

    def place(self, node: GoNode | GoKey | None = None) -> Place:
        """Where a node of the object stands; without one, where the object begins."""
        at = self.root if node is None else node
        return self.where(at.line, at.column)

    @property
    def where(self) -> Where:
        """Line and column of the document to the place in the file."""
        if (fixed := self.fixed) is not None:
            return lambda _line, _column: fixed
        return lambda line, column: Place(self.path, line + self.first - 1, column + self.indent)

    @property
    def title(self) -> str:
        """`ConfigMap nvidia/gpu-sharing`, as a person names it."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"

    def get(self, *path: str) -> GoNode | None:
        """The node at these keys, or None."""
        return at(self.root, *path)

    def text(self, *path: str) -> str | None:
        """The string at these keys; None where there is none."""
        node = self.get(*path)
        return node.value if isinstance(node, GoScalar) and isinstance(node.value, str) else None

    def value(self, *path: str) -> GoValue:
        """The scalar at these keys; None where there is none, too."""
        node = self.get(*path)
        return node.value if isinstance(node, GoScalar) else None

    def items(self, *path: str) -> tuple[GoNode, ...]:
        """The items of the list at these keys; () where there is none."""
        node = self.get(*path)
        return node.items if isinstance(node, GoList) else ()

    def mapping(self, *path: str) -> tuple[tuple[GoKey, GoNode], ...]:
        """The entries of the mapping at these keys, by their names' bytes; () where there is none."""
        node = self.get(*path)
        return node.entries if isinstance(node, GoMap) else ()

    def inner(self, scalar: GoScalar) -> Where:
        """Where in the file a line and column of this value's text stand: exact in a `|` block, else its beginning."""
        number, indent = self._block(scalar)
        place = self.place(scalar)
        return in_block(self.path, number, indent) if number else lambda _line, _column: place

    def inside(self, scalar: GoScalar) -> Manifest | None:
        """The document that this value's text is, as if it were an object; None where it is no mapping."""
        yaml = load(str(scalar.value))
        if not isinstance(yaml.root, GoMap):
            return None
        number, indent = self._block(scalar)
        fixed = None if number else self.place(scalar)
        names = (self.kind, self.api_version, self.name, self.namespace)
        return Manifest(self.path, *names, yaml.root, yaml, self.lines, number, indent, fixed)

    def _block(self, scalar: GoScalar) -> tuple[int, int]:
        """The number of the first line of a `|` block, and its indent; (0, 0) for another form of text."""
        place = self.place(scalar)
        line = self.lines[place.line - 1] if place.line <= len(self.lines) else ""
        if self.fixed is not None or not _BLOCK.match(line[place.column - 1 :]):
            return 0, 0
        body = next((text for text in self.lines[place.line :] if text.strip()), "")
        return place.line + 1, len(body) - len(body.lstrip(" "))


@dataclass(frozen=True, slots=True)
class Manifests:
    """All objects of a file, lists taken apart, and what hinders reading."""

    objects: tuple[Manifest, ...]
    findings: tuple[Finding, ...]


def read_manifests(path: str, text: str) -> Manifests:
    """The objects of `text`; a document that is none is left out. Never raises."""
    objects: list[Manifest] = []
    findings: list[Finding] = []
    lines = tuple(text.split("\n"))
    for first, document in documents(text):
        yaml = load(document)
        if yaml.error:
            place = in_file(path)(yaml.error.line + first - 1, yaml.error.column)
            words = with_tab(yaml.error.words, document, yaml.error.line)
            if _SECRET.search(document):
                words = "this Secret cannot be read as YAML; what is wrong is not repeated here"
            findings.append(Finding(UNREADABLE, place, words, UNREADABLE.fix))
        elif isinstance(yaml.root, GoMap):
            objects += (_manifest(path, root, kind, yaml, lines, first) for root, kind in _flat(yaml.root))
    return Manifests(tuple(objects), tuple(findings))


def at(node: GoNode | None, *path: str) -> GoNode | None:
    """The node below `node` at these keys, or None."""
    for key in path:
        node = node.get(key) if isinstance(node, GoMap) else None
    return node


def documents(text: str) -> Iterator[tuple[int, str]]:
    """Each YAML document with the number of its first line."""
    start, line = 0, 1
    for mark in (*_SEPARATOR.finditer(text), None):
        end = mark.start() if mark else len(text)
        if text[start:end].strip():
            yield line, text[start:end]
        line += text.count("\n", start, mark.end() if mark else end)
        start = mark.end() if mark else end


def _flat(root: GoMap) -> Iterator[tuple[GoMap, str]]:
    """The object, or those of a list (`kind: List`, `PodList` ...), with a kind for items that say none.

    Lists within lists are taken apart on a stack of our own: their depth is whoever wrote the file's.
    """
    waiting = [(root, "")]
    while waiting:
        node, inferred = waiting.pop()
        items, kind = node.get("items"), node.get("kind")
        name = kind.value if isinstance(kind, GoScalar) and isinstance(kind.value, str) else inferred
        if name.endswith("List") and isinstance(items, GoList):
            of = name.removesuffix("List")
            waiting += ((item, of) for item in reversed(items.items) if isinstance(item, GoMap))
        else:
            yield node, name


def _manifest(path: str, root: GoMap, kind: str, yaml: GoYaml, lines: tuple[str, ...], first: int) -> Manifest:
    def text(*keys: str) -> str:
        node = at(root, *keys)
        return str(node.value) if isinstance(node, GoScalar) and node.value is not None else ""

    name, namespace = text("metadata", "name"), text("metadata", "namespace")
    return Manifest(path, kind, text("apiVersion"), name, namespace, root, yaml, lines, first)
