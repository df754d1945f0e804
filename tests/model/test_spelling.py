"""The nearest right word."""

from __future__ import annotations

import pytest

from hybridgpu.model.spelling import is_slip, nearest, nearest_words


@pytest.mark.parametrize(
    ("word", "words", "expected"),
    [
        ("relicas", ["replicas", "layout"], "replicas"),
        ("REPLICAS", ["replicas"], "replicas"),
        ("autodetect", ["autoDetect", "accounting"], "autoDetect"),
        ("zzz", ["replicas"], None),
        ("", ["replicas"], None),
        ("x", [], None),
        ("Cores", ["Gres", "CoreSpecCount", "CoresPerSocket"], "CoresPerSocket"),
        ("Memory", ["RealMemory", "MemSpecLimit"], "RealMemory"),
        ("Thread", ["ThreadsPerCore", "Reason"], "ThreadsPerCore"),
        ("of", ["official"], None),
    ],
)
def test_nearest(word: str, words: list[str], expected: str | None) -> None:
    assert nearest(word, words) == expected


def test_words_come_best_first_and_the_order_given_does_not_matter() -> None:
    words = ["mig", "mps", "mip", "exclusive"]
    assert nearest_words("mig", words, 3) == nearest_words("mig", reversed(words), 3)
    assert nearest_words("mig", words, 3)[0] == "mig"
    assert len(nearest_words("mig", words, 1)) == 1


def test_a_slip_of_the_pen_is_told_from_another_word() -> None:
    assert is_slip("relicas", "replicas") and is_slip("REALMEM", "RealMemory") and is_slip("mgi", "mig")
    assert not is_slip("Cores", "CoresPerSocket") and not is_slip("cluster", "class")
