"""The settings of the page as a file: a recipe, or the steps of a project, and their commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.codec import to_json
from tfdyno.core.project.file import FILE
from tfdyno.core.recipe.composition import check_composition
from tfdyno.core.recipe.recipe import Recipe, diff, from_settings
from tfdyno.core.recipe.recipe_file import FILE_NAME, to_toml
from tfdyno.render.project.start import project_steps
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
    show = ["tfdyno", "recipe", "show", *_set_words(recipe), "-o", FILE_NAME]
    train = settings.train_words(asked, workload, ["--recipe", FILE_NAME])
    plain = settings.Settings(workload=asked.workload, gpu="", offers="every")
    left = [one for one in _LEFT_OUT if getattr(asked, one) != getattr(plain, one)]
    return _file(FILE_NAME, to_toml(recipe), left, write=show, train=train)


def project_answer(asked: Settings, given: Workload | None) -> bytes:
    """Answer with steps of a project: the step's estimate, its cost, and the training, with data.

    Raises:
        UsageError: The workload is not one of the page, or no run can have the settings together.
    """
    workload = settings.workload_of(asked, given)
    recipe = [] if workload.has_no_data else _set_words(recipe_of(asked))
    commands = (
        settings.step_words(asked, workload),
        settings.run_words(asked, workload),
        settings.train_words(asked, workload, recipe),
    )
    text = project_steps([words[1:] for words in commands if words])
    return _file(FILE, text, [], look=["tfdyno", "run", "--dry-run"], do=["tfdyno", "run"])


def _set_words(recipe: Recipe) -> list[str]:
    changes = diff(Recipe(), recipe).items()
    return [word for name, (_, value) in changes for word in ("--set", f"{name}={value}")]


def _file(name: str, text: str, left_out: list[str], **commands: list[str]) -> bytes:
    lines = {key: settings.command_line(words) for key, words in commands.items() if words}
    return to_json({"file": name, "toml": text, "commands": lines, "left_out": left_out})
