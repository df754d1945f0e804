"""The first line of every file hybridgpu writes: it says that the file is ours, and whether anybody edited it since.

The stamp holds the SHA-256 of everything below it, and the id of the set of files it was written with, so that a set
torn by a crash can be seen. It is not a signature: whoever can write the file can write the stamp.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from enum import Enum

_COMMENT = "# Written by hybridgpu render; edit the inventory instead. sha256={digest} set={group}\n"
_JSON = '{{"written_by": "hybridgpu render", "sha256": "{digest}", "set": "{group}",\n'
_STAMP = re.compile(rb'hybridgpu render.*?sha256(?:=|": ")([0-9a-f]{64})"?,? (?:set=|"set": ")([0-9a-f]{10}|-)')


class Ownership(Enum):
    """Whose a file is."""

    OURS = "ours"
    EDITED = "edited since hybridgpu wrote it"
    FOREIGN = "not written by hybridgpu"


def stamp(name: str, body: bytes, group: str = "-") -> bytes:
    """`body` below the stamp that suits the file's name. The body of a JSON file lacks its opening brace."""
    line = _JSON if name.endswith(".json") else _COMMENT
    return line.format(digest=hashlib.sha256(body).hexdigest(), group=group).encode() + body


def group_id(bodies: Mapping[str, bytes]) -> str:
    """The id of a set of files: ten hex digits over their names and contents."""
    digest = hashlib.sha256()
    for name in sorted(bodies):
        digest.update(name.encode() + b"\0" + hashlib.sha256(bodies[name]).digest())
    return digest.hexdigest()[:10]


def ownership(content: bytes) -> Ownership:
    """Whether `content` carries a stamp, and whether it is still what was stamped."""
    first, _, body = content.partition(b"\n")
    found = _STAMP.search(first)
    if not found:
        return Ownership.FOREIGN
    intact = hashlib.sha256(body).hexdigest().encode() == found[1]
    return Ownership.OURS if intact else Ownership.EDITED


def without_stamp(content: bytes) -> bytes:
    """The content below the stamp, or all of it where there is none."""
    first, newline, body = content.partition(b"\n")
    return body if newline and _STAMP.search(first) else content
