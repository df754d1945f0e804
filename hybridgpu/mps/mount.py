"""A small file system for what a user may fill: a daemon's pipe and log lie in /run, which the whole node needs.

Mounted by the call itself: a hook starts no program for it. Unmounting is `folder.remove_tree`'s.
"""

from __future__ import annotations

import os

SIZE = "16m"
FILES = 1024
_NOSUID, _NODEV, _NOEXEC = 2, 4, 8
"""mount(2), linux/mount.h."""


def limit(path: str, uid: int, gid: int) -> bool:
    """Mount a tmpfs of SIZE and FILES on the user's folder at `path`, once. False where the kernel refuses.

    Then the folder is used as it is: a daemon runs in a container that may not mount, too.
    """
    if os.path.ismount(path):
        return True
    import ctypes

    mount = ctypes.CDLL(None, use_errno=True).mount
    flags = ctypes.c_ulong(_NOSUID | _NODEV | _NOEXEC)
    options = f"size={SIZE},nr_inodes={FILES},mode=0700,uid={uid},gid={gid}"
    words = [word.encode() for word in ("hybridgpu", path, "tmpfs", options)]
    return int(mount(words[0], words[1], words[2], flags, words[3])) == 0
