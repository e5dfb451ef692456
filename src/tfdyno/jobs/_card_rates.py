"""What the cards of this machine can do at most, by the catalogue: for a child that has none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfdyno.core.errors import UsageError
from tfdyno.jobs._found_cards import found_cards
from tfdyno.model.peaks import peak_flops_per_s, unit_for

if TYPE_CHECKING:
    from tfdyno.core.recipe import Recipe

DTYPES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}
"""Keras' names for what layers compute in, and the catalogue's."""
BYTES_PER_S = "bytes_per_s"


def card_peaks(
    recipe: Recipe, visible: str | None, *, library: Any = None  # noqa: ANN401
) -> dict[str, list[float]]:  # fmt: skip
    """FLOP/s of each card, by dtype; none where a card is not known."""
    try:
        found = found_cards(visible=visible, library=library)
    except UsageError:  # a slice, or a card that is not in the catalogue
        return {}
    tf32 = recipe.precision != "float32"
    return {
        name: [
            peak_flops_per_s(one.gpu, unit_for(one.gpu, dtype, tf32_allowed=tf32)) for one in found
        ]
        for name, dtype in DTYPES.items()
        if found
    }


def card_rates(
    recipe: Recipe, visible: str | None, *, library: Any = None  # noqa: ANN401
) -> dict[str, list[float]]:  # fmt: skip
    """The same, and the bytes per second of each card's memory."""
    peaks = card_peaks(recipe, visible, library=library)
    if not peaks:
        return {}
    found = found_cards(visible=visible, library=library)
    return {**peaks, BYTES_PER_S: [one.gpu.memory_bytes_per_s for one in found]}
