"""Objects come out of every form in which kubectl takes or gives them, with places that an editor can jump to."""

from __future__ import annotations

import json
import random

import pytest

from hybridgpu.files.gotree import GoScalar
from hybridgpu.files.manifest import Manifest, read_manifests
from tests.conftest import no_hang, soak

MAP = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: plugin
  namespace: gpu
data:
  any: |
    version: v1
    sharing: {}
"""
POD = "kind: Pod\nmetadata: {name: p}\n"


def names(text: str) -> list[tuple[str, str, int]]:
    return [(m.kind, m.name, m.place().line) for m in read_manifests("f.yaml", text).objects]


FORMS: dict[str, tuple[str, list[tuple[str, str, int]]]] = {
    "one": (MAP, [("ConfigMap", "plugin", 1)]),
    "two documents": (f"{MAP}---\n{POD}", [("ConfigMap", "plugin", 1), ("Pod", "p", 11)]),
    "documents that are empty": (f"---\n---\n# x\n--- # y\n{POD}---\n", [("Pod", "p", 5)]),
    "an end mark": (f"{POD}...\n---\n{POD}", [("Pod", "p", 1), ("Pod", "p", 5)]),
    "CRLF": (POD.replace("\n", "\r\n") + "---\r\n" + POD.replace("\n", "\r\n"), [("Pod", "p", 1), ("Pod", "p", 4)]),
    "a list": ("kind: List\nitems:\n- kind: Pod\n  metadata: {name: p}\n", [("Pod", "p", 3)]),
    "a list of one kind": ("kind: PodList\nitems:\n- metadata: {name: p}\n", [("Pod", "p", 3)]),
    "a list in a list": ("kind: List\nitems:\n- kind: List\n  items:\n  - {kind: Pod}\n", [("Pod", "", 5)]),
    "an empty list": ("kind: List\nitems: []\n", []),
    "null items": ("kind: List\nitems: null\n", [("List", "", 1)]),
    "no object": ("- a\n- b\n---\njust text\n", []),
    "no kind": ("a: 1\n", [("", "", 1)]),
    "odd names": ("kind: 5\nmetadata: {name: 7, namespace: null}\n", [("", "7", 1)]),
    "three dashes in a block": ("kind: Pod\ndata: |\n  ---\n  a\n", [("Pod", "", 1)]),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_form(form: str) -> None:
    text, expected = FORMS[form]
    assert names(text) == expected


@pytest.mark.parametrize("indent", [None, 2, 4])
def test_json_as_kubectl_gives_it(indent: int | None) -> None:
    item = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": {"a/b": "c"}}}
    text = json.dumps({"apiVersion": "v1", "items": [item], "kind": "List"}, indent=indent)
    (node,) = read_manifests("f.json", text).objects
    assert (node.kind, node.name, node.api_version, node.text("metadata", "labels", "a/b")) == ("Node", "n1", "v1", "c")


def test_a_document_that_cannot_be_read_does_not_hide_the_others() -> None:
    read = read_manifests("f.yaml", f"{POD}---\na: [\n---\n{POD}")
    assert [m.name for m in read.objects] == ["p", "p"]
    (finding,) = read.findings
    assert finding.place is not None
    assert finding.place.line in (4, 5)


def value(manifest: Manifest) -> GoScalar:
    found = manifest.get("data", "any")
    assert isinstance(found, GoScalar)
    return found


INNER = {
    "a block": ("data:\n  any: |\n    x: 1\n    y: 2\n", (4, 5)),
    "kept line ends": ("data:\n  any: |+\n    x: 1\n    y: 2\n\n", (4, 5)),
    "a comment behind the mark": ("data:\n  any: | # config\n    x: 1\n    y: 2\n", (4, 5)),
    "a blank line first": ("data:\n  any: |\n\n    y: 2\n", (4, 5)),
    "in quotes": ('data:\n  any: "x: 1\\ny: 2\\n"\n', (2, 8)),
    "CRLF": ("data:\r\n  any: |\r\n    x: 1\r\n    y: 2\r\n", (4, 5)),
    "folded": ("data:\n  any: >\n    x: 1\n\n    y: 2\n", (2, 8)),
}


@pytest.mark.parametrize("name", INNER)
def test_the_place_of_a_text_in_an_object(name: str) -> None:
    text, (line, column) = INNER[name]
    (first, second) = read_manifests("f.yaml", f"kind: A\n---\n{text}").objects
    assert first.kind == "A"
    place = second.inner(value(second))(2, 1)
    assert (place.line, place.column) == (line + 2, column)


def test_no_text_brings_it_down() -> None:
    rng = random.Random("manifests")
    for number in range(soak(300, 5000)):
        text = list(f"{MAP}---\n{POD}")
        for _ in range(rng.randrange(1, 12)):
            at = rng.randrange(len(text))
            text[at : at + rng.randrange(3)] = rng.choice(
                ["\n", "---\n", "{", "[", ":", "*a", "&a ", "|", "\t", '"', "- "]
            )
        with no_hang():
            for manifest in read_manifests("f.yaml", "".join(text)).objects:
                assert manifest.title is not None, number
                node = manifest.get("data", "any")
                if isinstance(node, GoScalar):
                    assert manifest.inner(node)(3, 1).line >= 1
