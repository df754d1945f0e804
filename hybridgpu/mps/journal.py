"""One line for each thing a hook did, to syslog and to a file. A hook never fails, waits or ends for its sake.

A line holds what users can choose only after it was made harmless: one line, printable, of bounded length.
"""

from __future__ import annotations

import _socket
import os
import stat
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hybridgpu.mps.settings import Settings

SYSLOG = "/dev/log"
"""syslog's socket. syslog(3) would wait while nobody reads from it."""

_NAME = "hybridgpu-hook"
_DAEMON_FACILITY, _INFO, _WARNING = 3 << 3, 6, 4
_LONGEST_VALUE, _LONGEST_LINE = 500, 2000
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def note(settings: Settings, hook: str, **fields: object) -> None:
    """Log what a hook did: `prolog job=12 uid=1001 outcome=started`, with what is None left out.

    With a field `why` it is a warning to syslog. Where one of the two places can't take it, the other still gets it.
    """
    said = " ".join([hook, *(f"{name}={_value(value)}" for name, value in fields.items() if value is not None)])
    line = f"{_NAME}[{os.getpid()}]: {said}"[:_LONGEST_LINE]
    _to_syslog(_WARNING if fields.get("why") else _INFO, line)
    _to_file(settings.log, f"{time.strftime('%Y-%m-%dT%H:%M:%S%z')} {line}\n")


def trouble(settings: Settings) -> str | None:
    """Why the file gets no line, where it would not; None where it does. Changes nothing: hooks go on without it."""
    folder = os.path.dirname(settings.log)
    try:
        seen = os.stat(folder, follow_symlinks=False)
    except FileNotFoundError:
        above = os.path.dirname(folder)
        return None if os.path.isdir(above) else f"{settings.log} (LOG) gets no line: there is no folder {above}"
    except OSError as error:
        return f"{settings.log} (LOG) gets no line: {folder}: {error.strerror}"
    if not stat.S_ISDIR(seen.st_mode):
        return f"{settings.log} (LOG) gets no line: {folder} is no folder"
    if not _ours(seen):
        bits = stat.S_IMODE(seen.st_mode)
        return (
            f"{settings.log} (LOG) gets no line: {folder} is user {seen.st_uid}'s with mode {bits:04o}, and must be "
            "root's, for root alone to write"
        )
    try:
        if stat.S_ISREG(os.stat(settings.log, follow_symlinks=False).st_mode):
            return None
    except FileNotFoundError:
        return None
    return f"{settings.log} (LOG) gets no line: it is no file"


def _ours(folder: os.stat_result) -> bool:
    """Whether nobody else can put a link in a file's place."""
    return folder.st_uid == os.geteuid() and not folder.st_mode & 0o022


def _value(value: object) -> str:
    """A value as it stands in a line: in quotes where it is not one plain word."""
    text = f"{value:.3f}" if isinstance(value, float) else str(value)[:_LONGEST_VALUE]
    text = "".join(c if c.isascii() and c.isprintable() else "?" for c in text)
    if text and not any(c in ' "\\=' for c in text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _to_syslog(severity: int, line: str) -> None:
    """Send it without waiting, in the old form that every syslog reads (RFC 3164, with the local time)."""
    message = f"<{_DAEMON_FACILITY | severity}>{time.strftime('%b %e %H:%M:%S')} {line}".encode()
    for kind, end in ((_socket.SOCK_DGRAM, b""), (_socket.SOCK_STREAM, b"\0")):
        try:
            connection = _socket.socket(_socket.AF_UNIX, kind)
            try:
                connection.setblocking(False)
                connection.connect(SYSLOG)
                connection.send(message + end)
                return
            finally:
                connection.close()
        except OSError:
            continue


def _to_file(path: str, line: str) -> None:
    """Append it in one write. The folder is root's, and made where it is missing; the file is a file, or left alone."""
    folder, name = os.path.split(path)
    try:
        try:
            os.mkdir(folder, 0o755)
        except FileExistsError:
            pass
        above = os.open(folder, _FOLDER)
        try:
            if not _ours(os.fstat(above)):
                return
            descriptor = os.open(name, _FILE, 0o640, dir_fd=above)
        finally:
            os.close(above)
        try:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)
    except (OSError, ValueError):
        return
