"""Latency of a server that batches what waits: the bulk-service queue M/D^(b)/1 with a limit.

Rows arrive at random (Poisson). A free server takes up to ``B`` of those that wait and needs the
fixed time ``s(b)`` for ``b`` of them. With a delay ``D`` the oldest row waits that long for company
before a batch that is not full starts, as Triton's dynamic batcher has it.

The rows that wait when a batch starts are a Markov chain, solved for its steady state. From it
follows what a row meets: the rest of the batch under way, whole batches that go first, and its own.
Arrivals during a batch are uniform over it, and the others that arrive are Poisson whatever the
row's own moment is, so most of the sum is exact.

Error:
    Where a row waits for more than one batch, the size of its own is taken at its mean. With a
    delay, a batch that fills up early is taken to start at the mean of that moment, and rows left
    behind by a full batch are taken to have waited the delay already. Within 2 % of a simulation up
    to 85 % of the full rate where the delay is below the time that a full batch takes to gather.

Source:
    Bailey, "On queueing processes with bulk service", J. R. Stat. Soc. B 16(1), 1954: the chain at
    the ends of service. Neuts, "A general class of bulk queues with Poisson input", Ann. Math.
    Stat. 38(3), 1967: service times that depend on the batch. Inoue, "Queueing analysis of
    GPU-based inference servers with dynamic batching", Perform. Eval. 147, 2021: the same without
    a limit, with a bound of the mean that the tests hold this against.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, log, sqrt
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

MOST_BUSY_RATIO = 0.98
"""The share of a full server's rate beyond which a steady state takes longer to settle than a day's
peak."""
_MOMENTS = 32
"""Moments of a batch under way at which a row may arrive: its length over this is resolved."""
_RELATIVE = 1.002
"""Ratio of neighbouring bins of latency."""
_NEGLIGIBLE = 1e-8
_MOST_STATES = 4096
_SMALLEST = 1e-300


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What a row meets at one rate of arrivals, once the server has settled."""

    rate_per_s: float
    p50_s: float
    p99_s: float
    mean_s: float
    """The mean time from arrival to answer: waiting and service."""
    busy_ratio: float
    """Share of the time that a batch is under way."""
    mean_batch: float
    """Rows in a batch, over batches."""


def service_times(latency_s_by_batch: Mapping[int, float]) -> Floats:
    """Return the seconds of 1, 2, … rows, on straight lines between the sizes that are known.

    A larger batch is never taken to be faster: a table that says so is raised to what a smaller one
    took. Sizes below the smallest known take as long as that does.

    Args:
        latency_s_by_batch: Rows of a batch to its seconds.

    Raises:
        ValueError: Nothing is known, or a size or time is not above 0.
    """
    sizes = sorted(latency_s_by_batch)
    times = [latency_s_by_batch[size] for size in sizes]
    if not sizes or sizes[0] < 1 or not all(0.0 < time < float("inf") for time in times):
        raise ValueError(f"need batches of 1 row and more with times above 0, got {sizes}, {times}")
    between = np.interp(np.arange(1, sizes[-1] + 1), sizes, times)
    return np.maximum.accumulate(between)


def full_rate_per_s(service_s: Floats) -> float:
    """Return rows per second of a server whose every batch is full: no more can be answered."""
    return float(len(service_s) / service_s[-1])


def load_at(service_s: Floats, rate_per_s: float, delay_s: float = 0.0) -> Load | None:
    """Return what a row meets on one server; None where the server cannot keep up.

    Args:
        service_s: Seconds of a batch of 1, 2, … up to the limit, never falling.
        rate_per_s: Rows that arrive per second, above 0.
        delay_s: Longest wait of the oldest row for company.

    Raises:
        ValueError: A rate or time is out of range.
    """
    if rate_per_s <= 0.0 or delay_s < 0.0:
        raise ValueError(f"need a rate above 0 and no negative delay, got {rate_per_s}, {delay_s}")
    if rate_per_s >= MOST_BUSY_RATIO * full_rate_per_s(service_s):
        return None
    queue = _Queue(service_s, rate_per_s, delay_s)
    starts = queue.starts()
    if starts is None:
        return None
    return queue.load(starts)


class _Queue:
    """One server at one rate; a *start* is the number of rows that wait when a batch starts."""

    def __init__(self, service_s: Floats, rate_per_s: float, delay_s: float) -> None:
        self.service_s, self.rate = service_s, rate_per_s
        self.limit = len(service_s)
        # a batch of one waits for nobody, and no batch longer than it takes to fill
        fills_s = self.limit / rate_per_s if self.limit > 1 else 0.0
        self.delay = min(delay_s, fills_s)
        self.gathered = _poisson(rate_per_s * delay_s, self.limit + _reach(rate_per_s * delay_s))
        """Law of the rows that come within the delay after the first one."""

    def starts(self) -> Floats | None:
        """Return probability of 1, 2, … rows waiting at a start; None where it does not settle."""
        states = self._states()
        while states <= _MOST_STATES:
            found = _steady(self._transitions(states))
            if float(found[-max(2, states // 20) :].sum()) < _NEGLIGIBLE * 100:
                return found
            states *= 2
        return None

    def _states(self) -> int:
        """Count states enough for the fixed point of ``n = rate * s(n)``, with ten deviations."""
        usual = 1.0
        for _ in range(60):
            taken = min(self.limit, max(1, ceil(usual)))
            usual = max(1.0, self.rate * float(self.service_s[taken - 1]))
        usual = max(usual, 1.0 + self.rate * self.delay)
        return min(_MOST_STATES, ceil(usual + 10.0 * sqrt(usual) + 24.0))

    def _transitions(self, states: int) -> Floats:
        """Fill row ``n - 1`` with the next start's law after ``n`` rows; the rest in the last."""
        alone = min(states, self.limit)
        chain = np.zeros((states, states))
        for taken in range(1, alone + 1):
            chain[taken - 1] = self._after(taken, states)
        if states > self.limit:
            during = _poisson(self.rate * float(self.service_s[-1]), states)
            for left in range(1, states - self.limit + 1):
                row = chain[self.limit + left - 1]
                row[left - 1 :] = during[: states - left + 1]
                row[-1] += max(0.0, 1.0 - row.sum())
        return chain

    def _after(self, taken: int, states: int) -> Floats:
        """Return the law of the start after a batch that left nobody behind."""
        gathers, crowd = self._split(taken, states + 1)
        law = crowd[1:].copy()
        law[-1] += max(0.0, 1.0 - gathers - crowd.sum())
        reach = min(self.limit, states)
        law[:reach] += gathers * self.gathered[:reach]
        law[reach - 1] += gathers * float(self.gathered[reach:].sum())
        return law

    def _split(self, taken: int, length: int) -> tuple[float, Floats]:
        """Return the chance that the next batch waits for company, and the law of rows if not.

        It starts at once if a row arrived more than the delay before this one ended. Else it starts
        the delay after the first arrival, during this batch or later, with whoever joined.
        """
        service = float(self.service_s[taken - 1])
        early = max(0.0, service - self.delay)
        gathers = float(np.exp(-self.rate * early))
        crowd = _poisson(self.rate * service, length)
        late = gathers * _poisson(self.rate * min(self.delay, service), length)
        return gathers, np.maximum(0.0, crowd - late)

    def load(self, starts: Floats) -> Load:
        """Sum over what rows meet, each weighted by how many rows of a batch's time meet it."""
        tally = _Tally(float(self.service_s[0]))
        alone = starts[: self.limit]
        for taken in np.flatnonzero(alone > _NEGLIGIBLE) + 1:
            self._meet(tally, int(taken), float(alone[taken - 1]))
        self._gather(tally, alone)
        if len(starts) > self.limit:
            self._meet_left(tally, starts[self.limit :])
        rows = np.minimum(np.arange(1, len(starts) + 1), self.limit)
        taken_mean = float(starts @ rows)
        busy_s = float(starts @ self.service_s[rows - 1])
        return Load(
            rate_per_s=self.rate,
            p50_s=tally.quantile(0.50),
            p99_s=tally.quantile(0.99),
            mean_s=tally.mean(),
            busy_ratio=min(1.0, busy_s * self.rate / taken_mean),
            mean_batch=taken_mean,
        )

    def _meet(self, tally: _Tally, taken: int, chance: float) -> None:
        """Count rows that arrive during a batch which left nobody behind and start when it ends."""
        service = float(self.service_s[taken - 1])
        rest = service * (np.arange(_MOMENTS) + 0.5) / _MOMENTS
        reach = self.limit + _reach(self.rate * service)
        gathers, after_early = self._split(taken, reach)
        # a row that comes earlier than the delay before the end starts at the end by itself
        anyway = _poisson(self.rate * service, reach)
        weight = chance * self.rate * service / _MOMENTS
        for moments, others in ((rest >= self.delay, anyway), (rest < self.delay, after_early)):
            if not moments.any() or (others is after_early and gathers >= 1.0):
                continue
            self._wait(tally, rest[moments], service, others, weight)

    def _meet_left(self, tally: _Tally, left: Floats) -> None:
        """Count rows that arrive during a full batch which left 1, 2, … behind."""
        chance = float(left.sum())
        if chance <= _NEGLIGIBLE:
            return
        service = float(self.service_s[-1])
        behind = np.concatenate([[0.0], left / chance])
        during = _poisson(self.rate * service, 2 * self.limit + len(behind))
        others = np.convolve(behind, during)
        rest = service * (np.arange(_MOMENTS) + 0.5) / _MOMENTS
        weight = chance * self.rate * service / _MOMENTS
        self._wait(tally, rest, service, others, weight, left=behind)

    def _wait(
        self,
        tally: _Tally,
        rest: Floats,
        service: float,
        others: Floats,
        weight: float,
        *,
        left: Floats | None = None,
    ) -> None:
        """Count rows that come with ``rest`` s of a batch to go and start at its end or later."""
        joined = others[: self.limit]
        sizes = np.flatnonzero(joined > _NEGLIGIBLE)
        tally.add(rest[:, None] + self.service_s[None, sizes], weight * joined[None, sizes])
        overflow = float(others[self.limit :].sum())
        if weight * len(rest) * overflow <= _NEGLIGIBLE * self.limit:
            return
        passed = service - rest
        ahead = _poissons(self.rate * passed, self.limit + _reach(self.rate * service))
        if left is not None:
            ahead = np.stack([np.convolve(left, row) for row in ahead])
        # more than one batch holds, and yet few enough are ahead of the row: it is in the first
        first = np.maximum(0.0, overflow - ahead[:, self.limit :].sum(axis=1))
        tally.add(rest + float(self.service_s[-1]), weight * first)
        self._later(tally, rest, weight * ahead)

    def _later(self, tally: _Tally, rest: Floats, weights: Floats) -> None:
        """Count rows with whole batches ahead: ``weights`` by moment and number of rows ahead."""
        positions = np.flatnonzero(weights.sum(axis=0) > _NEGLIGIBLE)
        positions = positions[positions >= self.limit]
        waits = rest[:, None] + (positions // self.limit)[None] * self.service_s[-1]
        rows = np.minimum(self.limit, positions % self.limit + 1 + self.rate * waits)
        own = np.interp(rows, np.arange(1, self.limit + 1), self.service_s)
        tally.add(waits + own, weights[:, positions])

    def _gather(self, tally: _Tally, alone: Floats) -> None:
        """Count rows of the batches that wait for company: the first one all of the delay."""
        times = [self._split(taken, 1)[0] for taken in range(1, len(alone) + 1)]
        chance = float(alone @ np.array(times))
        for joined in np.flatnonzero(self.gathered > _NEGLIGIBLE):
            size = min(self.limit, int(joined) + 1)
            share = chance * float(self.gathered[joined])
            # a full batch does not wait on: on average its last row comes at this part of the delay
            wait = self.delay * min(1.0, self.limit / (joined + 1))
            own = float(self.service_s[size - 1])
            tally.add(np.array([wait + own]), np.array([share]))
            if size > 1:
                moments = wait * (np.arange(_MOMENTS) + 0.5) / _MOMENTS
                tally.add(moments + own, np.full(_MOMENTS, share * (size - 1) / _MOMENTS))


class _Tally:
    """Latencies with weights, in bins whose width is a fixed ratio."""

    def __init__(self, shortest_s: float) -> None:
        self._shortest = shortest_s * 0.5
        self._weights = np.zeros(2048)
        self._sum_s = 0.0

    def add(self, seconds: Floats, weights: Floats) -> None:
        seconds, weights = np.broadcast_arrays(seconds, weights)
        bins = (np.log(seconds / self._shortest) / log(_RELATIVE)).astype(np.int64).ravel()
        if bins.size == 0:
            return
        found = np.bincount(np.maximum(bins, 0), weights=weights.ravel())
        if len(found) > len(self._weights):
            self._weights = np.pad(self._weights, (0, 2 * len(found) - len(self._weights)))
        self._weights[: len(found)] += found
        self._sum_s += float((seconds * weights).sum())

    def quantile(self, share: float) -> float:
        summed = np.cumsum(self._weights)
        index = int(np.searchsorted(summed, share * summed[-1]))
        return float(self._shortest * _RELATIVE ** (index + 0.5))

    def mean(self) -> float:
        return self._sum_s / float(self._weights.sum())


def _steady(chain: Floats) -> Floats:
    """Return the law that a step of the chain leaves as it is."""
    states = len(chain)
    balance = chain.T - np.eye(states)
    balance[-1] = 1.0
    right = np.zeros(states)
    right[-1] = 1.0
    law: Floats = np.maximum(0.0, np.linalg.solve(balance, right))
    return law


def _reach(mean: float) -> int:
    """Return a count that arrivals practically never exceed."""
    return ceil(mean + 10.0 * sqrt(mean) + 12.0)


def _poisson(mean: float, length: int) -> Floats:
    """Return probability of 0, 1, … arrivals, ``length`` of them; what lies beyond is left out."""
    row: Floats = _poissons(np.array([mean]), length)[0]
    return row


def _poissons(means: Floats, length: int) -> Floats:
    """Return a row of such probabilities for every mean."""
    safe = np.maximum(means, _SMALLEST)[:, None]
    logs = np.arange(length)[None] * np.log(safe) - safe - _log_factorials(length)[None]
    chances: Floats = np.exp(logs)
    return chances


@lru_cache(maxsize=64)
def _log_factorials(length: int) -> Floats:
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, length)))])
