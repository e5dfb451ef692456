"""Why a step takes so long, as terminal text: the sum, then kernel by kernel, then sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.settings import BY_OPERATION
from tfdyno.core.base.units import significant
from tfdyno.view.base.text import WIDTH, paint, pairs, table, wrapped
from tfdyno.words.base.amounts import percent, plural
from tfdyno.words.base.language import joined, say, say_later
from tfdyno.words.choose import explanation as words
from tfdyno.words.choose.advice import brief
from tfdyno.words.choose.kernels import kind as kind_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfdyno.core.base.interval import Interval
    from tfdyno.core.choose.estimate import Estimate
    from tfdyno.core.choose.explanation import Explanation, KernelPrice

_SUMS = {
    "powers": say_later("(device^4 + host^4)^(1/4)"),
    "slower": say_later("the slower of device and host"),
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
        bold(say("Why {time} on {cards}", time=words.time_words(one.step_s.best), cards=cards)),
        _sum(why, width),
        bold(_listed(why, one)),
        *(_kernel(number, each, width) for number, each in enumerate(why.kernels, start=1)),
        bold(say("The rest")),
        _rest(why, width, colour),
        bold(say("The card")),
        _peaks(why, sources, width),
        bold(say("The constants")),
        _constants(why, sources, width, colour),
        bold(say("The range")),
        _range(why, one.step_s, width),
        bold(say("Sources")),
        pairs([(f"[{number}]", text) for text, number in sources.items()], width=width),
    ]
    return "\n\n".join(block for block in blocks if block)


def _sum(why: Explanation, width: int) -> str:
    """Return the step as a sum, with every number."""
    device, host = words.time_words(why.device_s), words.time_words(why.host_s)
    causes = say(", ").join(
        f"{say(words.CAUSES[cause])} {words.time_words(seconds)}"
        for cause, seconds in why.device_by_cause_s.items()
    )
    on_device = say(
        "{time}, {kernels} one after the other: {causes}",
        time=device,
        kernels=plural(why.count, "kernel"),
        causes=causes,
    )
    beside = say("CUDA graphs launch the kernels at once: nothing to wait for")
    if why.host:
        beside = say("{time} = {sum}, beside the device", time=host, sum=words.host(why.host))
    delay = (
        say(" + {time} exchange", time=words.time_words(why.exchange.exposed_s))
        if why.exchange
        else ""
    )
    return pairs(
        [
            (say("device"), on_device),
            (say("host"), beside),
            (say("exchange"), words.exchange(why.exchange) if why.exchange else ""),
            (
                say("step"),
                f"{say(_SUMS[why.sum_rule])} + {words.time_words(why.fixed_s)} "
                f"{why.fixed_constant}{delay} = {words.time_words(why.step_s)}",
            ),
            (say("measured"), _measured(why)),
        ],
        width=width,
    )


def _measured(why: Explanation) -> str:
    if why.measured_ratio == 1.0:
        return ""
    whole = words.time_words(why.step_s * why.measured_ratio)
    return say(
        "× {ratio} by your own measurement = {whole}",
        ratio=significant(why.measured_ratio),
        whole=whole,
    )


def _listed(why: Explanation, one: Estimate) -> str:
    share = sum(each.share_ratio for each in why.kernels)
    listed_s = sum(each.time_s for each in why.kernels)
    of_kernels = ""
    if share < _MOST_OF_STEP and why.device_s:  # else the step is what its kernels are
        of_kernels = say(
            ", {share} of what all kernels take", share=percent(listed_s / why.device_s)
        )
    made = (
        say("one or a few for each operation")
        if one.execution in BY_OPERATION
        else say("fused by tfdyno")
    )
    if one.made_by["time"] == "exact":
        made = say("the compiler's for compute capability {family}", family=one.compiled_for)
    return say(
        "{count} kinds of kernel make {share} of the step{of_kernels} (kernels "
        "{made}; like ones together, longest first)",
        count=len(why.kernels),
        share=percent(share),
        of_kernels=of_kernels,
        made=made,
    )


def _kernel(number: int, price: KernelPrice, width: int) -> str:
    time = words.time_words(price.time_s)
    head = wrapped(
        f"{words.title(price)}: {time}, {percent(price.share_ratio)}",
        width=width,
        first=f"{number:>3}  ",
        rest="     ",
    )
    terms = [(say(words.CAUSES[term.cause]), words.formula(term)) for term in price.terms]
    body = pairs(
        [
            (say("work"), words.work(price)),
            (say("layers"), words.layers(price, _MOST_LAYERS)),
            *terms,
            (say("reached"), words.reached(price)),
        ],
        width=width,
        indent=5,
    )
    return f"{head}\n{body}"


def _rest(why: Explanation, width: int, colour: bool) -> str:
    """Return what is not listed, down to the step: the last line closes the sum."""
    rows = [(kind_words(one.kind), f"{one.count:,}", one.time_s) for one in why.others]
    rows.append((say("waiting for the host"), "", why.waiting_s))
    rows.append((say("once per step, {constant}", constant=why.fixed_constant), "", why.fixed_s))
    if why.exchange:
        rows.append((say("exchange of gradients"), "", why.exchange.exposed_s))
    rows.sort(key=lambda row: -row[2])
    rows.append((say("listed above"), f"{sum(one.count for one in why.kernels):,}",
                 sum(one.time_s for one in why.kernels)))  # fmt: skip
    shown = [
        (f"  {name}", count, words.time_words(seconds), percent(seconds / why.step_s))
        for name, count, seconds in (*rows, (say("together"), f"{why.count:,}", why.step_s))
        if seconds >= _LEAST_SHARE * why.step_s
    ]
    headers = (say("  what"), say("launches"), say("time"), say("share"))
    return table(headers, shown, align="<>>>", width=width,
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
        (say("  name"), say("value"), say("how"), say("range"), say("stands for")),
        rows,
        align="<><<<",
        width=width,
        elastic=4,
        spare=(3, 4, 2),
        colour=colour,
    )
    told = say(
        "fitted: to published measurements, inside its range. at its bound: the "
        "fit ended at an end of the range, so it is not identified: the "
        "measurements do not say how large it is. taken: from the source as it "
        "stands."
    )
    return f"{shown}\n\n{wrapped(told, width=width, first='  ', rest='  ')}"


def _range(why: Explanation, step_s: Interval, width: int) -> str:
    basis, ratio = why.width, step_s.high / step_s.best
    low, high = (words.time_words(seconds) for seconds in (step_s.low, step_s.high))
    told = say(
        "{low} to {high}: the best figure divided and multiplied by {ratio}, the "
        "half-width {half} in log time of {bucket}, learned from "
        "{models} on a card. About nine in ten measurements of cards that a fit "
        "had not seen lay inside.",
        low=low,
        high=high,
        ratio=significant(ratio),
        half=significant(basis.log_half_width_ratio),
        bucket=basis.bucket,
        models=plural(basis.groups, "model"),
    )
    told = joined((told, *map(words.range_reason, basis.reasons)))
    return wrapped(told, width=width, first="  ", rest="  ")


def _cited(used: Sequence[str], sources: Mapping[str, int]) -> str:
    return "".join(f"[{sources[text]}]" for text in dict.fromkeys(used) if text)
