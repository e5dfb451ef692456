"""Words and formulas of an explanation: one kernel, one term, one constant at a time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tfdyno.core.base.units import format_si, significant
from tfdyno.words.base.amounts import percent, plural, short_time
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
    "compute": "arithmetic",
    "memory": "memory traffic",
    "overlap": "bytes read again",
    "launch": "launching",
}
_SHAPES = {"grouped": "grouped", "depthwise": "depthwise", "volume": "three-dimensional"}
_LEAST_S = 1e-9
_LEAST = 1e-6
"""A fitted value below this is shown as the 0 that it is bounded by."""
NOT_IDENTIFIED = "at its bound"


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
        parts.append("by Winograd's algorithm")
    parts.append(price.direction.replace("_", " ") or price.phase)
    if price.direction == "forward" and price.phase != "forward":
        parts.append(price.phase)
    return ", ".join(parts)


def _named(price: KernelPrice) -> str:
    if price.kind == "convolution":
        window = "×".join(map(str, price.dims.get("window", ())))
        return " ".join(filter(None, (_SHAPES.get(price.shape), "convolution", window)))
    if price.kind == "gemm":
        return "matrix product"
    return kind_words(price.kind) + (" along rows" if price.shape == "rows" else "")


def _sizes(price: KernelPrice) -> list[str]:
    dims = {name: "×".join(map(str, sizes)) for name, sizes in price.dims.items() if sizes}
    if price.kind == "gemm" and {"m", "n", "k"} <= set(dims):
        several = f"{dims['batch']} of " if dims.get("batch", "1") != "1" else ""
        return [f"{several}{dims['m']}×{dims['k']} by {dims['k']}×{dims['n']}"]
    if price.kind == "convolution" and {"cin", "cout"} <= set(dims):
        stride = price.dims.get("stride", ())
        return [
            f"{dims['cin']} → {dims['cout']} channels",
            *([dims["output"]] if "output" in dims else []),
            *([f"stride {max(stride)}"] if stride and max(stride) > 1 else []),
            *([f"{dims['groups']} groups"] if price.shape == "grouped" else []),
        ]
    if price.kind == "window" and "window" in dims:
        return [f"windows of {dims['window']}"]
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
    each = low if low == high else f"{low} to {high}"
    return f"{', '.join(told)} ({each} each)"


def layers(price: KernelPrice, most: int) -> str:
    """Return the first layers by name, the others counted."""
    if not price.layers:
        return "none of the model's"
    shown, left = price.layers[:most], len(price.layers) - most
    return ", ".join(shown) + (f" and {left:,} more" if left > 0 else "")


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
    shares = [f"{percent(price.bandwidth_ratio)} of the bandwidth"]
    if price.peak_ratio is not None:
        less = " (Winograd multiplies less)" if price.route == "Winograd" else ""
        shares.insert(0, f"{percent(price.peak_ratio)} of the peak{less}")
    return f"{' and '.join(shares)}; held by {CAUSES[price.bound_by]}"


def exchange(one: Exchange) -> str:
    """Return the exchange of gradients with its numbers put in."""
    rounds, buckets = 2 * (one.replicas - 1), one.payload_bytes / max(one.bucket_bytes, 1.0)
    return (
        f"{rounds}/{one.replicas} × {format_si(one.payload_bytes, 'B')} / "
        f"({format_si(one.bus_bytes_per_s, 'B')}/s{_multiplied(one.shares)} of {one.link}) = "
        f"{time_words(one.sent_s)}; {significant(buckets)} buckets × {_hops(one)} "
        f"= {time_words(one.hops_s)}; waiting for the slowest card "
        f"{time_words(one.waiting_s)}, until all hosts start {time_words(one.start_s)}; "
        f"the backward pass hides up to {time_words(one.hidden_s)}, "
        f"so {time_words(one.exposed_s)} delay the step"
    )


def _hops(one: Exchange) -> str:
    """Return the way of a small message: a ring in every node, a tree between nodes."""
    inside = 2 * (one.replicas // one.nodes - 1)
    ways = [f"{inside} hops × {time_words(one.latency_s)}"] if inside or one.nodes == 1 else []
    if one.nodes > 1:
        between = significant(2 * math.log2(one.nodes))
        ways.append(f"{between} hops × {time_words(one.network_latency_s)}")
    return ways[0] if len(ways) == 1 else f"({' + '.join(ways)})"


def peak(one: Peak) -> str:
    """Return a rate of the data sheet and what it is the product of."""
    rate = f"{format_si(one.rate_per_s, one.unit)}/s"
    if not one.sm_count:
        return rate
    held = f" × {significant(one.held_ratio)} held under load" if one.held_ratio != 1.0 else ""
    return (
        f"{rate} = {one.sm_count} SMs × {one.flops_per_clock:,.0f} FLOP a clock × "
        f"{format_si(one.clock_hz, 'Hz')}{held}"
    )


def origin(one: Constant) -> str:
    """Write where a value comes from in two words: ``fitted``, ``at its bound``, ``taken``."""
    if not one.fitted:
        return "taken"
    return "fitted" if one.identified else NOT_IDENTIFIED


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


def meanings(why: Explanation) -> dict[str, str]:
    """Return what the constants of the formulas stand for."""
    factors = [
        factor
        for price in why.kernels
        for term in price.terms
        for factor in (*term.more, *term.shares)
    ]
    factors += why.exchange.shares if why.exchange else ()
    return {factor.constant: factor.name for factor in reversed(factors)}


def _multiplied(factors: Sequence[Factor]) -> str:
    return "".join(
        f" × {significant(one.factor_ratio)} {one.constant or one.name}" for one in factors
    )
