"""Which tfdyno this is: its version, and the commit where it runs from a repository."""

from __future__ import annotations

import os
import re
import subprocess
from typing import TYPE_CHECKING

from tfdyno.core.base.version import PACKAGE, VERSION

if TYPE_CHECKING:
    from pathlib import Path

HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
SHOWN = 10
ASK_LIMIT_S = 2.0


def revision(package: Path | None = None) -> str:
    """Return ``0.1.0``, ``0.1.0 (1a2b3c4d5e)`` or ``0.1.0 (1a2b3c4d5e, changed)``; never raises.

    Args:
        package: Folder of the package; the one that runs when None. Only ``src/tfdyno`` of a
            repository has a commit: an installed wheel may lie in somebody else's.
    """
    package = package or PACKAGE
    if package.parent.name != "src":
        return VERSION
    root = package.parents[1]
    commit = _commit(root / ".git")
    if not commit:
        return VERSION
    changed = ", changed" if _is_changed(root, package) else ""
    return f"{VERSION} ({commit[:SHOWN]}{changed})"


def _commit(git: Path) -> str:
    """Return the commit that is checked out; empty where it cannot be told."""
    if git.is_file():  # a worktree: ``gitdir: FOLDER``
        git = git.parent / _text(git).removeprefix("gitdir:").strip()
    head = _text(git / "HEAD")
    if not head.startswith("ref:"):
        return _hash(head)
    name = head.removeprefix("ref:").strip()
    shared = git / (_text(git / "commondir") or ".")
    loose = next((found for at in (git, shared) if (found := _hash(_text(at / name)))), "")
    packed = re.search(rf"^(\S+) {re.escape(name)}$", _text(shared / "packed-refs"), re.MULTILINE)
    return loose or (_hash(packed[1]) if packed else "")


def _is_changed(root: Path, package: Path) -> bool:
    """Return whether the package differs from the commit; no where git cannot be asked."""
    command = ["git", "-C", str(root), "status", "--porcelain", "--", str(package)]
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}  # asking must not write to the index
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=ASK_LIMIT_S, check=False, env=environment
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0 and bool(done.stdout.strip())


def _hash(text: str) -> str:
    return text if HASH.fullmatch(text) else ""


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""
