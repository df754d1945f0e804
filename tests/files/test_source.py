from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from hybridgpu.files.source import MOST_BYTES, NOT_A_FILE, NOT_TEXT, NOT_UTF8, TOO_LARGE, Source, position, read_source
from hybridgpu.model.finding import Finding, Rule
from tests.conftest import no_hang


@pytest.mark.parametrize(
    ("content", "rule", "line", "column", "words"),
    [
        ("a: b\n".encode("utf-16"), NOT_UTF8, 1, 1, "UTF-16"),
        ("a: b\n".encode("utf-16-be"), NOT_TEXT, 1, 1, "NUL byte at byte offset 0"),
        (b"\xfe\xff\x00a", NOT_UTF8, 1, 1, "fe ff"),
        ("a".encode("utf-32"), NOT_UTF8, 1, 1, "UTF-32"),
        (b"a: 1\nb: \xe9t\xe9\n", NOT_UTF8, 2, 4, "0xe9 at byte offset 8"),
        ("\N{LATIN SMALL LETTER E WITH ACUTE}\n".encode() + b"x\xff", NOT_UTF8, 2, 2, "byte offset 4"),
        (b"\xef\xbb\xbfab\xff", NOT_UTF8, 1, 3, "byte offset 5"),
        (b"a\nbc\x00", NOT_TEXT, 2, 3, "NUL byte at byte offset 4"),
        (b"a: \x1b[31m", NOT_TEXT, 1, 4, "U+001B"),
        (b"a: \xed\xa0\x80", NOT_UTF8, 1, 4, "0xed"),
        (b"x" * (MOST_BYTES + 1), TOO_LARGE, 1, 1, str(MOST_BYTES)),
    ],
)
def test_what_is_no_text_is_refused_with_its_place(
    content: bytes, rule: Rule, line: int, column: int, words: str
) -> None:
    finding = read_source("f", content)
    assert isinstance(finding, Finding)
    assert finding.place
    assert (finding.rule, finding.place.line, finding.place.column) == (rule, line, column)
    assert words in finding.message


def test_text_is_given_without_a_byte_order_mark() -> None:
    assert read_source("f", b"\xef\xbb\xbfa: \xc3\xa9\n") == Source("f", "a: \N{LATIN SMALL LETTER E WITH ACUTE}\n")
    assert read_source("f", b"x" * MOST_BYTES) == Source("f", "x" * MOST_BYTES)


def test_no_pipe_device_or_folder_holds_the_reader(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, kind in ((tmp_path / "pipe", "pipe"), (tmp_path, "folder"), (Path("/dev/zero"), "character device")):
        with no_hang():
            finding = read_source(str(path))
        assert isinstance(finding, Finding)
        assert finding.rule is NOT_A_FILE
        assert kind in finding.message


def test_a_flood_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "flood"
    with path.open("wb") as file:
        file.truncate(100 * 2**20)
    finding = read_source(str(path))
    assert isinstance(finding, Finding)
    assert finding.rule is TOO_LARGE
    assert str(100 * 2**20) in finding.message


def test_a_file_that_lies_about_its_size_is_read_within_the_limit() -> None:
    assert stat.S_ISREG(Path("/proc/self/environ").stat().st_mode)
    assert isinstance(read_source("/proc/self/status"), Source)


def test_a_file_that_is_not_there_is_no_finding(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_source(str(tmp_path / "absent"))


@pytest.mark.parametrize(("offset", "place"), [(0, (1, 1)), (2, (1, 3)), (3, (2, 1)), (5, (2, 3))])
def test_position(offset: int, place: tuple[int, int]) -> None:
    assert position("ab\ncde", offset) == place
