"""Whether code may be loaded from a folder: only where nobody but its owner can put any."""

from __future__ import annotations

import grp
import os
import pwd
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

ROOT = 0


def refusal(folder: Path) -> str:
    """Return why code in ``folder`` is not to be run; empty where it may be.

    The folder and all above it, with links followed, have to belong to this user or to root, and
    must not be open to others' writing. Above the folder a sticky one, as ``/tmp``, is no
    danger: others cannot rename what is not theirs.

    Args:
        folder: Need not be there; what is above it is judged then.
    """
    own, real = os.geteuid(), folder.resolve()
    for place in (real, *real.parents):
        try:
            seen = place.stat()
        except FileNotFoundError:
            continue
        except OSError as error:
            return f"{place} cannot be looked at ({error.strerror})"
        if seen.st_uid not in (own, ROOT) or (place == real and seen.st_uid != own):
            return f"{place} belongs to another user"
        sticky = place != real and seen.st_mode & stat.S_ISVTX
        if not sticky and is_open(seen):
            return f"others can write to {place} (mode {stat.S_IMODE(seen.st_mode):o})"
    return ""


def is_open(seen: os.stat_result) -> bool:
    """Return whether more than the owner can write; a group of the owner's own is the owner."""
    if seen.st_mode & stat.S_IWOTH:
        return True
    return bool(seen.st_mode & stat.S_IWGRP) and not _is_own_group(seen.st_gid, seen.st_uid)


def _is_own_group(group: int, user: int) -> bool:
    """Return whether it is the group that bears the user's name and has no other member."""
    try:
        found, name = grp.getgrgid(group), pwd.getpwuid(user).pw_name
    except KeyError:
        return False
    return found.gr_name == name and set(found.gr_mem) <= {name}
