from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybridgpu.inventory.indices import IndexSetError, read_indices, shown_indices


@pytest.mark.parametrize(("text", "indices"), [("0", [0]), ("0-3,6", [0, 1, 2, 3, 6]), ("7,0", [0, 7]), ("3-3", [3])])
def test_sets_are_read(text: str, indices: list[int]) -> None:
    assert list(read_indices(text, 8)) == indices


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("4-8", ["4-8", "GPU 8", "0-7"]),
        ("0-99999999999", ["numbers and ranges"]),
        ("0-999999", ["0-7"]),
        ("3-1", ["backwards", "1-3"]),
        ("0-3,2", ["GPU 2 twice"]),
        ("", ["numbers and ranges"]),
        ("0,", ["numbers and ranges"]),
        ("-1", ["numbers and ranges"]),
        ("\N{ARABIC-INDIC DIGIT ONE}", ["numbers and ranges"]),
    ],
)
def test_what_is_no_set_says_why_and_what_is_allowed(text: str, words: list[str]) -> None:
    with pytest.raises(IndexSetError) as caught:
        read_indices(text, 8)
    assert all(word in str(caught.value) for word in words)


@given(st.sets(st.integers(0, 15), min_size=1))
def test_what_is_shown_is_read_back(indices: set[int]) -> None:
    assert set(read_indices(shown_indices(indices), 16)) == indices
