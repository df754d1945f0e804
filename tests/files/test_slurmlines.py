"""Slurm's line language, case by case, and whatever is written in it can be read back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybridgpu.files.slurmlines import read

READ = {
    "one pair": ("A=1", [[("A", "1")]]),
    "blanks around the equals sign": ("A  = 1 B= 2", [[("A", "1"), ("B", "2")]]),
    "quotes keep blanks": ('A="1 2"  B=3', [[("A", "1 2"), ("B", "3")]]),
    "an empty quoted value": ('Gres=""', [[("Gres", "")]]),
    "a quote that is never closed is part of the value": ('A="x B=1', [[("A", '"x'), ("B", "1")]]),
    "text behind a quote makes it a plain value": ('A="x"y', [[("A", '"x"y')]]),
    "a comment": ("A=1 # B=2", [[("A", "1")]]),
    "a comment touches": ("A=1# B=2", [[("A", "1")]]),
    "quotes do not protect from comments": ('A="1#2"', [[("A", '"1')]]),
    "an escaped hash": (r"A=1\#2", [[("A", "1#2")]]),
    "a continued line": ("A=1 \\\nB=2", [[("A", "1"), ("B", "2")]]),
    "blanks behind the continuation mark": ("A=1 \\  \nB=2", [[("A", "1"), ("B", "2")]]),
    "a continuation mark before a comment": ("A=1 \\ # more\nB=2", [[("A", "1"), ("B", "2")]]),
    "a continuation mark in a comment is none": ("A=1 # \\\nB=2", [[("A", "1")], [("B", "2")]]),
    "two backslashes are no continuation mark": ("A=1\\\\\nB=2", [[("A", "1\\")], [("B", "2")]]),
    "a continuation mark on the last line": ("A=1 \\", [[("A", "1")]]),
    "words join across lines": ("A=on\\\ne", [[("A", "one")]]),
    "carriage returns": ("A=1\r\nB=2\r\n", [[("A", "1")], [("B", "2")]]),
    "an operator": ("A+=1", [[("A", "1")]]),
    "blank lines and comments": ("\n   \n# only\n", []),
    "an equals sign in the value": ("A=b=c", [[("A", "b=c")]]),
}


@pytest.mark.parametrize("name", READ)
def test_lines_are_read_as_slurm_reads_them(name: str) -> None:
    text, lines = READ[name]
    found = read("f", {"f": text}.__getitem__)
    assert [[(pair.key, pair.value) for pair in line.pairs] for line in found.lines] == lines
    assert [line.rest for line in found.lines] == [""] * len(lines)


REST = {
    "a word behind pairs": ("A=1 word B=2", "word B=2", 5),
    "nothing but a word": ("  word", "word", 3),
    "a key without a value": ("A=1 B=", "B=", 5),
    "an Include that is set in": ("  Include x", "Include x", 3),
    "text behind an Include": ("Include g more", "more", 11),
}


@pytest.mark.parametrize("name", REST)
def test_what_is_no_pair_is_handed_on_with_its_place(name: str) -> None:
    text, rest, column = REST[name]
    line = read("f", {"f": text, "g": ""}.__getitem__).lines[0]
    assert (line.rest, line.rest_place.line, line.rest_place.column) == (rest, 1, column)


def test_every_pair_knows_its_place_across_continued_lines_and_escapes() -> None:
    text = "# head\n  A=1 B=2 \\\n   C=3\n" + r"D=\#x E=1" + "\n"
    lines = read("dir/f", {"dir/f": text}.__getitem__).lines
    places = [[(pair.key, pair.place.line, pair.place.column) for pair in line.pairs] for line in lines]
    assert places == [[("A", 2, 3), ("B", 2, 7), ("C", 3, 4)], [("D", 4, 1), ("E", 4, 7)]]
    assert str(lines[0].place) == "dir/f:2:3"


def test_the_last_of_two_equal_keys_holds_in_any_case() -> None:
    line = read("f", {"f": "Name=gpu File=a FILE=b Files=c"}.__getitem__).lines[0]
    pair, other = line.get("file", "files"), line.get("files")
    assert pair is not None and other is not None
    assert (pair.value, other.value, line.get("type")) == ("b", "c", None)


def test_includes_are_followed_in_place_relative_to_the_file_that_includes() -> None:
    files = {
        "etc/slurm.conf": "ClusterName=Zoo\nA=1\ninclude sub/%c.conf\nB=2\nINCLUDE /abs\n",
        "etc/sub/zoo.conf": "C=3\nInclude deep.conf\n",
        "etc/sub/deep.conf": "D=4\n",
        "/abs": "E=5\n",
    }
    found = read("etc/slurm.conf", files.__getitem__)
    assert "".join(line.pairs[0].key for line in found.lines[1:]) == "ACDBE"
    assert found.files == ("etc/slurm.conf", "etc/sub/zoo.conf", "etc/sub/deep.conf", "/abs")
    assert str(found.lines[3].place) == "etc/sub/deep.conf:1:1"


def opener(path: str) -> str:
    if path == "gone":
        raise FileNotFoundError(path)
    return {"f": "Include gone\n Include x\nInclude /elsewhere\nInclude g\n", "g": "Include f"}[path]


def test_includes_that_cannot_be_followed_are_told_apart() -> None:
    found = read("f", opener)
    assert [(i.problem, i.path, i.place.line, i.place.column) for i in found.includes if i.problem] == [
        ("missing", "gone", 1, 9),
        ("not given", "/elsewhere", 3, 9),
        ("loop", "f", 1, 9),
    ]
    with pytest.raises(KeyError):
        read("no such file", opener)


keys = st.from_regex(r"[A-Za-z][A-Za-z0-9_.]{0,8}", fullmatch=True).filter(lambda key: key.lower() != "include")
plain = st.text(st.characters(codec="ascii", exclude_characters='\\#"', exclude_categories=["C", "Z"]), min_size=1)
quoted = st.text(st.characters(codec="ascii", exclude_characters='\\#"', exclude_categories=["C"]))
pairs = st.tuples(keys, plain | quoted)
gaps = st.sampled_from([" ", "  ", "\t", " \\\n", "\\\n  "])


@given(st.lists(st.lists(st.tuples(pairs, gaps), min_size=1), max_size=5))
def test_whatever_is_written_is_read_back(lines: list[list[tuple[tuple[str, str], str]]]) -> None:
    text = ""
    for line in lines:
        for (key, value), gap in line:
            bare = value and not any(c.isspace() for c in value)
            text += f"{key}={value}{gap}" if bare else f'{key}="{value}"{gap}'
        text += " # done\n"
    found = read("f", {"f": text}.__getitem__)
    assert [[(pair.key, pair.value) for pair in line.pairs] for line in found.lines] == [
        [pair for pair, _ in line] for line in lines
    ]
    written = text.split("\n")
    for seen in found.lines:
        for pair in seen.pairs:
            assert written[pair.place.line - 1][pair.place.column - 1 :].startswith(pair.key)
