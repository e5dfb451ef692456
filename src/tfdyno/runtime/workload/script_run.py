"""Run a script as ``python script.py arguments`` would, within this process."""

from __future__ import annotations

import runpy
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path


def run_as_main(script: Path, arguments: Sequence[str], *, is_enough: Callable[[], bool]) -> None:
    """Run the script to its end, with its folder first on the path and its own ``sys.argv``.

    Args:
        script: The file.
        arguments: Its words of the command line.
        is_enough: Whether all that is wanted was found when the script calls ``sys.exit``, so
            that this is only its end.

    Raises:
        SystemExit: The script calls ``sys.exit`` before that.
    """
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.resolve().parent))
    try:
        runpy.run_path(str(script), run_name="__main__")
    except SystemExit:
        if not is_enough():
            raise
