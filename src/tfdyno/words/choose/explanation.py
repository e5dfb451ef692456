"""Words and formulas of an explanation: one kernel, one term, one constant at a time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tfdyno.core.base.units import format_si, significant
from tfdyno.words.base.amounts import capital, percent, plural, short_time
from tfdyno.words.base.language import retold, say, say_later
from tfdyno.words.base.names import named
from tfdyno.words.choose.kernels import kind as kind_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tfdyno.core.choose.explanation import (
        Constant,
        Exchange,
        Explanation,
        Factor,
        HostCost,
        KernelPrice,
        Peak,
        Term,
    )

CAUSES = {
    "compute": say_later("arithmetic"),
    "memory": say_later("memory traffic"),
    "overlap": say_later("bytes read again"),
    "launch": say_later("launching"),
}
_SHAPES = {
    "grouped": say_later("grouped"),
    "depthwise": say_later("depthwise"),
    "volume": say_later("three-dimensional"),
}
_LEAST_S = 1e-9
_LEAST = 1e-6
"""A fitted value below this is shown as the 0 that it is bounded by."""
NOT_IDENTIFIED = say_later("at its bound")


def time_words(seconds: float) -> str:
    """Write three digits: ``9.94 ms``, ``8 µs``, ``1.2 s``."""
    return short_time(seconds, 3) if seconds >= _LEAST_S else "0 µs"


def host(costs: Iterable[HostCost]) -> str:
    """Write ``159 × 6 µs host_xla + 53 × 50 µs host_xla_convolution``."""
    return " + ".join(f"{one.count:,} × {time_words(one.each_s)} {one.constant}" for one in costs)


def title(price: KernelPrice) -> str:
    """Name a launch: ``convolution 3×3, 64 → 64 channels, 56×56, f16, weight gradient``."""
    parts = [_named(price), *_sizes(price), price.dtype]
    if price.route == "Winograd":
        parts.append(say("by Winograd's algorithm"))
    parts.append(named(price.direction.replace("_", " ") or price.phase))
    if price.direction == "forward" and price.phase != "forward":
        parts.append(named(price.phase))
    return ", ".join(parts)


def _named(price: KernelPrice) -> str:
    if price.kind == "convolution":
        window = "×".join(map(str, price.dims.get("window", ())))
        return " ".join(
            filter(None, (say(_SHAPES.get(price.shape, "")), say("convolution"), window))
        )
    if price.kind == "gemm":
        return say("matrix product")
    return kind_words(price.kind) + (say(" along rows") if price.shape == "rows" else "")


def _sizes(price: KernelPrice) -> list[str]:
    dims = {name: "×".join(map(str, sizes)) for name, sizes in price.dims.items() if sizes}
    if price.kind == "gemm" and {"m", "n", "k"} <= set(dims):
        several = say("{count} of ", count=dims["batch"]) if dims.get("batch", "1") != "1" else ""
        return [
            say(
                "{several}{m}×{k} by {k}×{n}",
                several=several,
                m=dims["m"],
                k=dims["k"],
                n=dims["n"],
            )
        ]
    if price.kind == "attention" and "queries" in dims:
        return [
            say(
                "{queries} by {keys} tokens, {heads} heads of {width}",
                queries=dims["queries"],
                keys=dims["keys"],
                heads=dims["heads"],
                width=dims["head_dim"],
            )
        ]
    if price.kind == "convolution" and {"cin", "cout"} <= set(dims):
        stride = price.dims.get("stride", ())
        return [
            say("{cin} → {cout} channels", cin=dims["cin"], cout=dims["cout"]),
            *([dims["output"]] if "output" in dims else []),
            *([say("stride {stride}", stride=max(stride))] if stride and max(stride) > 1 else []),
            *([say("{groups} groups", groups=dims["groups"])] if price.shape == "grouped" else []),
        ]
    if price.kind == "window" and "window" in dims:
        return [say("windows of {window}", window=dims["window"])]
    return []


def work(price: KernelPrice) -> str:
    """Write ``69 launches, 5.76 GFLOP, 7.55 GB (0.2–822 MB each)``."""
    told = [plural(price.count, "launch", "launches")]
    if price.flops:
        told.append(format_si(price.flops, "FLOP"))
    told.append(format_si(price.traffic_bytes, "B"))
    if price.count == 1:
        return ", ".join(told)
    low, high = format_si(price.smallest_bytes, "B"), format_si(price.largest_bytes, "B")
    each = low if low == high else say("{low} to {high}", low=low, high=high)
    return say("{told} ({each} each)", told=", ".join(told), each=each)


def layers(price: KernelPrice, most: int) -> str:
    """Return the first layers by name, the others counted."""
    if not price.layers:
        return say("none of the model's")
    shown, left = price.layers[:most], len(price.layers) - most
    return ", ".join(shown) + (say(" and {left:,} more", left=left) if left > 0 else "")


def formula(term: Term) -> str:
    """Write a term with its numbers: ``7.55 GB / (1.56 TB/s × 0.55 e_reduce) = 8.83 ms``."""
    more = _multiplied(term.more)
    if not term.peak:
        amount = f"{term.amount:,.0f}{more} × {time_words(term.each_s)} {term.each}"
        return f"{amount} = {time_words(term.time_s)}"
    rate = f"{format_si(term.rate_per_s, term.unit)}/s{_multiplied(term.shares)}"
    return f"{format_si(term.amount, term.unit)}{more} / ({rate}) = {time_words(term.time_s)}"


def reached(price: KernelPrice) -> str:
    """Write utilisation, and what holds the kernel."""
    shares = [
        say("{bandwidth_ratio} of the bandwidth", bandwidth_ratio=percent(price.bandwidth_ratio))
    ]
    if price.peak_ratio is not None:
        less = say(" (Winograd multiplies less)") if price.route == "Winograd" else ""
        shares.insert(
            0,
            say("{peak_ratio} of the peak{less}", peak_ratio=percent(price.peak_ratio), less=less),
        )
    return say(
        "{shares}; held by {cause}",
        shares=say(" and ").join(shares),
        cause=say(CAUSES[price.bound_by]),
    )


def exchange(one: Exchange) -> str:
    """Return the exchange of gradients with its numbers put in."""
    rounds, buckets = 2 * (one.replicas - 1), one.payload_bytes / max(one.bucket_bytes, 1.0)
    return say(
        "{rounds}/{replicas} × {payload_bytes} / ({bus_bytes_per_s}/s{multiplied} "
        "of {link}) = {sent_s}; {buckets} buckets × {hops} = {hops_s}; waiting for "
        "the slowest card {waiting_s}, until all hosts start {start_s}; the "
        "backward pass hides up to {hidden_s}, so {exposed_s} delay the step",
        rounds=rounds,
        replicas=one.replicas,
        payload_bytes=format_si(one.payload_bytes, "B"),
        bus_bytes_per_s=format_si(one.bus_bytes_per_s, "B"),
        multiplied=_multiplied(one.shares),
        link=one.link,
        sent_s=time_words(one.sent_s),
        buckets=significant(buckets),
        hops=_hops(one),
        hops_s=time_words(one.hops_s),
        waiting_s=time_words(one.waiting_s),
        start_s=time_words(one.start_s),
        hidden_s=time_words(one.hidden_s),
        exposed_s=time_words(one.exposed_s),
    )


def _hops(one: Exchange) -> str:
    """Return the way of a small message: a ring in every node, a tree between nodes."""
    inside = 2 * (one.replicas // one.nodes - 1)
    ways = (
        [say("{inside} hops × {latency_s}", inside=inside, latency_s=time_words(one.latency_s))]
        if inside or one.nodes == 1
        else []
    )
    if one.nodes > 1:
        between = significant(2 * math.log2(one.nodes))
        ways.append(
            say(
                "{between} hops × {network_latency_s}",
                between=between,
                network_latency_s=time_words(one.network_latency_s),
            )
        )
    return ways[0] if len(ways) == 1 else f"({' + '.join(ways)})"


def peak(one: Peak) -> str:
    """Return a rate of the data sheet and what it is the product of."""
    rate = f"{format_si(one.rate_per_s, one.unit)}/s"
    if not one.sm_count:
        return rate
    held = (
        say(" × {held_ratio} held under load", held_ratio=significant(one.held_ratio))
        if one.held_ratio != 1.0
        else ""
    )
    return say(
        "{rate} = {sm_count} SMs × {flops_per_clock:,.0f} FLOP a clock × {clock_hz}{held}",
        rate=rate,
        sm_count=one.sm_count,
        flops_per_clock=one.flops_per_clock,
        clock_hz=format_si(one.clock_hz, "Hz"),
        held=held,
    )


def origin(one: Constant) -> str:
    """Write where a value comes from in two words: ``fitted``, ``at its bound``, ``taken``."""
    if not one.fitted:
        return say("taken")
    return say("fitted") if one.identified else say(NOT_IDENTIFIED)


def value(one: Constant) -> str:
    """Return the value as formulas show it: seconds and bytes in the unit that reads best."""
    unit = one.unit.split()[0]
    if unit == "s":
        return time_words(one.value)
    if unit == "bytes":
        return format_si(one.value, "B")
    return significant(one.value) if abs(one.value) >= _LEAST else "0"


def numbered(sources: Iterable[str]) -> dict[str, int]:
    """Return every source once, with its number from 1."""
    return {text: number for number, text in enumerate(dict.fromkeys(sources), start=1)}


RANGE_REASONS = (
    say_later("nothing was measured of {bucket}: the widest that is alike"),
    say_later("launches and the host hold the step: measured steps of this kind vary more"),
    say_later("at least ±40 %: no card of compute capability {capability} was measured under "
              "{execution}"),
    say_later("too few steps were measured of {bucket}: as wide as all steps need"),
    say_later("wider by {more}: no card of compute capability {capability} was measured with "
              "software of today"),
    say_later("up to {more} more: what the host takes of inference without XLA was not measured"),
)  # fmt: skip
"""Why a range is as wide as it is, as ``model.time.intervals`` gives it."""


def range_reason(reason: str) -> str:
    """Return a reason for the width of a range as a sentence."""
    return capital(retold(reason, RANGE_REASONS)) + say(".")


def meanings(why: Explanation) -> dict[str, str]:
    """Return what the constants of the formulas stand for."""
    factors = [
        factor
        for price in why.kernels
        for term in price.terms
        for factor in (*term.more, *term.shares)
    ]
    factors += why.exchange.shares if why.exchange else ()
    return {factor.constant: named(factor.name) for factor in reversed(factors)}


def _multiplied(factors: Sequence[Factor]) -> str:
    return "".join(
        f" × {significant(one.factor_ratio)} {one.constant or named(one.name)}" for one in factors
    )
