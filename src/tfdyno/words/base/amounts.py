"""Amounts, counts and lists: in sentences rounded to what an estimate is worth, with their unit.

What begins with ``table`` is for tables and axes, which name the unit once: bare numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.settings import MOST_SAMPLES
from tfdyno.core.base.units import GIB, HOUR_S, significant
from tfdyno.words.base.language import CONTEXT, has_sentence, say, say_later

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.base.interval import Interval

_TIMES_H = (
    (1.0 / 60.0, 1.0 / HOUR_S, "s", say_later("{count} second"), say_later("{count} seconds")),
    (1.0, 1.0 / 60.0, "min", say_later("{count} minute"), say_later("{count} minutes")),
    (1000.0, 1.0, "h", say_later("{count} hour"), say_later("{count} hours")),
    (float("inf"), 24.0, "d", say_later("{count} day"), say_later("{count} days")),
)
_STEPS_S = ((1e-3, 1e-6, "µs"), (1.0, 1e-3, "ms"), (float("inf"), 1.0, "s"))
A_SECOND_H = 1.0 / HOUR_S
A_CENT_USD = 0.01
WHOLE_DOLLARS_USD = 10.0
CENTS_USD = 0.1
DEARER_TIMES_RATIO = 2.0


def about_hours(hours: float) -> str:
    """Return two digits and a whole word: ``6.7 hours``, ``18 minutes``, ``54 days``."""
    if hours < A_SECOND_H:
        return say("a second")
    _, factor, _, one, many = _time(hours)
    count = significant(hours / factor, 2)
    return say(one if count == "1" else many, count=count)


def short_hours(hours: float) -> str:
    """Return two digits and the sign of the unit: ``6.7 h``, ``18 min``."""
    if hours < A_SECOND_H:
        return say("under 1 s")
    _, factor, sign, *_ = _time(hours)
    return f"{significant(hours / factor, 2)} {sign}"


def batch_words(most: int | None) -> str:
    """Return the largest batch in words: ``2,088``, ``1,048,576 or more``, ``not known``."""
    if most is None:
        return say("not known")
    return say("{most:,} or more", most=most) if most == MOST_SAMPLES else f"{most:,}"


def batch_cell(most: int | None) -> str:
    """Write a table's largest batch: ``2,088``, ``≥1,048,576``, ``–`` where it is not known."""
    if most is None:
        return "–"
    return f"≥{most:,}" if most == MOST_SAMPLES else f"{most:,}"


def table_time(time: float) -> str:
    """Return a time as a bare number: one decimal below 100, two digits below 1."""
    return f"{time:,.0f}" if time >= 100.0 else f"{time:.1f}" if time >= 1 else f"{time:.2g}"


def table_hours(value_h: float) -> str:
    """Hours as tables have them: two decimals below 1, one below 100, else whole."""
    return f"{value_h:,.{_hour_places(value_h)}f}"


def table_hours_range(value_h: Interval) -> str:
    """Return the range of a duration in hours, both ends with the digits of the best estimate."""
    places = _hour_places(value_h.best)
    return f"{value_h.low:,.{places}f}–{value_h.high:,.{places}f}"


def hours_range(hours: Interval) -> str:
    """Write ``5.4–8.4 h``, in the unit of the best estimate."""
    if hours.high < A_SECOND_H:
        return say("under 1 s")
    _, factor, sign, *_ = _time(hours.best)
    return f"{dashed(hours.low / factor, hours.high / factor)} {sign}"


def dashed(low: float, high: float, digits: int = 2) -> str:
    """Write two bounds with so many digits: ``5.4–8.4``; one number where they round alike."""
    first, last = significant(low, digits), significant(high, digits)
    return first if first == last else f"{first}–{last}"


def about_usd(usd: float) -> str:
    """Return two digits: ``$5.40``, ``$30``, ``$1,200``."""
    if usd >= WHOLE_DOLLARS_USD or usd == 0:
        return f"${significant(usd, 2)}"
    if usd < A_CENT_USD:
        return say("under $0.01")
    return f"${usd:.2g}" if usd < CENTS_USD else f"${float(f'{usd:.2g}'):.2f}"


def roughly_usd(usd: float) -> str:
    """Write ``about_usd`` with its own ``about``: ``about $5.40``, ``under $0.01``."""
    text = about_usd(usd)
    return text if usd < A_CENT_USD and usd != 0 else say("about {text}", text=text)


def table_usd(usd: float) -> str:
    """Write cents, without the sign: ``5.37``, ``1,204.10``; two digits below ten cents."""
    return f"{usd:,.2f}" if usd >= CENTS_USD or usd == 0 else significant(usd, 2)


def usd_range(usd: Interval) -> str:
    """Write ``$4.30–6.70``; whole dollars from $10 on."""
    if usd.low < A_CENT_USD:
        return (
            say("up to {usd_high}", usd_high=about_usd(usd.high))
            if usd.high >= A_CENT_USD
            else say("under $0.01")
        )
    first, last = about_usd(usd.low), about_usd(usd.high).removeprefix("$")
    return first if first == f"${last}" else f"{first}–{last}"


def usd_per_h(usd: float) -> str:
    """Write ``$0.80/h``."""
    return f"${usd:,.2f}/h" if usd >= A_CENT_USD else f"${significant(usd, 2)}/h"


def usd_per_h_range(low: float, high: float) -> str:
    """Write ``$0.80–1.10/h``; one price where both read alike."""
    first, last = usd_per_h(low), usd_per_h(high)
    return first if first == last else f"{first.removesuffix('/h')}–{last.removeprefix('$')}"


def table_ms(seconds: float) -> str:
    """Return milliseconds: whole from 10 ms on, two digits below."""
    milliseconds = seconds * 1e3
    return f"{milliseconds:,.0f}" if milliseconds >= 10.0 else significant(milliseconds, 2)


def table_ms_range(value_s: Interval) -> str:
    """Write a step's range in milliseconds, both ends with the digits of the best estimate."""
    places = 0 if value_s.best >= 0.01 else 1 if value_s.best >= 0.001 else 2
    return f"{value_s.low * 1e3:,.{places}f}–{value_s.high * 1e3:,.{places}f}"


def step_unit(step_s: float) -> tuple[float, str]:
    """Return the unit that such a time reads best in: its seconds and its sign."""
    return next((factor, unit) for below_s, factor, unit in _STEPS_S if step_s < below_s)


def short_time(seconds: float, digits: int = 2) -> str:
    """Return a time in the unit that it reads best in: ``1.2 s``, ``34 ms``, ``5.6 µs``."""
    factor, unit = step_unit(seconds)
    return f"{significant(seconds / factor, digits)} {unit}"


def about_step(step_s: Interval) -> tuple[str, str]:
    """Write best and range of a step in the unit that reads best: (``47 ms``, ``40–56``)."""
    factor, _ = step_unit(step_s.best)
    return short_time(step_s.best), dashed(step_s.low / factor, step_s.high / factor)


def gib(value_bytes: float) -> str:
    """Return number of GiB, three digits at most: ``10.5``, ``0.42``."""
    return table_time(value_bytes / GIB)


def gib_part(value_bytes: float) -> str:
    """Return a part of the memory in GiB: two decimals below 10, so that parts can be added up."""
    value = value_bytes / GIB
    return f"{value:.2f}" if value < 10 else f"{value:,.1f}"


def gib_range(value_bytes: Interval) -> str:
    """Return the range of a size in GiB."""
    return f"{gib(value_bytes.low)}–{gib(value_bytes.high)}"


def of_gib(used_bytes: float, usable_bytes: float) -> str:
    """Write ``10.5 of 79 GiB``."""
    return say(
        "{used} of {usable} GiB",
        used=gib(used_bytes),
        usable=significant(usable_bytes / GIB, 2),
    )


def percent(ratio: float) -> str:
    """Return a share or change: ``42%``; one digit below one percent."""
    return f"{ratio:.0%}" if ratio >= 0.01 or ratio == 0 else f"{significant(ratio * 100, 1)}%"


def interval_percent(value: Interval) -> str:
    """Return how far the range reaches from the best estimate: ``−19 to +23%``."""
    if value.best <= 0:
        return "–"
    low, high = (1 - value.low / value.best) * 100, (value.high / value.best - 1) * 100
    return say("−{low:.0f} to +{high:.0f}%", low=low, high=high)


def dearer(ratio: float) -> str:
    """Write a ratio of costs above 1 in words: ``3% dearer``, ``2.5x the price``."""
    if ratio >= DEARER_TIMES_RATIO:
        return say("{ratio}x the price", ratio=significant(ratio, 2))
    return say("{ratio} dearer", ratio=percent(ratio - 1.0))


def plain(value: float) -> str:
    """Return a number that the user gave, as it was given: 24, 0.5, 1,000."""
    return f"{value:,.6g}" if value < 1e6 else f"{value:,.0f}"


def plural(count: int, noun: str, many: str = "") -> str:
    """``1 card``, ``1,200 cards``; ``many`` where the noun does not just take an s.

    Other languages know the noun with its number: ``{number} card``, with a measure word.
    """
    if has_sentence(counted := f"{{number}} {noun}"):
        return say(counted, number=f"{count:,}")
    noun = noun.partition(CONTEXT)[0]
    return f"{count:,} {noun if count == 1 else many or noun + 's'}"


def listed(names: Sequence[str], *, most: int = 0) -> str:
    """Join ``a``, ``a and b``, ``a, b and c``; past ``most`` names the rest is counted."""
    shown = list(names)
    if most and len(shown) > most + 1:
        shown = [*shown[:most], say("{count} more", count=len(names) - most)]
    if len(shown) < 2:
        return "".join(shown)
    return say("{first} and {last}", first=say(", ").join(shown[:-1]), last=shown[-1])


def capital(text: str) -> str:
    """Write ``text`` with its first letter in upper case and the rest as it is."""
    return text[:1].upper() + text[1:]


def lower(text: str) -> str:
    """Write ``text`` with its first letter in lower case and the rest as it is."""
    return text[:1].lower() + text[1:]


def _hour_places(hours: float) -> int:
    return 2 if hours < 1 else 1 if hours < 100 else 0


def _time(hours: float) -> tuple[float, float, str, str, str]:
    return next(row for row in _TIMES_H if hours < row[0])
