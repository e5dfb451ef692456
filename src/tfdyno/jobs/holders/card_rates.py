"""What the cards of this machine can do at most, by the catalogue: for a child that has none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError
from tfdyno.jobs.holders.found_cards import found_cards
from tfdyno.jobs.machine.card_files import stored_sweeps
from tfdyno.model.time.peaks import peak_flops_per_s, unit_for

if TYPE_CHECKING:
    from tfdyno.core.choose.card_file import CardFile
    from tfdyno.core.recipe.recipe import Recipe

DTYPES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}
"""Keras' names for what layers compute in, and the catalogue's."""
BYTES_PER_S = "bytes_per_s"
LARGE_BYTES = 1 << 27
"""What moves less may stay in a cache of the card."""


def card_peaks(recipe: Recipe, visible: str | None) -> dict[str, list[float]]:
    """Return FLOP/s of each card, by dtype; none where a card is not known."""
    try:
        found = found_cards(visible=visible)
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


def card_rates(recipe: Recipe, visible: str | None) -> dict[str, list[float]]:
    """Return the same, and the bytes per second of each card's memory."""
    peaks = card_peaks(recipe, visible)
    if not peaks:
        return {}
    found = found_cards(visible=visible)
    told = {**peaks, BYTES_PER_S: [one.gpu.memory_bytes_per_s for one in found]}
    return _with_sweeps(told, [one.gpu.slug for one in found], recipe.precision != "float32")


def sweep_words(visible: str | None) -> str:
    """Return sentences on the sweeps that the rates of the cards rest on, and on those left out."""
    try:
        found = found_cards(visible=visible)
    except UsageError:
        return ""
    slugs = {one.gpu.slug for one in found}
    if not slugs:
        return ""
    sweeps = stored_sweeps()
    words = dict.fromkeys(one.words() for one in sweeps.cards if one.card in slugs)
    told = f"What the card can do is told by {', '.join(words)}." if words else ""
    return " ".join(filter(None, (told, *sweeps.problems)))


def _with_sweeps(
    told: dict[str, list[float]], slugs: list[str], tf32: bool
) -> dict[str, list[float]]:
    """Return what kernels of a sweep reached at best, in the place of the data sheet's figures."""
    for card in stored_sweeps().cards if slugs else ():
        best = best_rates(card, tf32=tf32)
        for at, slug in enumerate(slugs):
            for name, rates in told.items():
                rate = best.get(DTYPES.get(name, name), 0.0) if slug == card.card else 0.0
                rates[at] = rate or rates[at]
    return told


def best_rates(card: CardFile, *, tf32: bool) -> dict[str, float]:
    """Return FLOP/s of the best product by the catalogue's name of a type, and bytes per second.

    Args:
        card: The sweep.
        tf32: Whether float32 products may run in TF32.
    """
    found: dict[str, float] = {}
    for one in card.kernels:
        if one.kernel.kind == "gemm" and (one.kernel.dtype != "f32" or one.tf32 is tf32):
            name, rate = one.kernel.dtype, one.kernel.flops.fixed / one.kernel_s
        elif one.kernel.kind == "loop":
            moved = one.kernel.read_bytes.fixed + one.kernel.write_bytes.fixed
            name, rate = BYTES_PER_S, moved / one.kernel_s if moved >= LARGE_BYTES else 0.0
        else:
            continue
        found[name] = max(found.get(name, 0.0), rate)
    return found
