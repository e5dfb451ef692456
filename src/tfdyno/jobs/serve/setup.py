"""Make the environment that models are served in, and find it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.catalog.offers import data_dir
from tfdyno.core.base.errors import TfdynoError, UsageError
from tfdyno.engines.serving_environment import (
    SIZE_BYTES,
    ServingEnvironment,
    is_for_gpu,
    make,
    python_of,
)
from tfdyno.jobs.child.worker import silent
from tfdyno.jobs.holders.found_cards import found_cards

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True, kw_only=True)
class NeededSetup:
    """An environment that has to be made before anything is served."""

    folder: Path
    why: str
    """What is wrong with the folder, as a sentence without its end."""
    gpu: bool
    """Whether it gets CUDA libraries: as it had, else where this machine has a card."""
    size_bytes: int = SIZE_BYTES
    """The size on disk, without CUDA libraries."""


def default_folder() -> Path:
    """Return ``$TFDYNO_SERVING``, else ``serving`` in the user's data folder."""
    named = os.environ.get("TFDYNO_SERVING")
    return Path(named).expanduser() if named else data_dir() / "serving"


def serving_python() -> str:
    """Return the interpreter that models are served by; raises ``UsageError``: there is none."""
    return str(python_of(default_folder()))


def needed_setup() -> NeededSetup | None:
    """Return what has to be made before anything can be served; None: it is there."""
    folder = default_folder()
    try:
        python_of(folder)
    except UsageError as error:
        had = is_for_gpu(folder)
        gpu = _has_card() if had is None else had
        return NeededSetup(folder=folder, why=error.what, gpu=gpu)
    return None


def _has_card() -> bool:
    """Return whether there is an NVIDIA card that this user sees."""
    try:
        return bool(found_cards())
    except TfdynoError:  # a slice of one, or one that the catalogue does not have
        return True


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
