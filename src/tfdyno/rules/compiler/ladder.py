"""The steps back from a fault inside XLA: which comes next."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import ToolError
from tfdyno.core.recipe.retreat import STEPS, Retreat, RetreatStep, name_of
from tfdyno.rules.compiler.faults import DATA, Fault, short
from tfdyno.rules.tables import read_rows

if TYPE_CHECKING:
    from collections.abc import Collection

COLUMNS = ("step", "flag", "words", "source")


@functools.cache
def _steps() -> dict[str, tuple[tuple[str, ...], str]]:
    """Return flags and words of each step."""
    rows = read_rows(str(DATA / "steps.csv"), COLUMNS)
    if tuple(row["step"] for row in rows) != STEPS:
        raise ToolError("steps.csv is corrupt", why=f"expected the steps {', '.join(STEPS)}")
    return {row["step"]: (tuple(row["flag"].split()), row["words"]) for row in rows}


def next_step(
    fault: Fault,
    text: str,
    *,
    tried: Collection[RetreatStep],
    own_flags: str = "",
    has_graph: bool = True,
) -> Retreat | None:
    """Return the first step that can help and was not tried; None: none is left.

    Args:
        fault: What happened.
        text: What the compiler said.
        tried: Steps that are in force already, or that this XLA does not know.
        own_flags: The user's own XLA_FLAGS: what they set, either way, stays as it is.
        has_graph: Whether it can run without XLA, and does not yet.
    """
    set_already = {name_of(flag) for flag in own_flags.split()}
    for step in STEPS[STEPS.index(fault.first_step) :]:
        flags, words = _steps()[step]
        is_moot = bool(flags) and all(name_of(flag) in set_already for flag in flags)
        if step in tried or is_moot or (step == "graph" and not has_graph):
            continue
        return Retreat(
            step=step,
            words=words,
            flags=flags,
            fault=fault.id if fault.is_known else "",
            title=fault.title,
            references=fault.references,
            said=short(text),
        )
    return None
