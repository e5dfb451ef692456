"""How a server should batch so that its slowest answers keep a promise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.model.serving.queue import (
    MOST_BUSY_RATIO,
    Load,
    full_rate_per_s,
    load_at,
    service_times,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfdyno.model.serving.queue import Floats

ENOUGH_RATIO = 0.98
"""The share of the greatest rate at which a smaller limit is taken, for it bounds the wait when
more arrives than was planned for."""
DELAY_RATIO = 0.05
"""The share of the promised time that a wait for company may take."""
_HALVINGS = 6
_SLOWEST_PER_S = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Batching:
    """How many rows go together at most, how long the first waits for others, and why."""

    max_batch_size: int
    max_delay_s: float
    reason: str
    """One sentence."""
    holds: bool = True
    """Whether the promised time can be kept at all."""
    most_per_s: float = 0.0
    """Rows per second at which the promise is just kept; 0 where it never is."""
    load: Load | None = None
    """What a row meets at the rate that was named; None without one, or where it is too much."""


def choose(
    latency_s_by_batch: Mapping[int, float],
    p99_s: float,
    rate: float | None = None,
    *,
    enough_per_s: float = float("inf"),
) -> Batching:
    """Return the limit and delay with the largest throughput whose p99 still holds.

    The limit is the smallest that carries 98 % of the greatest rate at which 99 of 100 rows are
    answered in time, by the queue of ``serving_queue``. The delay is half of a single row's time,
    5 % of the promise at most, and none where that rate would then be too much: answers of a batch
    return together and so do the next requests, which then share a batch again.

    Args:
        latency_s_by_batch: Rows of a batch to the seconds of a call, as measured or estimated.
        p99_s: What 99 of 100 answers may take.
        rate: Rows per second that are expected; None where nobody knows.
        enough_per_s: More than so many cannot come, for something else holds them back.

    Returns:
        The choice; with ``holds`` false, and a limit of one row, where not even that is in time.

    Raises:
        ValueError: The promise or the rate is not above 0, or the table has no time in it.
    """
    if not 0.0 < p99_s < float("inf") or (rate is not None and not 0.0 < rate < float("inf")):
        raise ValueError(f"need a p99 and a rate above 0, got {p99_s}, {rate}")
    service_s = service_times(latency_s_by_batch)
    most = most_per_s(service_s, p99_s, enough_per_s=enough_per_s)
    if most <= 0.0:
        return _too_slow(float(service_s[0]), p99_s)
    at_most = ENOUGH_RATIO * most
    limit = next(
        (size for size in _limits(len(service_s)) if _holds(service_s[:size], at_most, p99_s)),
        len(service_s),
    )
    within = service_s[:limit]
    delay_s = _delay_s(within, p99_s, at_most)
    load = load_at(within, rate, delay_s) if rate else None
    return Batching(
        max_batch_size=limit,
        max_delay_s=delay_s,
        reason=_reason(within, delay_s, p99_s, at_most, rate, load),
        holds=rate is None or (load is not None and load.p99_s <= p99_s),
        most_per_s=at_most,
        load=load,
    )


def most_per_s(service_s: Floats, p99_s: float, *, enough_per_s: float = float("inf")) -> float:
    """Return the greatest rate of rows with 99 of 100 answered in time; 0.0 where none is."""
    if not _holds(service_s, _SLOWEST_PER_S, p99_s):
        return 0.0
    low, high = 0.0, min(_bound_per_s(service_s, p99_s), enough_per_s)
    if _holds(service_s, high, p99_s):
        return high
    if _holds(service_s, high / 2.0, p99_s):
        low = high / 2.0
    for _ in range(_HALVINGS if low else 2 * _HALVINGS):
        middle = (low + high) / 2.0
        if _holds(service_s, middle, p99_s):
            low = middle
        else:
            high = middle
    return low


def _bound_per_s(service_s: Floats, p99_s: float) -> float:
    """Return a rate that is surely too much, to search below.

    A server that is always busy settles where ``n = rate * s(n)`` rows come during a batch of n,
    and the slowest row waits for one such batch and runs in the next: longer than one and a half.
    """
    sizes = int((service_s * 1.5 <= p99_s).sum())
    settled = sizes / float(service_s[sizes - 1]) if sizes else 1.0 / float(service_s[0])
    most = 0.999 * MOST_BUSY_RATIO * full_rate_per_s(service_s)
    return min(most, 1.05 * settled) if sizes < len(service_s) else most


def _holds(service_s: Floats, rate: float, p99_s: float, delay_s: float = 0.0) -> bool:
    if rate > _bound_per_s(service_s, p99_s):
        return False
    load = load_at(service_s, rate, delay_s)
    return load is not None and load.p99_s <= p99_s


def _limits(most: int) -> list[int]:
    """List 1, 2, 4, … and the largest batch that is known."""
    return sorted({*(2**power for power in range(most.bit_length())), most})


def _delay_s(service_s: Floats, p99_s: float, rate: float) -> float:
    """Round to a tenth of a millisecond; none where the rate would then be too much."""
    if len(service_s) == 1:
        return 0.0
    delay_s = int(min(float(service_s[0]) / 2.0, DELAY_RATIO * p99_s) * 1e4) / 1e4
    kept = delay_s and _holds(service_s, rate, p99_s, delay_s)
    return delay_s if kept else 0.0


def _too_slow(one_s: float, p99_s: float) -> Batching:
    why = (
        f"a single row takes {_ms(one_s)} by itself"
        if one_s > p99_s
        else f"a single row takes {_ms(one_s)}, which leaves no room to wait for another"
    )
    return Batching(
        max_batch_size=1,
        max_delay_s=0.0,
        reason=f"No batching keeps {_ms(p99_s)}: {why}.",
        holds=False,
    )


def _reason(
    service_s: Floats,
    delay_s: float,
    p99_s: float,
    at_most: float,
    rate: float | None,
    load: Load | None,
) -> str:
    limit = len(service_s)
    gain = full_rate_per_s(service_s) * float(service_s[0])
    together = (
        f"Up to {limit} rows together take {_ms(float(service_s[-1]))}, {gain:.1f} times the rows "
        f"per second of one by one"
        if limit > 1
        else f"One row at a time takes {_ms(float(service_s[0]))}, and more together would not help"
    )
    first = (
        f"the first waits up to {_ms(delay_s)} for others" if delay_s else "none waits for others"
    )
    kept = f"{_ms(p99_s)} is kept for 99 of 100 up to {_per_s(at_most)}"
    return f"{together}; {first}; {kept}{_at(rate, load, p99_s)}."


def _at(rate: float | None, load: Load | None, p99_s: float) -> str:
    if rate is None:
        return ""
    if load is None:
        return f", and {_per_s(rate)} is more than one server can answer"
    word = "is expected" if load.p99_s <= p99_s else "is too slow"
    return f", and at {_per_s(rate)} a p99 of {_ms(load.p99_s)} {word}"


def _per_s(rate: float) -> str:
    return f"{rate:,.0f} rows/s" if rate >= 10.0 else f"{rate:.2g} rows/s"


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds < 1.0 else f"{seconds:.3g} s"
