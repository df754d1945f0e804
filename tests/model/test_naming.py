"""Names against Slurm's arithmetic and NVIDIA's spelling, and the table of collisions, pinned."""

from __future__ import annotations

import re
import struct
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybridgpu.model.catalogue import NotFound, find, models
from hybridgpu.model.gpu import GpuModel
from hybridgpu.model.naming import (
    colliding_profiles,
    device_files,
    gres_id,
    kubernetes_resource,
    same_name_other_meaning,
    slurm_type,
    type_prefix,
)


def model(name: str) -> GpuModel:
    found = find(name)
    assert not isinstance(found, NotFound)
    return found


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("", 0),
        ("g", 0x67),
        ("gpu", 0x757067),
        ("mps", 0x73706D),
        ("shard", 0x72616873 + 0x64),
        ("gpugpu", 0x757067 + 0x67000000 + 0x7570),
    ],
)
def test_an_id_is_the_sum_of_the_name_in_words_of_four_bytes(name: str, expected: int) -> None:
    assert gres_id(name) == expected % 2**32


@given(st.text(st.characters(max_codepoint=127)))
def test_an_id_of_ascii_is_a_sum_of_little_endian_words(name: str) -> None:
    raw = name.encode()
    words = struct.unpack(f"<{-(-len(raw) // 4)}I", raw + b"\0" * (-len(raw) % 4))
    assert gres_id(name) == sum(words) % 2**32


def test_case_counts_and_a_byte_above_127_is_negative() -> None:
    assert gres_id("A100") != gres_id("a100")
    assert gres_id("é") == (0xC3 - 256 + ((0xA9 - 256) << 8)) % 2**32


# live: Slurm of three releases grants a job of one of these types a card of the other
KNOWN_COLLISIONS = [
    ("4g.20gb", "1g.23gb"),
    ("7g.40gb", "2g.45gb"),
    ("2g.48gb", "3g.47gb"),
    ("3g.48gb", "4g.47gb"),
    ("2g.35gb", "1g.36gb"),
    ("4g.71gb", "3g.72gb"),
]


@pytest.mark.parametrize(("one", "other"), KNOWN_COLLISIONS)
def test_known_collisions(one: str, other: str) -> None:
    assert gres_id(one) == gres_id(other)
    assert gres_id(f"a100_{one}") == gres_id(f"a100_{other}")


def test_the_profiles_that_carry_a_prefix_are_pinned_so_that_an_upgrade_renames_nothing_unseen() -> None:
    assert colliding_profiles() == {name for pair in KNOWN_COLLISIONS for name in pair}


def test_no_two_types_of_the_catalogue_have_one_id() -> None:
    by_id: dict[int, set[str]] = defaultdict(set)
    for gpu in models():
        for name in (slurm_type(gpu), *(slurm_type(gpu, profile.name) for profile in gpu.profiles)):
            by_id[gres_id(name)].add(name)
    assert [names for names in by_id.values() if len(names) > 1] == []


def test_types_are_words_slurm_takes() -> None:
    for gpu in models():
        for name in (slurm_type(gpu), *(slurm_type(gpu, profile.name) for profile in gpu.profiles)):
            assert re.fullmatch(r"[a-z0-9_.+-]+", name), name


def test_types_are_part_of_what_slurm_detects_through_nvml() -> None:
    """S:src/plugins/gpu/nvml: lower case, `_` for a space; an instance: the card up to its first `-`, `_`, profile."""
    for gpu in models():
        card = gpu.driver_name.lower().replace(" ", "_")
        assert slurm_type(gpu) in card
        for profile in gpu.profiles:
            assert slurm_type(gpu, profile.name) in f"{card.split('-')[0]}_{profile.name}"


@pytest.mark.parametrize(
    ("name", "profile", "expected"),
    [
        ("A100-SXM4-80GB", None, "a100-sxm4-80gb"),
        ("A100-80GB-PCIe", None, "a100_80gb_pcie"),
        ("H100-80GB-HBM3", None, "h100_80gb_hbm3"),
        ("V100-SXM2-32GB", None, "v100-sxm2-32gb"),
        ("T4", None, "t4"),
        ("GeForce-RTX-3090", None, "geforce_rtx_3090"),
        ("A100-SXM4-80GB", "1g.10gb", "1g.10gb"),
        ("A100-SXM4-80GB", "1g.10gb+me", "1g.10gb+me"),
        ("A100-SXM4-40GB", "4g.20gb", "a100_4g.20gb"),
        ("A100-PCIE-40GB", "7g.40gb", "a100_7g.40gb"),
        ("B200", "1g.23gb", "b200_1g.23gb"),
        ("B200", "1g.23gb+me", "1g.23gb+me"),
        ("H200", "2g.35gb", "h200_2g.35gb"),
        ("H100-NVL", "3g.47gb", "h100_nvl_3g.47gb"),
        ("GH200-480GB", "3g.48gb", "gh200_480gb_3g.48gb"),
        ("GH200-144G-HBM3e", "3g.72gb", "gh200_144g_hbm3e_3g.72gb"),
        ("RTX-PRO-6000", "2g.48gb", "rtx_pro_6000_blackwell_server_edition_2g.48gb"),
    ],
)
def test_slurm_types(name: str, profile: str | None, expected: str) -> None:
    assert slurm_type(model(name), profile) == expected


def test_a_class_names_whole_gpus_only() -> None:
    assert slurm_type(model("A30"), None, "tesla") == "tesla"
    assert slurm_type(model("A30"), "1g.6gb", "tesla") == "1g.6gb"


def test_a_prefix_ends_where_slurm_cuts() -> None:
    assert type_prefix(model("A100-SXM4-40GB")) == "a100"
    assert type_prefix(model("H100-80GB-HBM3")) == "h100_80gb_hbm3"


@pytest.mark.parametrize(
    ("profile", "strategy", "expected"),
    [
        (None, "mixed", "nvidia.com/gpu"),
        ("1g.10gb", "mixed", "nvidia.com/mig-1g.10gb"),
        ("1g.10gb+me", "mixed", "nvidia.com/mig-1g.10gb.me"),
        ("1g.24gb-me", "mixed", "nvidia.com/mig-1g.24gb-me"),
        ("1g.24gb+me.all", "mixed", "nvidia.com/mig-1g.24gb.me.all"),
        ("1g.24gb+gfx", "mixed", "nvidia.com/mig-1g.24gb.gfx"),
        ("1g.10gb", "single", "nvidia.com/gpu"),
    ],
)
def test_kubernetes_resources(profile: str | None, strategy: str, expected: str) -> None:
    assert kubernetes_resource(profile, strategy) == expected


@pytest.mark.parametrize(
    ("minor", "gi", "ci", "files"),
    [
        (0, None, 0, ("/dev/nvidia0",)),
        (0, 1, 0, ("/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap12", "/dev/nvidia-caps/nvidia-cap13")),
        (0, 7, 0, ("/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap66", "/dev/nvidia-caps/nvidia-cap67")),
        (0, 0, 0, ("/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap3", "/dev/nvidia-caps/nvidia-cap4")),
        (1, 0, 0, ("/dev/nvidia1", "/dev/nvidia-caps/nvidia-cap138", "/dev/nvidia-caps/nvidia-cap139")),
        (4, 13, 2, ("/dev/nvidia4", "/dev/nvidia-caps/nvidia-cap660", "/dev/nvidia-caps/nvidia-cap663")),
    ],
)
def test_device_files_by_the_drivers_numbering(minor: int, gi: int | None, ci: int, files: tuple[str, ...]) -> None:
    assert device_files(minor, gi, ci) == files


def test_no_two_instances_of_a_node_share_a_capability_file() -> None:
    """GI ids are 0 to 14 and at most 8 compute instances lie in one: the numbering leaves just enough room."""
    minors = [f for gpu in range(8) for gi in range(15) for f in device_files(gpu, gi, 0)[1:]]
    assert len(set(minors)) == len(minors)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("A100-40GB", "A100-80GB"), {"1g.10gb"}),
        (("A100-80GB", "A100-80GB-PCIe"), set()),
        (("A100-80GB", "H100-80GB"), set()),
        (("A100-40GB", "A100-40GB"), set()),
        (("H100-NVL", "RTX-PRO-6000"), {"1g.24gb"}),
        (("H200", "GB300"), {"1g.35gb"}),
        (("A30", "A100-40GB"), set()),
        (
            ("RTX-PRO-6000", "RTX-PRO-5000"),
            {"1g.24gb", "1g.24gb+me", "1g.24gb+gfx", "1g.24gb+me.all", "1g.24gb-me", "2g.48gb", "2g.48gb+gfx"},
        ),
    ],
)
def test_one_name_with_two_meanings(names: tuple[str, ...], expected: set[str]) -> None:
    found = list(same_name_other_meaning(model(name) for name in names))
    assert {two.profile for two in found} == expected
    for two in found:
        assert two.one.name in two.difference
        assert two.other.name in two.difference
