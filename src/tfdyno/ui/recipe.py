"""The settings of the page as a recipe: a file, and the commands that write it and train by it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.codec import to_json
from tfdyno.core.recipe.composition import check_composition
from tfdyno.core.recipe.recipe import Recipe, diff, from_settings
from tfdyno.core.recipe.recipe_file import FILE_NAME, to_toml
from tfdyno.ui import settings

if TYPE_CHECKING:
    from tfdyno.core.choose.workload import Workload
    from tfdyno.ui.settings import Settings

_LEFT_OUT = ("gpu", "samples", "usd_per_h", "offers")
"""Settings of the page that no recipe has: it says how to train, not where or at what price."""


def recipe_of(asked: Settings) -> Recipe:
    """Return what a recipe can hold of the settings.

    Raises:
        UsageError: No run can have them together.
    """
    several = {"strategy": "mirrored", "devices": asked.count} if asked.count > 1 else {}
    plain = {
        "precision": asked.precision, "execution": asked.execution, "batch_size": asked.batch_size,
    }  # fmt: skip
    recipe = from_settings({name: value for name, value in plain.items() if value} | several)
    check_composition(recipe)
    return recipe


def recipe_answer(asked: Settings, given: Workload | None) -> bytes:
    """Answer with the recipe's text, the commands that write it and train by it, and the rest.

    Raises:
        UsageError: The workload is not one of the page, or no run can have the settings together.
    """
    workload = settings.workload_of(asked, given)
    recipe = recipe_of(asked)
    changes = [f"{name}={value}" for name, (_, value) in diff(Recipe(), recipe).items()]
    written = [word for change in changes for word in ("--set", change)]
    plain = settings.Settings(workload=asked.workload, gpu="", offers="every")
    left = [one for one in _LEFT_OUT if getattr(asked, one) != getattr(plain, one)]
    return to_json(
        {
            "file": FILE_NAME,
            "toml": to_toml(recipe),
            "write": settings.command_line(["tfdyno", "recipe", "show", *written, "-o", FILE_NAME]),
            "train": settings.command_line(settings.train_words(asked, workload, FILE_NAME)),
            "left_out": left,
        }
    )
