"""Sweeps of cards that ship with the tool."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tfdyno.core.base.codec import from_json
from tfdyno.core.choose.card_file import CardFile

FOLDER = Path(__file__).parent / "data" / "sweeps"
REFERENCE = "h200-sxm-141gb.tensorflow.json"
"""The card whose steps the constants of today's software were learned from."""


@cache
def reference_sweep() -> CardFile:
    """Return the sweep that tells by how much the law of steps is off kernels that run alone."""
    path = FOLDER / REFERENCE
    return from_json(path.read_bytes(), CardFile, where=path.name)
