"""A file that is not there, and the one that was probably meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path


def no_such(path: Path, *, what: str = "file") -> UsageError:
    """Return the error for a missing path; names a file beside it whose name is much alike.

    Args:
        path: Where nothing is.
        what: What was looked for, for the sentence.
    """
    if not path.parent.is_dir():
        return UsageError(f"there is no {what} {path}", why=f"there is no folder {path.parent}")
    return UsageError(f"there is no {what} {path}", remedy=meant(path, otherwise="check the path"))


def meant(path: Path, *, cutoff: float = 0.6, ending: str = "", otherwise: str = "") -> str:
    """Ask whether a file beside a path was meant.

    Args:
        path: Where nothing is.
        cutoff: How much alike the names have to be, from 0 to 1.
        ending: Of those that count.
        otherwise: What is said where there is none.
    """
    import difflib  # takes long, and most paths are right

    try:
        known = [one.name for one in path.parent.iterdir() if one.name.endswith(ending)]
    except OSError:
        known = []
    near = difflib.get_close_matches(path.name, known, n=1, cutoff=cutoff)
    return f"did you mean {path.with_name(near[0])}?" if near else otherwise
