"""A recipe, and what two recipes differ in, as terminal text and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfdyno.core.recipe.recipe import Recipe, diff, flat
from tfdyno.core.recipe.recipe_file import HEAD, to_toml
from tfdyno.core.recipe.recipe_words import MEANINGS, UNITS
from tfdyno.view.base.text import WIDTH, paint, table, wrapped
from tfdyno.words.base.amounts import about_step, gib, of_gib, plural
from tfdyno.words.base.language import say
from tfdyno.words.recipe.settings import value_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfdyno.core.choose.auto_recipe import AutoRecipe


def recipe_text(recipe: Recipe, name: str, *, full: bool = False, colour: bool = False) -> str:
    """Return a recipe as its file says it, with its name and ID at the top; comments are dimmed.

    Args:
        recipe: The settings.
        name: Of its file; empty: it has none.
        full: Whether settings that change nothing are shown.
        colour: Whether to dim the comments.
    """
    count = len(diff(Recipe(), recipe))
    settings = plural(count, "setting") if count else say("no settings")
    head = say(
        "{place} (recipe {id}); the rest stays as the script has it.",
        place=say("{name}: {settings}", name=name, settings=settings)
        if name
        else settings.capitalize(),
        id=recipe.id,
    )
    return _dimmed(recipe_toml(recipe, full=full, head=(head,)).rstrip(), colour=colour)


def recipe_toml(
    recipe: Recipe,
    *,
    full: bool = False,
    head: Sequence[str] | None = None,
    reasons: Mapping[str, str] | None = None,
) -> str:
    """Return the file of a recipe, with a comment over each setting.

    Args:
        recipe: The settings.
        full: Whether settings that change nothing are written.
        head: Sentences at the top; None: what every recipe says.
        reasons: Of settings, in the place of what they mean.
    """
    comments = {name: say(meaning) for name, meaning in MEANINGS.items()} | dict(reasons or {})
    top = (say(HEAD),) if head is None else head
    return to_toml(recipe, full=full, comments=comments, head=top)


def diff_text(
    names: tuple[str, str], a: Recipe, b: Recipe, *, width: int = WIDTH, colour: bool = False
) -> str:
    """Return what two recipes differ in: the answer, then a line for each setting with both values.

    Args:
        names: Of the two files.
        a: The recipe on the left.
        b: The recipe on the right.
        width: Columns of the screen.
        colour: Whether to print bold and dim.
    """
    found = diff(a, b)
    first, second = names
    if not found:
        said = say(
            "{first} and {second} are the same recipe ({id}).", first=first, second=second, id=a.id
        )
        return paint(wrapped(said, width=width), "bold", colour=colour)
    said = say(
        "{first} ({a}) and {second} ({b}) differ in {settings}.",
        first=first,
        a=a.id,
        second=second,
        b=b.id,
        settings=plural(len(found), "setting"),
    )
    rows = [[name, *(value_words(name, value) for value in pair)] for name, pair in found.items()]
    # File names can be long; A and B are the order in which they stand in the sentence above.
    return "\n\n".join([
        paint(wrapped(said, width=width), "bold", colour=colour),
        table([say("setting"), "A", "B"], rows, width=width, colour=colour),
    ])  # fmt: skip


def auto_text(found: AutoRecipe, *, width: int = WIDTH, colour: bool = False) -> str:
    """Write a chosen recipe: the answer, each setting under its reason, what was weighed, notes.

    Args:
        found: What was chosen.
        width: Columns of the screen.
        colour: Whether to print bold and dim.
    """
    toml = recipe_toml(found.recipe, reasons=found.reasons, head=())
    return "\n\n".join(filter(None, [
        paint(wrapped(_answer(found), width=width), "bold", colour=colour),
        _dimmed(toml.strip(), colour=colour),
        _weighed(found, width=width, colour=colour) if found.options else "",
        "\n".join(wrapped(one, width=width, first="- ", rest="  ") for one in found.notes),
    ]))  # fmt: skip


def auto_toml(found: AutoRecipe) -> str:
    """Return the file of a chosen recipe, with the reason over each setting."""
    return recipe_toml(found.recipe, reasons=found.reasons, head=(_answer(found), *found.notes))


def _answer(found: AutoRecipe) -> str:
    one = found.chosen
    settings = plural(len(diff(Recipe(), found.recipe)), "setting")
    if one is None:
        return say(
            "For {target}: {settings}; nothing was estimated.",
            target=found.target,
            settings=settings,
        )
    best, spread = about_step(one.update_s)
    held = of_gib(one.device_memory_bytes.best, one.usable_memory_bytes)
    held = say("{held} of each", held=held) if one.replicas > 1 else held
    return say(
        "For {target}: {settings}; an update of {samples} takes about {best} ({spread}), in {held}."
        if one.fits
        else "For {target}: {settings}; an update of {samples} takes about {best} ({spread}), if "
        "nothing is computed again, in {held}.",
        target=found.target,
        settings=settings,
        samples=plural(found.global_batch_size, "sample"),
        best=best,
        spread=spread,
        held=held,
    )


def _weighed(found: AutoRecipe, *, width: int, colour: bool) -> str:
    rows = [
        [
            "*" if one == found.chosen else "",
            one.precision,
            one.execution,
            str(one.replicas),
            f"{one.accumulation} x {one.batch_size:,}" if one.accumulation > 1
            else f"{one.batch_size:,}",
            *about_step(one.update_s),
            gib(one.device_memory_bytes.best) if one.fits
            else say("{size}, too much", size=gib(one.device_memory_bytes.best)),
        ]
        for one in found.options
    ]  # fmt: skip
    names = (say("precision"), say("execution"), say("cards"), say("batch"), say("update"))
    headers = ["", *names, "", "GiB"]
    return table(headers, rows, align="<<<>>>>>", width=width, colour=colour)


def auto_document(found: AutoRecipe) -> dict[str, Any]:
    """Return a chosen recipe for ``--json``."""
    return {
        "target": found.target,
        "gpu": found.gpu,
        "replicas": found.replicas,
        "global_batch_size": found.global_batch_size,
        "recipe": recipe_document(found.recipe),
        "reasons": found.reasons,
        "notes": list(found.notes),
        "chosen": found.chosen,
        "options": list(found.options),
    }


def recipe_document(recipe: Recipe) -> dict[str, Any]:
    """Return a recipe for ``--json``: every setting by its flat name, and which of them are set."""
    return {"id": recipe.id, "set": list(diff(Recipe(), recipe)), "settings": flat(recipe)}


def diff_document(names: tuple[str, str], a: Recipe, b: Recipe) -> dict[str, Any]:
    """Return two recipes for ``--json``."""
    differences: Mapping[str, tuple[object, object]] = diff(a, b)
    return {
        "a": {"name": names[0], "id": a.id},
        "b": {"name": names[1], "id": b.id},
        "same": not differences,
        "differences": [
            {"setting": name, "a": left, "b": right, "unit": _unit(name)}
            for name, (left, right) in differences.items()
        ],
    }


def _dimmed(toml: str, *, colour: bool) -> str:
    lines = toml.split("\n")
    return "\n".join(paint(one, "dim", colour=colour and one.startswith("#")) for one in lines)


def _unit(name: str) -> str:
    return "bytes" if name.endswith("_bytes") else UNITS.get(name, "")
