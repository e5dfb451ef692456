"""The input pipeline that was measured, set against the CPUs of every offer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.catalog.assumptions import assumed
from tfdyno.catalog.time_model import time_model
from tfdyno.core.base.interval import Interval
from tfdyno.core.measure.feed import Feed, FeedLaw
from tfdyno.model.measure.feed_law import law_of
from tfdyno.model.measure.feeding import fed, feeding
from tfdyno.words.base.amounts import listed, plural
from tfdyno.words.base.language import say
from tfdyno.words.base.names import named
from tfdyno.words.data.feed import assumption_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.choose.advice import Candidate, Pick
    from tfdyno.core.choose.estimate import Estimate
    from tfdyno.core.choose.hardware import Gpu, Offer
    from tfdyno.core.measure.feed import Feeding


@dataclass(frozen=True, slots=True, kw_only=True)
class Feeder:
    """A measured pipeline that every offer is judged with."""

    feed: Feed
    law: FeedLaw

    @classmethod
    def of(cls, feed: Feed) -> Feeder:
        """Work out its figures once."""
        return cls(feed=feed, law=law_of(feed))

    def on(
        self, estimate: Estimate, offer: Offer | None, gpu: Gpu
    ) -> tuple[Estimate, Feeding | None]:
        """Return the estimate of a step that may wait for data, and what the offer's CPUs give.

        An offer that names no number of CPUs is not held back: the estimate stays as it is.
        """
        if offer is None or not offer.vcpus:
            return estimate, None
        given = feeding(
            self.law, estimate, vcpus=offer.vcpus, cpu_kind=self.feed.cpu_kind, assumed=assumed()
        )
        waiting = time_model().parameters["power_launch"]
        power_w = gpu.tdp_w * estimate.replicas
        waiting_w = Interval(
            low=waiting.low * power_w, best=waiting.value * power_w, high=waiting.high * power_w
        )
        return fed(estimate, given, waiting_w=waiting_w), given

    def assumption(self) -> str:
        """Return what is taken for the input, in words."""
        return assumption_words(self.feed, self.law, assumed())

    def notes(self, ranking: Sequence[Candidate], picks: Sequence[Pick]) -> tuple[str, ...]:
        """Return which offers are not held back, because nobody says how many CPUs they have."""
        silent = [one for one in ranking if one.offer and one.feeding is None]
        if not silent:
            return ()
        titles = [named(pick.title) for pick in picks if pick.candidate.feeding is None]
        which = say(", the {named} pick among them", named=listed(titles)) if titles else ""
        return (
            say(
                "{offers} names no number of vCPUs{which}: their hours are those of the GPU alone."
                if len(silent) == 1
                else "{offers} name no number of vCPUs{which}: "
                "their hours are those of the GPU alone.",
                offers=plural(len(silent), "offer"),
                which=which,
            ),
        )
