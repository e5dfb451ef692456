"""Write the answer of a tuning: the recipe, and all trials as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.clock import now
from tfdyno.core.base.codec import to_json, write_atomic
from tfdyno.core.recipe.recipe_file import FILE_NAME, to_toml
from tfdyno.words.base.language import ENGLISH, answering
from tfdyno.words.train.tune import backend_option, batch_warning, headline, losses_warning
from tfdyno.words.train.tune_document import tune_document

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.train.tuning import Tuning

TUNING_FILE = "tuning.json"


def written(folder: Path, told: Tuning) -> tuple[Path, ...]:
    """Write what is known, in English; each file as a whole.

    The recipe is written once it is proven, or stays as it started.

    Args:
        folder: Of the study.
        told: What came out.

    Raises:
        UsageError: The folder cannot be written.
    """
    with answering(ENGLISH):
        return _written(folder, told)


def _written(folder: Path, told: Tuning) -> tuple[Path, ...]:
    document = tune_document(told, folder=str(folder), made_at=now())
    files = [folder / TUNING_FILE]
    write_atomic(files[0], to_json(document, indent=2) + b"\n")
    if told.ended != "stopped" and not told.planned_for and told.best is not None:
        made_by = f"Made by tfdyno tune {told.reference}{backend_option(told)}."
        head = filter(None, (made_by, headline(told), batch_warning(told), losses_warning(told)))
        write_atomic(folder / FILE_NAME, to_toml(told.recipe, head=head).encode())
        files.append(folder / FILE_NAME)
    return tuple(files)
