"""What the page asks of an answer: names of candidates, groups, and who stands for many."""

from __future__ import annotations

from collections import Counter
from datetime import date
from itertools import pairwise
from typing import TYPE_CHECKING, get_args

from tfdyno.core.base.units import GIB
from tfdyno.core.choose.advice import Advice, Candidate, Title, Verdict
from tfdyno.core.choose.hardware import OWNED
from tfdyno.words.base.amounts import capital
from tfdyno.words.base.language import say
from tfdyno.words.base.names import named
from tfdyno.words.choose.advice import brief, launch_words, price_words
from tfdyno.words.choose.advice import card as card_words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfdyno.core.choose.hardware import Gpu

_STALE_DAYS = 366
VERDICTS: tuple[str, ...] = get_args(Verdict)


def card_name(candidate: Candidate) -> str:
    """Return the card with its number or share: ``8 × H100 SXM``, ``H100 SXM``, ``1/6 of A10``."""
    return card_words(candidate).replace(" x ", " × ")


def card_in_words(candidate: Candidate) -> str:
    """Write ``one H100 SXM``, ``8 × H100 SXM``: for the inside of a sentence."""
    name = card_name(candidate)
    return say("one {card}", card=name) if name == brief(candidate.gpu_name) else name


def offer_words(candidate: Candidate) -> str:
    """Write ``Verda 1A100.22V · spot $0.45/h``; for a card without an offer what it is."""
    is_rented = candidate.offer is not None and candidate.offer.provider != OWNED
    return f"{machine(candidate)} · " * is_rented + rent_words(candidate)


def machine(candidate: Candidate) -> str:
    """Write ``Verda 1A100.22V``: who rents out what; empty without an offer."""
    offer = candidate.offer
    return " ".join(part for part in (offer.provider, offer.instance) if part) if offer else ""


def rent_words(candidate: Candidate) -> str:
    """Write ``spot $0.45/h``: how it is rented and for what; else why it is not."""
    offer = candidate.offer
    if offer is None:
        return say("no offer known{launch}", launch=launch_words(candidate))
    if offer.provider == OWNED:
        return say("your own card")
    free = say(", {count} free", count=offer.available) if offer.available is not None else ""
    return f"{named(offer.way)} {price_words(candidate)}{free}"


def stale(candidate: Candidate, made_on: str) -> str:
    """Write ``price of 2025-09`` when the price is older than 12 months, else nothing."""
    offer = candidate.offer
    if offer is None or not offer.priced_on or not offer.usd_per_h:
        return ""
    age = _days(made_on) - _days(offer.priced_on)
    return say("price of {month}", month=offer.priced_on[:7]) if age > _STALE_DAYS else ""


def old_price(candidate: Candidate, made_on: str) -> str:
    """Return a sentence for an answer that rests on a price older than 12 months, else nothing."""
    words = stale(candidate, made_on)
    return say("{words}; check it.", words=capital(words)) if words else ""


def _days(text: str) -> float:
    """Return days of an ISO date or month; a date that cannot be read counts as today's."""
    year, month, day = (*text[:10].split("-"), "15", "15")[:3]
    try:
        return float(date(int(year), int(month), int(day)).toordinal())
    except ValueError:
        return float(date.max.toordinal())


def recommended(advice: Advice) -> Candidate | None:
    """Return the balanced pick, else the first pick, else the first of the ranking; or None."""
    titles: tuple[Title, ...] = ("balanced", "cheapest", "fastest")
    picks = filter(None, map(advice.pick, titles))
    return next((pick.candidate for pick in picks), next(iter(advice.ranking), None))


def pick_titles(advice: Advice) -> dict[int, list[str]]:
    """Title the picks by the identity of the candidate they name in the ranking."""
    titles: dict[int, list[str]] = {}
    for pick in advice.picks:
        for index, candidate in enumerate(advice.ranking):
            if same(candidate, pick.candidate):
                titles.setdefault(index, []).append(pick.title)
                break
    return titles


def same(first: Candidate, second: Candidate) -> bool:
    """Return whether two candidates are the same card at the same offer."""
    return first.slug == second.slug


def fits(candidate: Candidate) -> bool:
    """Return whether the step fits by the best estimate; one that may not fit does not count."""
    fine = candidate.estimate.fits in ("yes", "unverified")
    return fine and candidate.verdict != "does not fit"


def whole(candidate: Candidate) -> bool:
    """Return whether the candidate has its card to itself."""
    return candidate.offer is None or candidate.offer.gpu_fraction >= 1


def by_verdict(advice: Advice) -> dict[str, list[Candidate]]:
    """Return candidates in order under each verdict that occurs, in the order of ``Verdict``."""
    groups: dict[str, list[Candidate]] = {verdict: [] for verdict in VERDICTS}
    for candidate in advice.ranking:
        groups.setdefault(candidate.verdict, []).append(candidate)
    return {verdict: members for verdict, members in groups.items() if members}


def distinct_cards(advice: Advice, *, single: bool = False) -> list[Candidate]:
    """Return the first candidate of each card and number of cards, picks first, then by rank."""
    ordered = [pick.candidate for pick in advice.picks] + list(advice.ranking)
    found: dict[tuple[str, int], Candidate] = {}
    for candidate in ordered:
        if not single or candidate.count == 1:
            found.setdefault((candidate.gpu, candidate.count), candidate)
    return list(found.values())


def shown_cards(advice: Advice, most: int) -> list[Candidate]:
    """Choose at most ``most`` cards that can do the run, for a figure: picks, then best ranked.

    Cards that cannot run the program or do not fit are left out unless nothing else is there.
    """
    cards = distinct_cards(advice)
    able = [card for card in cards if card.verdict not in ("cannot run", "does not fit")]
    known = [card for card in able if card.verdict != "no offer"] or able or cards
    return sorted(known[:most], key=lambda card: card.estimate.step_s.best)


def memory_cards(advice: Advice, most: int) -> list[Candidate]:
    """Return one card of each memory size, the best ranked of it, smallest first.

    Past ``most`` sizes those go that stand nearest to a smaller one, except those of the picks.
    """
    sizes: dict[int, Candidate] = {}
    picked = {pick.candidate.gpu for pick in advice.picks}
    for card in distinct_cards(advice, single=True):
        size = round(card.estimate.usable_memory_bytes / GIB / 2)
        sizes.setdefault(size, card)
    ordered = [sizes[size] for size in sorted(sizes)]
    while len(ordered) > most:
        steps = [
            (_usable(card) / _usable(smaller), index)
            for index, (smaller, card) in enumerate(pairwise(ordered), start=1)
            if card.gpu not in picked and index < len(ordered) - 1
        ]
        del ordered[min(steps)[1] if steps else -1]
    return ordered


def _usable(card: Candidate) -> float:
    return max(card.estimate.usable_memory_bytes, 1.0)


def markets(advice: Advice, gpus: Mapping[str, Gpu]) -> tuple[str, ...]:
    """List markets that occur in the ranking, most frequent first."""
    seen = Counter(gpus[card.gpu].market for card in advice.ranking if card.gpu in gpus)
    return tuple(name for name, _ in seen.most_common())


def providers(advice: Advice) -> tuple[str, ...]:
    """List providers that occur in the ranking, in alphabetical order."""
    return tuple(sorted({card.offer.provider for card in advice.ranking if card.offer}))
