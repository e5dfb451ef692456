"""The ways of leaving measurements out, so that predictions are judged on rows not seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tfdyno_truth.rows import Row

SEEN = "everything seen"
Label = Callable[[Row], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way: all rows with the same ``label`` are predicted by a fit that saw none of them."""

    name: str
    """As commands take it."""
    title: str
    label: Label
    unseen: str
    """What is new to the fit, in words."""
    also: tuple[Label, ...] = ()
    """What else is kept back from the fit, each in ``PARTS`` parts."""

    @property
    def blind(self) -> bool:
        """Whether the fit starts from priors that no row has had a say in (see ``fit.blinded``)."""
        return bool(self.also)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fold:
    """Rows that are predicted together, and those that the fit for them must not see."""

    name: str
    mine: NDArray[np.bool_]
    kept_back: NDArray[np.bool_]
    """With ``mine``, whatever shares any of the labels with them."""


PARTS = 5
"""Of the kinds of model, and of the chips: with the sources some 70 fits instead of some 300."""
WAYS = {
    way.name: way
    for way in (
        Way(
            name="outer",
            title="source, kind of model and card left out",
            label=lambda row: row.source,
            also=(lambda row: row.architecture, lambda row: row.chip),
            unseen="the source, the kind of model and the chip at once, and what the priors "
            "remember of these rows",
        ),
        Way(
            name="gpu",
            title="card left out",
            label=lambda row: row.chip,
            unseen="the chip",
        ),
        Way(
            name="model",
            title="model left out",
            label=lambda row: row.architecture,
            unseen="the kind of model",
        ),
        Way(
            name="pair",
            title="pair left out",
            label=lambda row: f"{row.chip}/{row.architecture}",
            unseen="the kind of model on the chip, though each is known from elsewhere",
        ),
    )
}
ONE_NEW = ("gpu", "model")
"""Ways in which one thing is new, by which terms and simpler predictions are compared."""
WIDTHS_FROM = "outer"
"""The way whose residuals decide the widths of the intervals."""


def folds(way: Way, rows: Sequence[Row]) -> tuple[Fold, ...]:
    """All folds of a way; every row is in one of them."""
    keys = [np.array([way.label(row) for row in rows])]
    for label in way.also:
        names = [label(row) for row in rows]
        part = parts(_groups(names, rows), PARTS)
        keys.append(np.array([str(part[name]) for name in names]))
    found = []
    for key in dict.fromkeys(zip(*(each.tolist() for each in keys), strict=True)):
        same = [each == value for each, value in zip(keys, key, strict=True)]
        found.append(
            Fold(
                name=", ".join(key),
                mine=np.logical_and.reduce(same),
                kept_back=np.logical_or.reduce(same),
            )
        )
    return tuple(found)


def parts(sizes: Mapping[str, int], count: int) -> dict[str, int]:
    """Sort names into parts of about equal size: the largest first, each to the smallest part.

    Names of one size go by the alphabet, so that equal rows always give equal parts.
    """
    filled, found = [0] * count, {}
    for name in sorted(sizes, key=lambda one: (-sizes[one], one)):
        found[name] = filled.index(min(filled))
        filled[found[name]] += sizes[name]
    return found


def _groups(names: Sequence[str], rows: Sequence[Row]) -> Mapping[str, int]:
    """How many groups of rows have each name."""
    return Counter(
        name for name, _ in {(name, row.group) for name, row in zip(names, rows, strict=True)}
    )
