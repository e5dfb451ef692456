"""Other ways to train a preset of KerasHub, in the order of what they change."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfdyno.core.choose.workload import FineTune, HubModel, Trace

LORA_RANK = 8
"""Of adapters that were not asked for."""
_FEWEST_TOKENS = 64
"""Shorter samples are not weighed."""
_NO_KERNELS = ("float8",)
"""Modes of quantizing beside which Keras has no adapters."""


def fine_tunes(own: HubModel, tokens: int) -> tuple[FineTune, ...]:
    """Return other ways to train a preset, each on top of the one before.

    Args:
        own: The preset with what was asked, which stays.
        tokens: Of a sample; 0: it is no text.
    """
    asked = own.fine_tune
    if asked.quantize in _NO_KERNELS:
        return ()
    way, found = asked, []
    if not asked.lora_rank:
        way = replace(way, lora_rank=LORA_RANK)
        found.append(way)
    for mode in {"": ("int8", "int4"), "int8": ("int4",)}.get(asked.quantize, ()):
        way = replace(way, quantize=mode)
        found.append(way)
    for part in () if asked.sequence_length else (2, 4, 8):
        if tokens // part >= _FEWEST_TOKENS:
            found.append(replace(way, sequence_length=tokens // part))
    return tuple(found)


def tokens_of(trace: Trace) -> int:
    """Return the length of a sample of text; 0: it is none."""
    sizes = (one.shape[1] for one in trace.tensors if one.role == "input" and len(one.shape) == 2)
    return max(sizes, default=0)
