"""Generating text or images on a card: the calls that are made, and what all of them take."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Literal

from tfdyno.core.choose.estimate import Estimate

if TYPE_CHECKING:
    from tfdyno.core.base.interval import Interval

_WORST = ("no", "may not", "unverified", "yes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Generating(ABC):
    """What a batch takes on a card that has to hold every one of several calls."""

    gpu: str
    batch_size: int

    @property
    @abstractmethod
    def calls(self) -> tuple[Estimate, ...]:
        """The calls in their order, each once."""

    @property
    def device_memory_bytes(self) -> Interval:
        """Bytes of the largest call."""
        held = [one.device_memory_bytes for one in self.calls]
        return reduce(lambda one, other: one.each(other, max), held)

    @property
    def fuller(self) -> Estimate:
        """The call that fits less surely than any other."""
        return min(self.calls, key=lambda one: _WORST.index(one.fits))

    @property
    def fits(self) -> Literal["yes", "no", "unverified", "may not"]:
        """Whether all calls fit, as ``Estimate.fits`` says it."""
        return self.fuller.fits

    @property
    def max_batch_size(self) -> int | None:
        """The largest batch of which all calls fit; None: not known."""
        known = [one.max_batch_size for one in self.calls]
        return None if None in known else min(one for one in known if one is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextGeneration(Generating):
    """What a batch of prompts takes, each of so many tokens and made longer by so many."""

    prompt_tokens: int
    new_tokens: int
    prefill: Estimate
    """The call that fills the cache of keys and values."""
    token: Estimate
    """One call that makes the next token of every sample, with the cache full."""
    cache_bytes: float
    """Keys and values of the whole batch."""

    @property
    def calls(self) -> tuple[Estimate, ...]:
        """The prefill, and a token."""
        return self.prefill, self.token

    @property
    def whole_s(self) -> Interval:
        """The time until the last token: the prefill, and every token with the cache full."""
        return self.prefill.step_s.together(self.token.step_s.times(self.new_tokens))

    @property
    def new_tokens_per_s(self) -> Interval:
        """New tokens of all samples over the whole time."""
        return self.whole_s.under(self.batch_size * self.new_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageGeneration(Generating):
    """What a batch of images takes, each made of noise in so many steps of diffusion."""

    steps: int
    guidance: bool
    """Whether each step is guided by a second prompt, which doubles its work."""
    text: Estimate
    """The call that encodes the prompts."""
    denoise: Estimate
    """One step of diffusion."""
    image: Estimate
    """The call that makes pixels of what the steps leave."""

    @property
    def calls(self) -> tuple[Estimate, ...]:
        """The encoding of prompts, a step, and the making of pixels."""
        return self.text, self.denoise, self.image

    @property
    def whole_s(self) -> Interval:
        """The time until the images are there."""
        steps = self.denoise.step_s.times(self.steps)
        return self.text.step_s.together(steps).together(self.image.step_s)

    @property
    def images_per_s(self) -> Interval:
        """Images of the batch over the whole time."""
        return self.whole_s.under(self.batch_size)
