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
    import difflib  # takes long, and most paths are right

    try:
        siblings = [one.name for one in path.parent.iterdir()]
    except OSError:
        return UsageError(f"there is no {what} {path}", why=f"there is no folder {path.parent}")
    near = difflib.get_close_matches(path.name, siblings, n=1)
    remedy = f"did you mean {path.with_name(near[0])}?" if near else "check the path"
    return UsageError(f"there is no {what} {path}", remedy=remedy)
