"""``tfdyno offers``: priced machines with the date and age of each price."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import get_args

from tfdyno.catalog.offers import rejected_in
from tfdyno.cli.answer import Answer
from tfdyno.cli.command import PATH, command, flag, option
from tfdyno.cli.options import JSON, LANG, Filled, OneOf
from tfdyno.core.base.dataclass import dataclass
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.language import Language
from tfdyno.jobs.lookup.offers import PricedOffer, SortKey, histories, list_offers
from tfdyno.view.lookup.offers_text import history_list, offer_list
from tfdyno.words.base.language import say
from tfdyno.words.choose.offers import left_out_note

_MOST_LINES = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    gpu: str | None = option(type=Filled(), metavar="A,B,…", help="Only these GPUs.")
    provider: str | None = option(type=Filled(), metavar="A,B,…", help="Only these providers.")
    spot: bool | None = flag("--spot/--on-demand", default=None, help="Only one kind of price.")
    sort: SortKey = option(
        type=OneOf("order", get_args(SortKey)), default="price", show_default=True,
        help="price is per GPU, machine per machine.",
    )  # fmt: skip
    offers: Path | None = option(
        type=PATH, metavar="FILE", help="A price list of your own that goes first."
    )
    history: bool = flag(help="What each price was before: low, high and change.")
    lang: Language | None = LANG
    as_json: bool = JSON


@command(_Options)
def offers(options: _Options) -> Answer:
    """List cloud offers with price, date and age."""
    own = options.offers
    found = list_offers(
        gpu=options.gpu or "",
        provider=options.provider or "",
        spot=options.spot,
        sort=options.sort,
        extra=own,
    )
    if not (found or options.as_json):
        raise UsageError("no offer matches", remedy="'tfdyno offers' lists all")
    # The rows of the user's list that break a rule, before the prices.
    reasons = [one.reasons for one in rejected_in(own)] if own and not options.as_json else []
    head = f"{left_out_note(str(own), reasons)}\n\n" if reasons else ""
    if options.history:
        return _histories(found, head)
    lines = [(one.offer, one.usd_per_gpu_h, one.age_days, one.staleness) for one in found]
    return Answer(
        document=lambda: {"offers": found},
        head=head,
        text=partial(offer_list, lines, most=0 if options.gpu or options.provider else _MOST_LINES),
    )


def _histories(found: tuple[PricedOffer, ...], head: str) -> Answer:
    courses = histories(found)
    if courses.damage:
        head += say("The price history is damaged: {damage}.", damage=courses.damage) + "\n\n"
    lines = [(one.offer, courses.by_slug[one.offer.slug]) for one in found]
    return Answer(
        document=lambda: {"offers": found, "histories": courses.by_slug, "damage": courses.damage},
        head=head,
        text=partial(history_list, lines),
    )
