"""Folders of inputs that hurt, and of good ones that look alarming: what `check` must say is in each one's expect.yaml.

`expect`: error, warning, any (either), or clean: no error and no warning. One finding of that severity has all the
`mentions` in its message or hint and, if given, points at `line`. `consumer` is what the real program does, `source`
where that is known from. `slurmd`, for good Slurm files: the first release that knows their keys, or why slurmd can't
be asked on a test machine; without it slurmd of every release must be content, as a test here asks.
"""

from __future__ import annotations

import json
import re
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import yaml
from ClusterShell.NodeSet import NodeSet

from hybridgpu.check.formats import as_json
from hybridgpu.check.site import check
from testbed.slurm.root import SUITES
from tests.conftest import root_of

CASES = Path(__file__).parent.parent / "data" / "cases"
PREFIXES = ("slurm-", "k8s-", "migparted-", "site-")
NAMES = sorted(path.name for path in CASES.iterdir() if path.name.startswith(PREFIXES))
SHOWN = ("severity", "file", "line", "rule", "message", "hint")
NODE_LINE = re.compile(r"^\s*NodeName\s*=\s*\"?(?!DEFAULT)([^\s\"]+)(?!.*\bName=)", re.I | re.M)


def expected(name: str) -> dict[str, Any]:
    return dict(yaml.safe_load((CASES / name / "expect.yaml").read_text(encoding="utf-8")))


GOOD = [name for name in NAMES if expected(name)["expect"] == "clean"]
ASKED = [name for name in GOOD if (CASES / name / "slurm.conf").exists()]


def meets(finding: dict[str, Any], expect: dict[str, Any]) -> bool:
    words = f"{finding['message']} {finding['hint']}".lower()
    return (
        finding["severity"] in (("error", "warning") if expect["expect"] == "any" else (expect["expect"],))
        and all(str(word).lower() in words for word in expect["mentions"])
        and finding["line"] == expect.get("line", finding["line"])
    )


def test_good_files_are_no_rarity() -> None:
    assert len(NAMES) > 300 and len(GOOD) > 120


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_is_judged_as_it_says(name: str) -> None:
    expect = expected(name)
    done = check([str(CASES / name)])
    told = json.loads(as_json(done.findings, []))["findings"]
    findings = [finding for finding in told if finding["severity"] != "info"]
    said = "\n".join(" | ".join(str(f[key]) for key in SHOWN) for f in findings) or "no finding"
    if expect["expect"] == "clean":
        assert not findings, said
    else:
        assert any(meets(finding, expect) for finding in findings), f"{expect} among:\n{said}"


@pytest.mark.slurm
@pytest.mark.parametrize("release", SUITES)
@pytest.mark.parametrize("name", ASKED)
def test_slurmd_is_content_with_good_files(name: str, release: str) -> None:
    since = str(expected(name).get("slurmd", "0"))
    if since.startswith("exempt") or float(since) > float(release):
        return
    root = root_of(release)
    files = {str(path.relative_to(CASES / name)): path.read_text() for path in (CASES / name).rglob("*.conf")}
    text = "\n".join(text for file, text in files.items() if "gres" not in file)
    lines = [NodeSet(found) for found in NODE_LINE.findall(text)]
    nodes = [node for line in lines for node in islice(line, 2)]
    assert nodes
    said = {node: root.slurmd_g(files, node) for node in nodes}
    assert {node: report.messages for node, report in said.items() if report.died or report.messages} == {}
