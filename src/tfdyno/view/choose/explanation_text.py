"""Why a step takes so long, as terminal text: the sum, then kernel by kernel, then sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.settings import BY_OPERATION
from tfdyno.core.base.units import significant
from tfdyno.view.base.text import WIDTH, paint, pairs, table, wrapped
from tfdyno.words.base.amounts import capital, percent, plural
from tfdyno.words.choose import explanation as words
from tfdyno.words.choose.advice import brief
from tfdyno.words.choose.kernels import kind as kind_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfdyno.core.base.interval import Interval
    from tfdyno.core.choose.estimate import Estimate
    from tfdyno.core.choose.explanation import Explanation, KernelPrice

_SUMS = {
    "powers": "(device^4 + host^4)^(1/4)",
    "slower": "the slower of device and host",
}
_MOST_LAYERS = 3
_MOST_OF_STEP = 0.9
_LEAST_SHARE = 1e-4
"""The share of the step below which nothing has a line under "The rest"."""


def explanations_text(
    estimates: Sequence[Estimate],
    names: Mapping[str, str],
    *,
    width: int = WIDTH,
    colour: bool = False,
) -> str:
    """Return the explanation of every estimate that has one, card by card.

    Args:
        estimates: In the order asked.
        names: Marketing name by slug.
        width: Columns of the screen.
        colour: Whether to print bold and dim.
    """
    told = [
        explanation_text(one, names[one.gpu], width=width, colour=colour)
        for one in estimates
        if one.explanation
    ]
    return "\n\n\n".join(told)


def explanation_text(one: Estimate, name: str, *, width: int = WIDTH, colour: bool = False) -> str:
    """Return one estimate taken apart; empty where it carries no explanation."""
    why = one.explanation
    if why is None:
        return ""
    name = brief(name)
    cards = name if one.replicas == 1 else f"{one.replicas} x {name}"
    sources = words.numbered(
        source
        for source in (
            *(each.source for each in why.constants),
            *(each.source for each in why.peaks),
            *(each.held_source for each in why.peaks),
            *((why.exchange.source,) if why.exchange else ()),
        )
        if source
    )

    def bold(text: str) -> str:
        return paint(wrapped(text, width=width), "bold", colour=colour)

    blocks = [
        bold(f"Why {words.time_words(one.step_s.best)} on {cards}"),
        _sum(why, width),
        bold(_listed(why, one)),
        *(_kernel(number, each, width) for number, each in enumerate(why.kernels, start=1)),
        bold("The rest"),
        _rest(why, width, colour),
        bold("The card"),
        _peaks(why, sources, width),
        bold("The constants"),
        _constants(why, sources, width, colour),
        bold("The range"),
        _range(why, one.step_s, width),
        bold("Sources"),
        pairs([(f"[{number}]", text) for text, number in sources.items()], width=width),
    ]
    return "\n\n".join(block for block in blocks if block)


def _sum(why: Explanation, width: int) -> str:
    """Return the step as a sum, with every number."""
    device, host = words.time_words(why.device_s), words.time_words(why.host_s)
    causes = ", ".join(
        f"{words.CAUSES[cause]} {words.time_words(seconds)}"
        for cause, seconds in why.device_by_cause_s.items()
    )
    delay = f" + {words.time_words(why.exchange.exposed_s)} exchange" if why.exchange else ""
    return pairs(
        [
            ("device", f"{device}, {plural(why.count, 'kernel')} one after the other: {causes}"),
            ("host", f"{host} = {words.host(why.host)}, beside the device" if why.host else
                     "CUDA graphs launch the kernels at once: nothing to wait for"),
            ("exchange", words.exchange(why.exchange) if why.exchange else ""),
            ("step", f"{_SUMS[why.sum_rule]} + {words.time_words(why.fixed_s)} "
                     f"{why.fixed_constant}{delay} = {words.time_words(why.step_s)}"),
            ("measured", _measured(why)),
        ],
        width=width,
    )  # fmt: skip


def _measured(why: Explanation) -> str:
    if why.measured_ratio == 1.0:
        return ""
    whole = words.time_words(why.step_s * why.measured_ratio)
    return f"× {significant(why.measured_ratio)} by your own measurement = {whole}"


def _listed(why: Explanation, one: Estimate) -> str:
    share = sum(each.share_ratio for each in why.kernels)
    listed_s = sum(each.time_s for each in why.kernels)
    of_kernels = ""
    if share < _MOST_OF_STEP and why.device_s:  # else the step is what its kernels are
        of_kernels = f", {percent(listed_s / why.device_s)} of what all kernels take"
    made = "one or a few for each operation" if one.execution in BY_OPERATION else "fused by tfdyno"
    if one.made_by["time"] == "exact":
        made = f"the compiler's for compute capability {one.compiled_for}"
    return (
        f"{len(why.kernels)} kinds of kernel make {percent(share)} of the step{of_kernels} "
        f"(kernels {made}; like ones together, longest first)"
    )


def _kernel(number: int, price: KernelPrice, width: int) -> str:
    time = words.time_words(price.time_s)
    head = wrapped(
        f"{words.title(price)}: {time}, {percent(price.share_ratio)}",
        width=width,
        first=f"{number:>3}  ",
        rest="     ",
    )
    terms = [(words.CAUSES[term.cause], words.formula(term)) for term in price.terms]
    body = pairs(
        [
            ("work", words.work(price)),
            ("layers", words.layers(price, _MOST_LAYERS)),
            *terms,
            ("reached", words.reached(price)),
        ],
        width=width,
        indent=5,
    )
    return f"{head}\n{body}"


def _rest(why: Explanation, width: int, colour: bool) -> str:
    """Return what is not listed, down to the step: the last line closes the sum."""
    rows = [(kind_words(one.kind), f"{one.count:,}", one.time_s) for one in why.others]
    rows.append(("waiting for the host", "", why.waiting_s))
    rows.append((f"once per step, {why.fixed_constant}", "", why.fixed_s))
    if why.exchange:
        rows.append(("exchange of gradients", "", why.exchange.exposed_s))
    rows.sort(key=lambda row: -row[2])
    rows.append(("listed above", f"{sum(one.count for one in why.kernels):,}",
                 sum(one.time_s for one in why.kernels)))  # fmt: skip
    shown = [
        (f"  {name}", count, words.time_words(seconds), percent(seconds / why.step_s))
        for name, count, seconds in (*rows, ("together", f"{why.count:,}", why.step_s))
        if seconds >= _LEAST_SHARE * why.step_s
    ]
    return table(("  what", "launches", "time", "share"), shown, align="<>>>", width=width,
                 elastic=0, colour=colour)  # fmt: skip


def _peaks(why: Explanation, sources: Mapping[str, int], width: int) -> str:
    return pairs(
        [
            (each.name, f"{words.peak(each)} {_cited((each.source, each.held_source), sources)}")
            for each in why.peaks
        ],
        width=width,
    )


def _constants(why: Explanation, sources: Mapping[str, int], width: int, colour: bool) -> str:
    meanings = words.meanings(why)
    rows = [
        (
            f"  {each.name}",
            words.value(each),
            f"{words.origin(each)} {_cited((each.source,), sources)}",
            f"{significant(each.low)}–{significant(each.high)}" if each.fitted else "",
            meanings.get(each.name, each.unit),
        )
        for each in why.constants
    ]
    shown = table(
        ("  name", "value", "how", "range", "stands for"),
        rows,
        align="<><<<",
        width=width,
        elastic=4,
        spare=(3, 4, 2),
        colour=colour,
    )
    told = (
        "fitted: to published measurements, inside its range. at its bound: the fit ended at an "
        "end of the range, so it is not identified: the measurements do not say how large it is. "
        "taken: from the source as it stands."
    )
    return f"{shown}\n\n{wrapped(told, width=width, first='  ', rest='  ')}"


def _range(why: Explanation, step_s: Interval, width: int) -> str:
    basis, ratio = why.width, step_s.high / step_s.best
    low, high = (words.time_words(seconds) for seconds in (step_s.low, step_s.high))
    told = (
        f"{low} to {high}: the best figure divided and multiplied by {significant(ratio)}, the "
        f"half-width {significant(basis.log_half_width_ratio)} in log time of {basis.bucket}, "
        f"learned from {plural(basis.groups, 'model')} on a card. About nine in ten measurements "
        "of cards that a fit had not seen lay inside."
    )
    told = " ".join((told, *(f"{capital(reason)}." for reason in basis.reasons)))
    return wrapped(told, width=width, first="  ", rest="  ")


def _cited(used: Sequence[str], sources: Mapping[str, int]) -> str:
    return "".join(f"[{sources[text]}]" for text in dict.fromkeys(used) if text)
