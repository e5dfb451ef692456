"""Batches taken from a pipeline in timed rounds, with all CPUs and with fewer, and nothing else."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tfdyno.core.measure.feed import FeedRound
from tfdyno.process.cpu_sets import delay_s, few_cpus
from tfdyno.process.stop_asked import StopAsked
from tfdyno.runtime.diagnose.held import leading
from tfdyno.runtime.diagnose.host import HostWatch
from tfdyno.runtime.diagnose.input import IN_PYTHON, endless, read_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tfdyno.core.base.untyped import Value
    from tfdyno.core.measure.feed import RoundKind
    from tfdyno.runtime.diagnose.input import Source

WARM_S = 2.0
"""The time before the first round: buffers fill, TensorFlow finds its number of threads."""
SETTLE_S = 0.3
"""The time after each change of the CPUs."""
SETTLE_BATCHES = 2
_HOST = HostWatch()
_OWN_READ_BYTES_PER_S = 65_536
"""Less than this is no data: counters, and the pipes that threads wake each other by."""
STOPPED = "the end of a round"


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuSet:
    """CPUs of a round."""

    cpus: float
    """How many of them can be busy: a container may allow less than there are."""
    numbers: tuple[int, ...]


class Flow:
    """The batches of a source one after the other, pass after pass, from one iterator.

    One iterator for all rounds, as a training has one for a long time: an iterator that has just
    begun gives what filled its buffers meanwhile.
    """

    def __init__(
        self, source: Source, is_stopped: Callable[[], bool] = lambda: False, *, again: bool = True
    ) -> None:
        """Prepare.

        Args:
            source: What is read.
            is_stopped: Whether somebody asked for the end.
            again: Whether it begins anew where it ends.
        """
        self.first: Any = None
        """The first batch; None: there is none."""
        self.start_s = 0.0
        """Until it was there."""
        self.iterator: Any = None
        self.has_ended = False
        self.taken = 0
        """Batches so far."""
        self._source, self._is_stopped = source, is_stopped
        self._again = again and source.kind not in IN_PYTHON  # a generator gives nothing twice
        self._by_passes = again and source.kind == "pydataset"
        self._is_open = False

    def open(self) -> bool:
        """Begin to read; returns whether there is a batch."""
        began = time.perf_counter()
        self._begin()
        self.first = self.next()
        self.start_s = time.perf_counter() - began
        return self.first is not None

    def next(self) -> Value:
        """Return the next batch; None: there are no more.

        Raises:
            StopAsked: The end was asked for.
        """
        if self._is_stopped():
            raise StopAsked(STOPPED)
        batch = next(self.iterator, None)
        if batch is None and self._by_passes and not self.has_ended:
            self.close()
            self._begin()
            batch = next(self.iterator, None)
        self.has_ended = batch is None
        self.taken += batch is not None
        return batch

    def close(self) -> None:
        """End the pass."""
        if self._is_open:
            self._is_open = False
            self._source.closing()
        self.iterator = None

    def _begin(self) -> None:
        self._source.opening()
        self._is_open = True
        dataset = self._source.dataset
        self.iterator = iter(endless(dataset) if self._again else dataset)

    def settle(self, least_s: float) -> None:
        """Take batches for so long without telling of them."""
        began, taken = time.perf_counter(), 0
        while time.perf_counter() - began < least_s or taken < SETTLE_BATCHES:
            if self.next() is None:
                return
            taken += 1

    def round(self, least_s: float, cpus: float, kind: RoundKind = "warm") -> FeedRound | None:
        """Time a stretch from the end of one batch to the end of another.

        Args:
            least_s: At least so long.
            cpus: That it may use.
            kind: What is told of the round.

        Returns:
            None where there was no batch.

        Raises:
            StopAsked: The end was asked for.
        """
        before, batches, samples = _counters(), 0, 0
        read, from_disk, began = read_bytes(), read_bytes("read_bytes"), time.perf_counter()
        while batches == 0 or time.perf_counter() - began < least_s:
            batch = self.next()
            if batch is None:
                break
            batches, samples = batches + 1, samples + (leading(batch) or 1)
        seconds_s = time.perf_counter() - began
        read, from_disk = read_bytes() - read, read_bytes("read_bytes") - from_disk
        after = _counters()
        if not batches:
            return None
        return FeedRound(
            kind=kind,
            cpus=cpus,
            seconds_s=seconds_s,
            batches=batches,
            samples=samples,
            cpu_s=max(0.0, after.cpu_s - before.cpu_s),
            other_cpu_s=max(0.0, after.other_s - before.other_s),
            delay_s=max(0.0, after.delay_s - before.delay_s),
            read_bytes=read if read >= _OWN_READ_BYTES_PER_S * seconds_s else 0,
            disk_bytes=from_disk,
        )


def measured_rounds(
    flow: Flow,
    sets: Sequence[CpuSet],
    *,
    rounds: int,
    seconds_s: float,
    kind: RoundKind,
    keep: Callable[[FeedRound], None],
    progress: Callable[[str], None],
) -> None:
    """Measure with each set of CPUs in turn, again and again, so that no drift favours one.

    Warm-up must be over.

    Args:
        flow: That gives batches.
        sets: The most CPUs first.
        rounds: With each of them.
        seconds_s: Of a round.
        kind: What is told of the rounds.
        keep: Called with each round as it ends.
        progress: Called with a line before each.

    Raises:
        StopAsked: The end was asked for.
    """
    for number in range(rounds):
        for one in sets:
            progress(f"round {number + 1} of {rounds}, {_cpus(one.cpus)}")
            with few_cpus(one.numbers):
                flow.settle(SETTLE_S)
                found = flow.round(seconds_s, one.cpus, kind)
            if found is None:
                return
            keep(found)


def _cpus(count: float) -> str:
    return f"{count:g} CPU{'s' * (count != 1)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counters:
    cpu_s: float
    other_s: float
    """CPU seconds of everything else, on the CPUs that are allowed now."""
    delay_s: float


def _counters() -> _Counters:
    seen = _HOST.look()
    return _Counters(
        cpu_s=time.process_time() + seen.children_s,
        other_s=seen.busy_s - seen.own_s - seen.children_s,
        delay_s=delay_s(),
    )
