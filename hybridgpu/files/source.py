"""Reads one text file that somebody else wrote, within limits, or says why it is not text we take.

Every reader of users' files comes through here, so that no device, pipe, folder, flood of bytes or foreign encoding
gets any further. What the text means is not known here. A file that is not there raises OSError: that is no finding.
"""

from __future__ import annotations

import codecs
import os
import re
import stat
from dataclasses import dataclass

from hybridgpu.model.finding import Finding, Place, Rule, Severity

MOST_BYTES = 4 * 2**20
"""The largest file read, in bytes: an inventory of 10,000 entries of one node each is a third of it."""

NOT_A_FILE = Rule(
    "file-not-regular",
    Severity.ERROR,
    "A folder, device, pipe or socket is not read: it may never end.",
    "Give the path of an ordinary file.",
    "POSIX stat(2)",
)
TOO_LARGE = Rule(
    "file-too-large",
    Severity.ERROR,
    "The file is larger than any that people write by hand, and is not read.",
    "Give the right file, or split this one; nodes that are alike belong in one hostlist.",
    "hybridgpu limit",
)
NOT_UTF8 = Rule(
    "file-not-utf-8",
    Severity.ERROR,
    "The file is not UTF-8 and cannot be read as text.",
    "Save it as UTF-8 (iconv -f UTF-16 -t UTF-8, or -f LATIN1).",
    "YAML 1.2 section 5.2; RFC 8259 section 8.1",
)
NOT_TEXT = Rule(
    "file-not-text",
    Severity.ERROR,
    "The file holds bytes that no text file holds.",
    "Give the right file, or remove the control character.",
    "YAML 1.2 section 5.1",
)

_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
)


@dataclass(frozen=True, slots=True)
class Source:
    """A file's text, without a byte order mark; `path` as it is to be shown."""

    path: str
    text: str


def read_source(path: str, content: bytes | None = None, most: int = MOST_BYTES) -> Source | Finding:
    """The text of the file at `path`, or of `content` where that is given, or the one reason why it is refused.

    Never blocks on a pipe and never reads more than `most` bytes. Raises OSError where the file is not there or may
    not be read.
    """
    if content is None:
        read = _read(path, most)
        if isinstance(read, Finding):
            return read
        content = read
    if len(content) > most:
        return _too_large(path, len(content), most)
    return _decode(path, content)


def position(text: str, offset: int) -> tuple[int, int]:
    """Line and column, from 1, of the character at `offset`."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def _read(path: str, most: int) -> bytes | Finding:
    mode = os.stat(path).st_mode  # before open(2), which could wake a device
    if not stat.S_ISREG(mode):
        return _not_a_file(path, mode)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return _not_a_file(path, status.st_mode)
        if status.st_size > most:
            return _too_large(path, status.st_size, most)
        return file.read(most + 1)


def _not_a_file(path: str, mode: int) -> Finding:
    kind = next((name for test, name in _KINDS if test(mode)), "no ordinary file")
    return Finding(NOT_A_FILE, Place(path, 1), f"this is {kind}; an ordinary file is read", NOT_A_FILE.fix)


def _too_large(path: str, size: int, most: int) -> Finding:
    message = f"the file has {size} bytes; at most {most} are read"
    return Finding(TOO_LARGE, Place(path, 1), message, TOO_LARGE.fix)


def _decode(path: str, content: bytes) -> Source | Finding:
    for mark, name in _MARKS:
        if content.startswith(mark):
            message = f"the file is {name} (it begins with the bytes {mark.hex(' ')}); UTF-8 is read"
            return Finding(NOT_UTF8, Place(path, 1), message, NOT_UTF8.fix)
    body = content.removeprefix(codecs.BOM_UTF8)
    if (zero := body.find(0)) >= 0:
        offset = zero + len(content) - len(body)
        message = f"a NUL byte at byte offset {offset}: this is a binary file, or text in UTF-16; UTF-8 text is read"
        return Finding(NOT_TEXT, _place(path, body[:zero]), message, NOT_TEXT.fix)
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        offset = error.start + len(content) - len(body)
        message = f"the byte 0x{body[error.start]:02x} at byte offset {offset} is not UTF-8"
        return Finding(NOT_UTF8, _place(path, body[: error.start]), message, NOT_UTF8.fix)
    if odd := _UNPRINTABLE.search(text):
        message = f"the control character U+{ord(odd[0]):04X} stands here; text with tabs and line ends is read"
        return Finding(NOT_TEXT, Place(path, *position(text, odd.start())), message, NOT_TEXT.fix)
    return Source(path, text)


def _place(path: str, before: bytes) -> Place:
    text = before.decode(errors="replace")
    return Place(path, *position(text, len(text)))
