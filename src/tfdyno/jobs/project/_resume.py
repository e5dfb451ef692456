"""Whether what a stopped run of a step left is of use to its command, and whether one has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.errors import TfdynoError
from tfdyno.core.project.step_outputs import GOES_ON, place_of
from tfdyno.core.train.training import NAN_LOSS, NAN_WEIGHTS
from tfdyno.store import results, tuning_study
from tfdyno.store.run_folder import RunFolder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tfdyno.core.project.project import ProjectStep
    from tfdyno.core.project.step_command import CommandShape

_TRAININGS = ("train", "launch")
_AT_ITS_END = ("", NAN_LOSS, NAN_WEIGHTS)
"""Why a training ended that has nothing left to do."""


def goes_on(step: ProjectStep, shape: CommandShape | None, part: Path) -> bool:
    """Return whether the command goes on with what is there, which is looked at and not tried.

    Args:
        step: The step.
        shape: Of its command; None: a script of the user's.
        part: Where it was begun.
    """
    if shape is None:
        return False
    if step.command in GOES_ON:
        return True
    place = place_of(shape, step.options)
    return bool(place) and _MARKS[step.command](part / place)


def ended_early(step: ProjectStep, answer: object) -> str:
    """Say why a training ended before its end, though with exit code 0; empty: it did not."""
    if step.command not in _TRAININGS or not isinstance(answer, dict):
        return ""
    why = str(answer.get("stopped") or "")
    return "" if why in _AT_ITS_END else why


def _holds_run(folder: Path) -> bool:
    return RunFolder(folder).holds_run


def _holds_bench(folder: Path) -> bool:
    try:
        return results.Results(folder=folder).holds_unfinished()
    except TfdynoError:  # damaged: the command says how
        return True


def _holds_study(folder: Path) -> bool:
    return any((folder / name).exists() for name in (tuning_study.FILE, results.FILE))


def _holds_anything(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())


_MARKS: dict[str, Callable[[Path], bool]] = {
    "train": _holds_run,
    "bench": _holds_bench,
    "tune": _holds_study,
    "diagnose": _holds_anything,
}
"""Whether the place of a command holds what ``--resume`` takes. Diagnose takes any."""
