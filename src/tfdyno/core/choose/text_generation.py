"""Generating text on a card: the prompt first, then one token after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tfdyno.core.choose.estimate import Estimate

if TYPE_CHECKING:
    from tfdyno.core.base.interval import Interval

_WORST = ("no", "may not", "unverified", "yes")


@dataclass(frozen=True, slots=True, kw_only=True)
class TextGeneration:
    """What a batch of prompts takes, each of so many tokens and made longer by so many."""

    gpu: str
    batch_size: int
    prompt_tokens: int
    new_tokens: int
    prefill: Estimate
    """The call that fills the cache of keys and values."""
    token: Estimate
    """One call that makes the next token of every sample, with the cache full."""
    cache_bytes: float
    """Keys and values of the whole batch."""

    @property
    def whole_s(self) -> Interval:
        """The time until the last token: the prefill, and every token with the cache full."""
        return self.prefill.step_s.together(self.token.step_s.times(self.new_tokens))

    @property
    def new_tokens_per_s(self) -> Interval:
        """New tokens of all samples over the whole time."""
        return self.whole_s.under(self.batch_size * self.new_tokens)

    @property
    def device_memory_bytes(self) -> Interval:
        """Bytes of the larger of the two calls."""
        return self.prefill.device_memory_bytes.each(self.token.device_memory_bytes, max)

    @property
    def fuller(self) -> Estimate:
        """The call that fits less surely."""
        return min(self.prefill, self.token, key=lambda one: _WORST.index(one.fits))

    @property
    def fits(self) -> Literal["yes", "no", "unverified", "may not"]:
        """Whether both calls fit, as ``Estimate.fits`` says it."""
        return self.fuller.fits

    @property
    def max_batch_size(self) -> int | None:
        """The largest batch of which both calls fit; None: not known."""
        known = [self.prefill.max_batch_size, self.token.max_batch_size]
        return None if None in known else min(one for one in known if one is not None)
