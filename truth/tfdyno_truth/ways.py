"""The ways of leaving measurements out, so that predictions are judged on rows not seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tfdyno_truth.rows import Row

SEEN = "everything seen"


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way: all rows with the same ``label`` are predicted by a fit that saw none of them."""

    name: str
    """As commands take it."""
    title: str
    label: Callable[[Row], str]
    unseen: str
    """What is new to the fit, in words."""


WAYS = {
    way.name: way
    for way in (
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
LEARNED_FROM = ("gpu", "model")
"""Ways whose residuals decide the widths of the intervals: new cards and new models."""
