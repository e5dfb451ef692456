"""A recipe as a TOML file: written with a comment for each setting, read with the file's name."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.base.codec import read_toml
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.toml_text import quoted
from tfdyno.core.base.units import GIB, MIB
from tfdyno.core.base.wide_text import shown_width, wide_lines
from tfdyno.core.recipe.recipe import Recipe, diff, flat, from_settings
from tfdyno.core.recipe.recipe_words import MEANINGS

if TYPE_CHECKING:
    from collections.abc import Iterable

Given = Recipe | Mapping[str, object] | str | Path | None
"""A recipe, its settings by name, or the path of its file; None: not given."""
FILE_NAME = "recipe.toml"
"""The file of the recipe in the folder of a run."""
HEAD = "A recipe of tfdyno. What is not set here stays as the script has it."
"""The sentence at the top of a file."""
_WIDTH = 76


def given_recipe(given: Given) -> Recipe | None:
    """Return the recipe that Python code gives, in whichever form; raises ``UsageError``."""
    if given is None or isinstance(given, Recipe):
        return given
    return from_settings(given) if isinstance(given, Mapping) else read_recipe(Path(given))


def read_recipe(path: Path) -> Recipe:
    """Read a recipe from a file, or from the folder of a run that holds ``recipe.toml``.

    Raises:
        UsageError: There is no such file, it is not TOML, a setting is not known or its value is
            not possible; names the file.
    """
    file = path / FILE_NAME if path.is_dir() else path
    given = read_toml(file)
    try:
        return from_settings(given)
    except UsageError as error:
        what = f"in {file}: {error.what}"
        raise UsageError(what, why=error.why, remedy=error.remedy) from None


def to_toml(
    recipe: Recipe,
    *,
    full: bool = False,
    comments: Mapping[str, str] | None = None,
    head: Iterable[str] = (HEAD,),
) -> str:
    """Write a recipe as TOML; ``from_settings`` of what it says is the same recipe.

    Args:
        recipe: The settings.
        full: Whether settings that change nothing are written too.
        comments: Sentences over settings by flat name, instead of what the setting means.
        head: Sentences at the top.
    """
    said = {**MEANINGS, **(comments or {})}
    names = list(flat(recipe)) if full else list(diff(Recipe(), recipe))
    values = flat(recipe)
    lines = [line for sentence in head for line in _comment(sentence)]
    for name in names:
        table, _, key = name.rpartition(".")
        if table and f"[{table}]" not in lines:  # the only table, and after all plain settings
            lines += ["", f"[{table}]"]
        lines += ["", *_comment(said[name]), f"{key} = {_value(name, values[name])}"]
    return "\n".join(lines).replace("]\n\n", "]\n") + "\n"


def _comment(sentence: str) -> list[str]:
    plain = " ".join(sentence.split())
    lines = (
        wide_lines(plain, _WIDTH)
        if shown_width(plain) > len(plain)
        else textwrap.wrap(plain, _WIDTH, break_long_words=False)
    )
    return [f"# {line}" for line in lines]


def _value(name: str, value: object) -> str:
    """Return a value as TOML has it; None, which TOML has not, as text."""
    if value is None:
        return '"none"'
    if name == "memory_limit_bytes" and isinstance(value, int):
        return _amount(value)
    if isinstance(value, str):
        return quoted(value)
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _amount(amount_bytes: int) -> str:
    """Return bytes with the largest unit that keeps them whole."""
    for unit_bytes, unit in ((GIB, "GiB"), (MIB, "MiB")):
        if amount_bytes and amount_bytes % unit_bytes == 0:
            return f'"{amount_bytes // unit_bytes}{unit}"'
    return str(amount_bytes)
