"""AutoDetect over hardware that is given, and over hardware that is not known."""

from __future__ import annotations

import pytest

from hybridgpu.consumers.slurm import DetectedGpu
from hybridgpu.model.offer import SlurmDevice, SlurmOffer
from tests.consumers.slurm.sites import CAPS, judged, site

A100 = "nvidia_a100-sxm4-80gb"


def whole(n: int, kind: str = A100, cores: str | None = None, links: str | None = None) -> DetectedGpu:
    return DetectedGpu(kind, (f"/dev/nvidia{n}",), cores, links)


def cut(gpu: int, cap: int, profile: str = "1g.10gb") -> DetectedGpu:
    return DetectedGpu(f"nvidia_a100_{profile}", (f"/dev/nvidia{gpu}", f"{CAPS}{cap}", f"{CAPS}{cap + 1}"))


FOUR = tuple(whole(n, links=",".join("-1" if m == n else "4" for m in range(4))) for n in range(4))
CUT = (cut(0, 66), cut(0, 75), whole(1))


def device(detected: DetectedGpu, kind: str | None, shares: int = 0) -> SlurmDevice:
    links = tuple(int(link) for link in detected.links.split(",")) if detected.links else None
    return SlurmDevice(kind, detected.files, shares, detected.cores, links)


def offer_of(
    gres: str, records: list[str], found: tuple[DetectedGpu, ...], types: str = "gpu"
) -> tuple[SlurmOffer, set[str]]:
    result = judged(site(gres, records, types=types), "24.11", {"n1": found})
    offer = result.offer_of("n1")
    assert offer is not None
    return offer, {finding.rule.id for finding in result.findings}


def test_detected_gpus_get_the_configured_type_and_slurm_sorts_them_itself() -> None:
    offer, rules = offer_of("gpu:a100:4", ["NodeName=n1 AutoDetect=nvml"], FOUR[::-1])
    assert (offer, rules) == (SlurmOffer(tuple(device(gpu, "a100") for gpu in FOUR)), set())


def test_files_sort_by_number_where_links_say_nothing() -> None:
    found = tuple(whole(n) for n in (10, 9, 2))
    offer, rules = offer_of("gpu:3", ["AutoDetect=nvml"], found)
    assert [gpu.files for gpu in offer.gpus] == [("/dev/nvidia2",), ("/dev/nvidia9",), ("/dev/nvidia10",)]
    assert {gpu.type for gpu in offer.gpus} == {None} and rules == set()


def test_instances_match_their_profile_and_share_records_stay() -> None:
    offer, rules = offer_of(
        "gpu:1g.10gb:2,gpu:a100:1,shard:6", ["AutoDetect=nvml", "Name=shard Count=6"], CUT, types="gpu,shard"
    )
    kinds = (("1g.10gb", CUT[0]), ("1g.10gb", CUT[1]), ("a100", CUT[2]))
    assert offer == SlurmOffer(tuple(device(gpu, kind, 2) for kind, gpu in kinds), "shard")
    assert rules == set()


def test_share_records_by_file_meet_the_detected_files() -> None:
    shares = [f"NodeName=n1 Name=shard File=/dev/nvidia{n} Count=4" for n in range(4)]
    offer, rules = offer_of("gpu:a100:4,shard:16", ["NodeName=n1 AutoDetect=nvml", *shares], FOUR, types="gpu,shard")
    assert [gpu.shares for gpu in offer.gpus] == [4, 4, 4, 4] and rules == set()


def test_the_longest_type_is_served_first() -> None:
    found = (whole(0, "nvidia_a100_80gb_pcie"), whole(1, "nvidia_a100_40gb_pcie"))
    offer, rules = offer_of("gpu:a100:1,gpu:a100_80gb:1", ["AutoDetect=nvml"], found)
    assert [(gpu.type, gpu.files[0]) for gpu in offer.gpus] == [("a100_80gb", "/dev/nvidia0"), ("a100", "/dev/nvidia1")]
    assert rules == set()


def test_a_gpu_too_many_is_ignored_but_its_links_make_the_node_invalid_as_one_too_few_does() -> None:
    offer, rules = offer_of("gpu:a100:3", ["AutoDetect=nvml"], FOUR)
    assert (len(offer.gpus), rules) == (3, {"slurm-detected-ignored", "slurm-node-invalid"})
    offer, rules = offer_of("gpu:a100:3", ["AutoDetect=nvml"], tuple(whole(n) for n in range(4)))
    assert (len(offer.gpus), rules) == (3, {"slurm-detected-ignored"})
    offer, rules = offer_of("gpu:a100:5", ["AutoDetect=nvml"], FOUR)
    assert (len(offer.gpus), rules) == (4, {"slurm-not-detected"})


@pytest.mark.parametrize("record", ["Cores=4-7", "Links=-1,0,0,0"])
def test_cores_and_links_must_be_the_detected_ones(record: str) -> None:
    found = (whole(0, cores="0-3", links="-1,4"), whole(1, cores="4-7", links="4,-1"))
    offer, rules = offer_of("gpu:a100:2", ["AutoDetect=nvml", f"Name=gpu Type=a100 File=/dev/nvidia0 {record}"], found)
    assert [gpu.files[0] for gpu in offer.gpus] == ["/dev/nvidia1"]
    assert rules == {"slurm-detected-differs"}


def test_a_configured_gpu_with_a_file_stays_even_when_it_is_not_detected() -> None:
    offer, rules = offer_of("gpu:a100:2", ["AutoDetect=nvml", "Name=gpu Type=a100 File=/dev/nvidia9"], (whole(0),))
    assert [gpu.files[0] for gpu in offer.gpus] == ["/dev/nvidia0", "/dev/nvidia9"] and rules == set()


def test_a_node_s_own_value_wins_over_the_file_s() -> None:
    offer, rules = offer_of("gpu:a100:4", ["AutoDetect=off", "NodeName=n1 AutoDetect=NVML"], FOUR)
    assert (len(offer.gpus), rules) == (4, set())
    offer, rules = offer_of("gpu:a100:4", ["AutoDetect=nvml", "NodeName=n1 AutoDetect=off"], FOUR)
    assert (len(offer.gpus), rules) == (0, {"slurm-gpu-without-file"})


def test_unknown_hardware_is_taken_as_configured_and_that_is_said() -> None:
    result = judged(site("gpu:1g.10gb:2,gpu:a100:1", "AutoDetect=nvml"))
    assert [(gpu.type, gpu.files) for gpu in result.offer_of("n1").gpus] == [  # type: ignore[union-attr]
        ("1g.10gb", ()),
        ("1g.10gb", ()),
        ("a100", ()),
    ]
    assert [(f.rule.id, f.severity) for f in result.findings] == [("slurm-autodetect-assumed", "info")]


def test_shares_of_unknown_hardware_follow_their_files() -> None:
    shares = [f"NodeName=n1 Name=shard File=/dev/nvidia{n} Count={4 + n}" for n in range(2)]
    result = judged(site("gpu:a100:2,shard:9", ["NodeName=n1 AutoDetect=nvml", *shares], types="gpu,shard"))
    assert [gpu.shares for gpu in result.offer_of("n1").gpus] == [4, 5]  # type: ignore[union-attr]
    assert {finding.rule.id for finding in result.findings} == {"slurm-autodetect-assumed"}


@pytest.mark.parametrize(
    ("release", "value", "blind"),
    [("24.11", "nvidia", True), ("24.11", "nvml", False), ("26.05", "full", False), ("22.05", "nvidia", False)],
)
def test_what_sees_no_instances_is_told_before_the_node_turns_invalid(release: str, value: str, blind: bool) -> None:
    result = judged(site("gpu:1g.10gb:7", f"AutoDetect={value}"), release)
    assert ("slurm-autodetect-cannot-see-mig" in {finding.rule.id for finding in result.findings}) is blind
    if blind:
        assert result.nodes["n1"].invalid == "gres/gpu count reported lower than configured (0 < 7)"
