"""One mistake is one finding, which names the right word."""

from __future__ import annotations

import pytest

from hybridgpu.model.finding import Severity
from tests.consumers.slurm.sites import judged, site

FOUR = "Name=gpu Type=a100 File=/dev/nvidia[0-3]"
PLAIN = "Name=gpu File=/dev/nvidia[0-3]"
T4 = "Name=gpu Type=t4 File=/dev/nvidia4"


def gres(text: str, records: list[str] | str = FOUR) -> dict[str, str]:
    return site(text, records, types="gpu,mps")


def conf(text: str) -> dict[str, str]:
    return site("gpu:a100:4", FOUR, conf=text)


ONE: dict[str, tuple[dict[str, str], str, list[str]]] = {
    "semicolon": (gres("gpu:a100:4;mps:400"), "slurm-gres-punctuation", ["write Gres=gpu:a100:4,mps:400"]),
    "equals": (gres("gpu:a100=4"), "slurm-gres-punctuation", ["write Gres=gpu:a100:4"]),
    "equals without a type": (gres("gpu=4", PLAIN), "slurm-gres-punctuation", ["write Gres=gpu:4"]),
    "comma before the count": (gres("gpu:a100,4"), "slurm-gres-punctuation", ["write Gres=gpu:a100:4"]),
    "count before the type": (gres("gpu:4:a100(S:0)"), "slurm-gres-punctuation", ["write Gres=gpu:a100:4(S:0)"]),
    "blank in quotes": (
        gres('"gpu:a100:4, gpu:t4:1"', [FOUR, T4]),
        "slurm-gres-punctuation",
        ["write Gres=gpu:a100:4,gpu:t4:1"],
    ),
    "blank": (gres("gpu:a100:4, gpu:t4:1", [FOUR, T4]), "slurm-line-unreadable", ["write Gres=gpu:a100:4,gpu:t4:1"]),
    "plural": (gres("gpus:4", PLAIN), "slurm-gres-not-in-grestypes", ["did you mean gpu?", "Write Gres=gpu:4"]),
    "TRES": (gres("gres/gpu:4", PLAIN), "slurm-gres-not-in-grestypes", ["did you mean gpu?", "Gres=gpu:4"]),
    "TRES with a colon": (gres("gres:gpu:4", PLAIN), "slurm-gres-not-in-grestypes", ["Gres=gpu:4"]),
    "capitals": (gres("GPU:a100:4"), "slurm-gres-not-in-grestypes", ["did you mean gpu?", "Gres=gpu:a100:4"]),
    "name in gres.conf": (
        gres("gpu:a100:4", FOUR.replace("=gpu", "=gpus")),
        "slurm-gres-not-in-grestypes",
        ["did you mean gpu?"],
    ),
    "name in GresTypes": (
        site("gpu:4", "", types="gpus"),
        "slurm-gres-not-in-grestypes",
        ["did you mean gpu in GresTypes, where gpus stands?"],
    ),
    "flags with a blank": (conf("PrologFlags=Alloc Contain"), "slurm-line-unreadable", ["PrologFlags=Alloc,Contain"]),
    "files with a blank": (
        gres("gpu:a100:2", "Name=gpu Type=a100 File=/dev/nvidia0 /dev/nvidia1"),
        "slurm-line-unreadable",
        ["write File=/dev/nvidia0,/dev/nvidia1"],
    ),
    "Include with =": (conf("Include=nodes.conf"), "slurm-unknown-key", ["write Include nodes.conf, without '='"]),
    "Include with = in gres.conf": (gres("gpu:a100:4", "Include=gpu.conf"), "slurm-unknown-key", ["Include gpu.conf"]),
    "GresType": (
        site("gpu:a100:4", FOUR, types=None, conf="GresType=gpu"),
        "slurm-unknown-key",
        ["did you mean GresTypes?"],
    ),
    "key of a node": (conf("PartitionName=q Nodes=n1 Gres=gpu:4"), "slurm-unknown-key", ["on a NodeName line"]),
    "key of gres.conf": (conf("File=/dev/nvidia0"), "slurm-unknown-key", ["File belongs in gres.conf"]),
    "AutoDetect": (
        gres("gpu:a100:4", "AutoDetect=nvlm"),
        "slurm-autodetect-unknown",
        ["did you mean nvml?"],
    ),
    "fewer": (
        gres("gpu:a100:5"),
        "slurm-fewer-than-configured",
        ["5", "turns INVALID and drains: gres/gpu count reported lower than configured (4 < 5)"],
    ),
    "no file": (gres("gpu:a100:4", ""), "slurm-gpu-without-file", ["turns INVALID and drains", "(0 < 4)"]),
    "cores beyond": (gres("gpu:a100:4", f"{FOUR} Cores=8-15"), "slurm-cores-invalid", ["8-15", "turns INVALID"]),
}


@pytest.mark.parametrize("name", ONE)
def test_one_mistake_is_told_once(name: str) -> None:
    files, rule, words = ONE[name]
    findings = [finding for finding in judged(files).findings if finding.rule.severity is not Severity.INFO]
    assert [finding.rule.id for finding in findings] == [rule]
    for word in words:
        assert word in findings[0].message + findings[0].hint
    assert "no reason given" not in findings[0].message and len(findings[0].message) < 400


@pytest.mark.parametrize("name", ["gpu:a100:no_consume:4", "gpu:a100:4(S:0-1)", "gpu:a100:2,gpu:a100:2", "gpu:a100:4,"])
def test_a_list_that_is_right_is_left_alone(name: str) -> None:
    assert judged(gres(name)).findings == ()
