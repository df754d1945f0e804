"""The catalogue against what NVIDIA publishes, written out here by hand: names, ids, how words for models are read."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybridgpu.model.catalogue import NotFound, find, identify, memory_in_name, models, unconfirmed

SEVEN_EIGHTS = {
    "A100-SXM4-40GB": "1g.5gb 1g.5gb+me 1g.10gb 2g.10gb 3g.20gb 4g.20gb 7g.40gb",
    "A100-PCIE-40GB": "1g.5gb 1g.5gb+me 1g.10gb 2g.10gb 3g.20gb 4g.20gb 7g.40gb",
    "A100-SXM4-80GB": "1g.10gb 1g.10gb+me 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb",
    "A100-80GB-PCIe": "1g.10gb 1g.10gb+me 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb",
    "A800-SXM4-80GB": "1g.10gb 1g.10gb+me 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb",
    "H100-80GB-HBM3": "1g.10gb 1g.10gb+me 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb",
    "H100-PCIe": "1g.10gb 1g.10gb+me 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb",
    "H800": "1g.10gb 1g.10gb+me 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb",
    "H100-NVL": "1g.12gb 1g.12gb+me 1g.24gb 2g.24gb 3g.47gb 4g.47gb 7g.94gb",
    "H100-SXM5-96GB": "1g.12gb 1g.12gb+me 1g.24gb 2g.24gb 3g.48gb 4g.48gb 7g.96gb",
    "H20": "1g.12gb 1g.12gb+me 1g.24gb 2g.24gb 3g.48gb 4g.48gb 7g.96gb",
    "GH200-480GB": "1g.12gb 1g.12gb+me 1g.24gb 2g.24gb 3g.48gb 4g.48gb 7g.96gb",
    "H200": "1g.18gb 1g.18gb+me 1g.35gb 2g.35gb 3g.71gb 4g.71gb 7g.141gb",
    "H200-NVL": "1g.18gb 1g.18gb+me 1g.35gb 2g.35gb 3g.71gb 4g.71gb 7g.141gb",
    "GH200-144G-HBM3e": "1g.18gb 1g.18gb+me 1g.36gb 2g.36gb 3g.72gb 4g.72gb 7g.144gb",
    "B200": "1g.23gb 1g.23gb+me 1g.45gb 2g.45gb 3g.90gb 4g.90gb 7g.180gb",
    "GB200": "1g.23gb 1g.23gb+me 1g.47gb 2g.47gb 3g.93gb 4g.93gb 7g.186gb",
    "GB200-189GB": "1g.24gb 1g.24gb+me 1g.47gb 2g.47gb 3g.95gb 4g.95gb 7g.189gb",
    "B300-SXM6-AC": "1g.34gb 1g.34gb+me 1g.67gb 2g.67gb 3g.135gb 4g.135gb 7g.269gb",
    "GB300": "1g.35gb 1g.35gb+me 1g.70gb 2g.70gb 3g.139gb 4g.139gb 7g.278gb",
}
OTHERS = {
    "A30": "1g.6gb 1g.6gb+me 2g.12gb 2g.12gb+me 4g.24gb",
    "RTX-PRO-6000-Blackwell-Server-Edition": (
        "1g.24gb 1g.24gb+me 1g.24gb+gfx 1g.24gb+me.all 1g.24gb-me "
        "2g.48gb 2g.48gb+gfx 2g.48gb+me.all 2g.48gb-me 4g.96gb 4g.96gb+gfx"
    ),
    "RTX-PRO-5000-Blackwell": "1g.24gb 1g.24gb+me 1g.24gb+gfx 1g.24gb+me.all 1g.24gb-me 2g.48gb 2g.48gb+gfx",
    "RTX-PRO-4500-Blackwell": "1g.16gb 1g.16gb+gfx 1g.16gb+me.all 1g.16gb-me 2g.32gb 2g.32gb+gfx",
}


@pytest.mark.parametrize(("name", "listed"), [*SEVEN_EIGHTS.items(), *OTHERS.items()])
def test_profiles_are_named_as_nvidia_names_them(name: str, listed: str) -> None:
    model = find(name)
    assert not isinstance(model, NotFound)
    assert [profile.name for profile in model.profiles] == listed.split()


@pytest.mark.parametrize("name", SEVEN_EIGHTS)
def test_seven_eighths_cards_have_the_ids_counts_and_slices_of_nvidia_smi(name: str) -> None:
    model = find(name)
    assert not isinstance(model, NotFound)
    rows = [(p.smi_id, p.max_count, p.compute, p.size) for p in model.profiles]
    assert rows == [
        (19, 7, 1, 1),
        (20, 1, 1, 1),
        (15, 4, 1, 2),
        (14, 3, 2, 2),
        (9, 2, 3, 4),
        (5, 1, 4, 4),
        (0, 1, 7, 8),
    ]


def test_a_listing_of_the_rtx_pro_6000() -> None:
    model = find("RTX PRO 6000")
    assert not isinstance(model, NotFound)
    ids = {p.name: (p.smi_id, p.max_count, p.decoders, p.ofa) for p in model.profiles}
    assert ids == {
        "1g.24gb": (14, 4, 1, 0),
        "1g.24gb+me": (21, 1, 1, 1),
        "1g.24gb+gfx": (47, 4, 1, 0),
        "1g.24gb+me.all": (65, 1, 4, 1),
        "1g.24gb-me": (67, 4, 0, 0),
        "2g.48gb": (5, 2, 2, 0),
        "2g.48gb+gfx": (35, 2, 2, 0),
        "2g.48gb+me.all": (64, 1, 4, 1),
        "2g.48gb-me": (66, 2, 0, 0),
        "4g.96gb": (0, 1, 4, 1),
        "4g.96gb+gfx": (32, 1, 4, 1),
    }


@pytest.mark.parametrize(
    ("eighths", "gib", "expected"), [(1, 180, 23), (2, 94, 24), (4, 141, 71), (4, 269, 135), (2, 186, 47), (8, 94, 94)]
)
def test_halves_are_rounded_up_as_go_does(eighths: int, gib: int, expected: int) -> None:
    assert memory_in_name(eighths, gib) == expected


@given(st.integers(1, 8), st.integers(1, 2000))
def test_the_memory_in_a_name_is_the_nearest_whole_number(eighths: int, gib: int) -> None:
    exact = eighths * gib / 8
    assert exact - 0.5 < memory_in_name(eighths, gib) <= exact + 0.5


def test_placements_lie_on_the_card_and_counts_are_no_more_than_places() -> None:
    for model in models():
        for profile in model.profiles:
            assert profile.starts == tuple(sorted(set(profile.starts)))
            assert all(start % profile.size == 0 and start + profile.size <= model.slices for start in profile.starts)
            assert 1 <= profile.max_count <= len(profile.starts)


def test_every_record_is_complete_and_every_name_is_its_own() -> None:
    names = [model.name for model in models()]
    assert len(set(names)) == len(names)
    for model in models():
        assert re.fullmatch(r"[A-Za-z0-9.-]+", model.name)
        assert model.sources
        assert all(re.fullmatch(r"[0-9a-f]{4}", pci_id) for pci_id in model.pci_ids)
        assert model.confirmed or model.notes
        assert find(model.name) is model
        assert len({p.name for p in model.profiles}) == len(model.profiles)


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("A100-SXM4-80GB", "A100-SXM4-80GB"),
        ("NVIDIA A100-SXM4-80GB", "A100-SXM4-80GB"),
        ("nvidia_a100-sxm4-80gb", "A100-SXM4-80GB"),
        ("NVIDIA-A100-SXM4-80GB", "A100-SXM4-80GB"),
        ("A100 80GB PCIe", "A100-80GB-PCIe"),
        ("A100-PCIE-80GB", "A100-80GB-PCIe"),
        ("a100-40gb", "A100-SXM4-40GB"),
        ("H100-80GB", "H100-80GB-HBM3"),
        ("NVIDIA H100 80GB HBM3", "H100-80GB-HBM3"),
        ("  h200 ", "H200"),
        ("Tesla V100-SXM2-32GB", "V100-SXM2-32GB"),
        ("NVIDIA Tesla V100-SXM2-32GB", "V100-SXM2-32GB"),
        ("v100-32gb", "V100-SXM2-32GB"),
        ("GeForce RTX 3090", "GeForce-RTX-3090"),
        ("rtx3090", "GeForce-RTX-3090"),
        ("4090", "GeForce-RTX-4090"),
        ("RTX 6000 Ada", "RTX-6000-Ada-Generation"),
        ("B300", "B300-SXM6-AC"),
        ("GB200", "GB200"),
        ("RTX PRO 6000 Blackwell", "RTX-PRO-6000-Blackwell-Server-Edition"),
        ("0x20B210DE", "A100-SXM4-80GB"),
        ("20B2", "A100-SXM4-80GB"),
        ("0x20b2", "A100-SXM4-80GB"),
        ("20b2:10de", "A100-SXM4-80GB"),
        ("10de:20b2", "A100-SXM4-80GB"),
        ("10DE:2BB5", "RTX-PRO-6000-Blackwell-Server-Edition"),
        ("20B1", "A100-PCIE-40GB"),
    ],
)
def test_a_model_is_found_by(word: str, name: str) -> None:
    found = find(word)
    assert not isinstance(found, NotFound), str(found)
    assert found.name == name


@pytest.mark.parametrize(
    ("word", "some"),
    [
        ("A100", ("A100-SXM4-40GB", "A100-SXM4-80GB")),
        ("h100", ("H100-80GB-HBM3", "H100-NVL")),
        ("NVIDIA H100", ("H100-SXM5-94GB", "H100-80GB-HBM3")),
        ("A100-SXM4", ("A100-SXM4-40GB", "A100-SXM4-80GB")),
        ("V100", ("V100-SXM2-16GB", "V100-SXM2-32GB")),
        ("GH200", ("GH200-480GB", "GH200-144G-HBM3e")),
        ("2342", ("GH200-480GB", "GH200-120GB")),
        ("25b6", ("A2", "A16")),
    ],
)
def test_an_ambiguous_word_is_refused_with_what_it_may_mean(word: str, some: tuple[str, ...]) -> None:
    found = find(word)
    assert isinstance(found, NotFound)
    assert found.ambiguous
    assert set(some) <= set(found.candidates)
    assert all(name in str(found) for name in (word, *some))


@pytest.mark.parametrize(
    ("word", "nearest"),
    [
        ("H100-80GB-HMB3", "H100-80GB-HBM3"),
        ("A100-SXM-80", "A100-SXM4-80GB"),
        ("LS40", "L40S"),
        ("", None),
        ("NVIDIA", None),
        ("MI300X", None),
        ("10de", None),
        ("0x20B21002", None),
        ("dead:beef", None),
    ],
)
def test_an_unknown_word_names_the_nearest_models(word: str, nearest: str | None) -> None:
    found = find(word)
    assert isinstance(found, NotFound)
    assert not found.ambiguous
    assert repr(word) in str(found)
    assert "mig profiles" in found.hint
    if nearest:
        assert nearest in found.candidates
        assert nearest in found.hint


@given(st.text(max_size=40))
def test_any_text_is_answered(word: str) -> None:
    found = find(word)
    assert isinstance(found, NotFound) or found in models()


@pytest.mark.parametrize(
    ("driver_name", "mib", "name"),
    [
        ("NVIDIA A100-SXM4-80GB", 81920, "A100-SXM4-80GB"),
        ("NVIDIA GB200", 189471, "GB200"),
        ("NVIDIA GB200", 193000, "GB200-189GB"),
        ("NVIDIA H100", 95830, "H100-SXM5-94GB"),
        ("NVIDIA H100 80GB HBM3", 81559, "H100-80GB-HBM3"),
        ("Tesla V100-SXM2-32GB", 32510, "V100-SXM2-32GB"),
        ("NVIDIA L40S", 46068, "L40S"),
    ],
)
def test_a_card_that_is_there_is_told_by_name_and_memory(driver_name: str, mib: int, name: str) -> None:
    found = identify(driver_name, mib * 2**20)
    assert not isinstance(found, NotFound), str(found)
    assert found.name == name


def test_a_card_of_another_memory_is_not_taken_for_one_we_know() -> None:
    found = identify("NVIDIA H100", 97871 * 2**20)
    assert isinstance(found, NotFound)
    assert found.candidates == ("H100-SXM5-94GB",)


@pytest.mark.parametrize("name", ["B200", "GB200", "B300", "GB300", "GH200-480GB", "RTX-PRO-5000", "H200"])
def test_unconfirmed_models_say_so(name: str) -> None:
    model = find(name)
    assert not isinstance(model, NotFound)
    assert model.name in (unconfirmed(model) or "")
    assert not any(profile.confirmed for profile in model.profiles)


@pytest.mark.parametrize("name", ["A100-SXM4-40GB", "A100-SXM4-80GB", "H100-80GB-HBM3", "H100-NVL", "A30", "T4"])
def test_confirmed_models_have_nothing_to_say(name: str) -> None:
    model = find(name)
    assert not isinstance(model, NotFound)
    assert unconfirmed(model, [p.name for p in model.profiles]) is None


def test_mixed_attributes_are_unconfirmed_only_where_media_engines_are_counted() -> None:
    rtx = find("RTX-PRO-6000")
    assert not isinstance(rtx, NotFound)
    assert unconfirmed(rtx, ["1g.24gb"]) is None
    assert unconfirmed(rtx, ["1g.24gb+gfx"]) is None
    assert "+gfx" in (unconfirmed(rtx, ["1g.24gb+gfx", "1g.24gb-me"]) or "")


def test_importing_the_catalogue_reads_nothing() -> None:
    code = (
        "import hybridgpu.model.catalogue as c, hybridgpu.model.geometry, hybridgpu.model.naming\n"
        "assert c.models.cache_info().currsize == 0\n"
        "c.models()\n"
        "assert c.models.cache_info().currsize == 1\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


RTX_6000 = {"Quadro-RTX-6000", "RTX-6000-Ada-Generation", "RTX-PRO-6000-Blackwell-Server-Edition"}


@pytest.mark.parametrize("word", ["RTX 6000", "RTX6000", "nvidia rtx-6000"])
def test_a_part_of_several_names_may_mean_any_of_them(word: str) -> None:
    found = find(word)
    assert isinstance(found, NotFound) and not found.ambiguous
    assert set(found.candidates) > RTX_6000 and "RTX-A6000" not in found.candidates
    assert "may mean any of" in str(found) and "Quadro-RTX-6000" in str(found)


@pytest.mark.parametrize(
    ("word", "name"),
    [("HGX B200", "B200"), ("NVIDIA DGX H100", "H100-80GB-HBM3"), ("DGX-H200", "H200"), ("hgx_b300", "B300-SXM6-AC")],
)
def test_a_system_of_nvidia_is_known_by_its_cards(word: str, name: str) -> None:
    found = find(word)
    assert not isinstance(found, NotFound) and found.name == name


def test_a_system_of_two_kinds_of_card_is_ambiguous() -> None:
    found = find("DGX A100")
    assert isinstance(found, NotFound) and found.candidates == ("A100-SXM4-40GB", "A100-SXM4-80GB")


@pytest.mark.parametrize("word", ["RTX", "GeForce", "", "NVIDIA"])
def test_a_part_of_too_many_names_is_unknown(word: str) -> None:
    found = find(word)
    assert isinstance(found, NotFound) and not found.partial and len(found.candidates) <= 3
