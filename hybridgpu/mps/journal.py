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
            seen = os.fstat(above)
            if seen.st_uid != os.geteuid() or seen.st_mode & 0o022:
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
