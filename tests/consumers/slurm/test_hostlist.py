"""Host lists keep their order and their doubles, as Slurm's do."""

from __future__ import annotations

import pytest

from hybridgpu.consumers.slurm.hostlist import BadHostlist, expand

LISTS = {
    "n1": ["n1"],
    "n1,n2": ["n1", "n2"],
    "n[1-3]": ["n1", "n2", "n3"],
    "n[08-11]": ["n08", "n09", "n10", "n11"],
    "n[3,1]": ["n3", "n1"],
    "n1,n1": ["n1", "n1"],
    "n[1-2],m[5,7-8]": ["n1", "n2", "m5", "m7", "m8"],
    "a[1-2]x[3-4]": ["a1x3", "a1x4", "a2x3", "a2x4"],
    "n[1-2]-ib": ["n1-ib", "n2-ib"],
    "/dev/nvidia[0-1],/dev/nvidia-caps/nvidia-cap[3,4]": [
        *("/dev/nvidia0", "/dev/nvidia1", "/dev/nvidia-caps/nvidia-cap3", "/dev/nvidia-caps/nvidia-cap4"),
    ],
    "n1, n2\tn3": ["n1", "n2", "n3"],
    "n18446744073709551615": ["n18446744073709551615"],
    "n[18446744073709551613-18446744073709551614]": ["n18446744073709551613", "n18446744073709551614"],
    "n00000000000000000000000001,n99999999999999999999x": ["n00000000000000000000000001", "n99999999999999999999x"],
    "": [],
    ",,n1,": ["n1"],
}
BAD = {
    "n[1-3": "never closed",
    "n[3-1]": "backwards",
    "n[a-b]": "not a range",
    "n[1--2]": "not a range",
    "n[]": "''",
    "n[0-65536]": "too long",
    "a[1-300]b[1-300]c[1]": "multiply",
    "a[1-65536]b[1-17]": "multiply",
    "n[18446744073709551614-18446744073709551615]": "64 bits",
    "n18446744073709551616": "64 bits",
    f"n[1-{'9' * 5000}]": "64 bits",
    f"n{'9' * 5000}": "64 bits",
    "[" * 100_000: "never closed",
    f"n[{'0' * 5000}1-2]": "digits",
    f"n[{','.join(['1-65536'] * 100_000)}]": "more than",
    ",".join(["n[1-65536]"] * 10_000): "more than",
}


@pytest.mark.parametrize("text", LISTS)
def test_a_list_is_expanded_in_the_order_written(text: str) -> None:
    assert list(expand(text)) == LISTS[text]


@pytest.mark.parametrize("text", BAD)
def test_a_bad_list_says_what_is_wrong(text: str) -> None:
    with pytest.raises(BadHostlist, match=BAD[text]):
        expand(text)


def test_text_behind_the_bracket_is_for_releases_that_take_it() -> None:
    with pytest.raises(BadHostlist, match="after the last"):
        expand("n[1-2]-ib", suffix=False)
