"""Make the environment that models are served in, and find it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.catalog.offers import data_dir
from tfdyno.engines.serving_environment import ServingEnvironment, make, python_of
from tfdyno.jobs._worker import silent

if TYPE_CHECKING:
    from collections.abc import Callable


def default_folder() -> Path:
    """``$TFDYNO_SERVING``, else ``serving`` in the user's data folder."""
    named = os.environ.get("TFDYNO_SERVING")
    return Path(named).expanduser() if named else data_dir() / "serving"


def serving_python() -> str:
    """The interpreter that models are served by; raises ``UsageError`` where there is none."""
    return str(python_of(default_folder()))


def setup(
    *,
    folder: Path | None = None,
    python: str = "",
    gpu: bool = False,
    progress: Callable[[str], None] = silent,
) -> ServingEnvironment:
    """Make the serving environment, or find it as it should be.

    Args:
        folder: Where; None: ``default_folder``.
        python: The interpreter it is made from; empty: a fitting one.
        gpu: With the CUDA libraries of TensorFlow.
        progress: Called with every stage.

    Raises:
        UsageError: No fitting interpreter, or the folder holds something else.
        ToolError: A package cannot be had, or the disk is full.
    """
    return make(folder or default_folder(), python=python, gpu=gpu, progress=progress)
