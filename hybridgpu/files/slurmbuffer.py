"""What lies in Slurm's line buffer behind an Include whose name ends the text: Slurm reads on in there.

It looks for the blank behind the name, not for the end of the text; a line without an end, or a comment that follows
without a blank, has none. The buffer has the file's size and is not cleared between lines; behind it lies other memory.
Source: S:src/common/parse_config.c _get_next_line, _parse_include_directive; slurmd -G on 22.05, 24.11, 26.05: "Parse
error", with parts of earlier lines, of the comment, or of other memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_LINE = re.compile(rb"[^\n]*\n|[^\n]+")
_NAME_LAST = re.compile(rb"include[ \t\n\v\f\r]+[^ \t\n\v\f\r\0]+\0", re.IGNORECASE)
_BLANK = re.compile(rb"[ \t\n\v\f\r]")
_UNREAD = re.compile(rb"[ \t\n\v\f\r]*[^ \t\n\v\f\r\0]")
_ESCAPE = re.compile(rb"\\(.|\Z)", re.DOTALL)
_COMMENT = re.compile(rb"(?<!\\)(?:\\\\)*#")
_CONTINUED = re.compile(rb"(?<!\\)(?:\\\\)*(\\)[ \t\n\v\f\r]*\Z")


def overruns(text: str) -> frozenset[int]:
    """The numbers (from 1) of the lines that begin an Include behind whose name Slurm finds what it cannot read."""
    return frozenset(number for number, buffer in _lines(text) if _stumbles(buffer))


def _stumbles(buffer: bytearray) -> bool:
    if not (name := _NAME_LAST.match(buffer)):
        return False
    blank = _BLANK.search(buffer, name.end())
    if blank is None:
        return True
    return _UNREAD.match(buffer, blank.start()) is not None


def _lines(text: str) -> Iterator[tuple[int, bytearray]]:
    """The buffer as it is when each line is complete: continuations joined, comments cut, escapes dropped."""
    raw = _LINE.findall(text.encode("utf-8", "surrogateescape"))
    buffer = bytearray(sum(map(len, raw)) + 1)
    at, first = 0, 1
    for number, read in enumerate(raw, 1):
        buffer[at : at + len(read) + 1] = read + b"\0"
        comment = _COMMENT.search(read)
        line = read[: comment.end() - 1] if comment else read
        buffer[at + len(line)] = 0
        if continued := _CONTINUED.search(line):
            at += continued.start(1)
            buffer[at] = 0
            if number < len(raw):
                continue
        joined = _ESCAPE.sub(rb"\1", bytes(buffer[: buffer.index(0)]))
        buffer[: len(joined) + 1] = joined + b"\0"
        yield first, buffer
        at, first = 0, number + 1
