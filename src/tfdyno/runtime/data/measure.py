"""One measurement of an input pipeline: rounds, looks at its stages, its files; stopped at will."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.process_limits import allowed
from tfdyno.core.measure.feed import Feed
from tfdyno.process.cpu_sets import by_core, counts, cpu_kind, usable_cpus
from tfdyno.process.stop_asked import StopAsked
from tfdyno.runtime.data.files import OpenedFiles, disk_facts, forget, named_files
from tfdyno.runtime.data.rounds import WARM_S, CpuSet, Flow, measured_rounds
from tfdyno.runtime.diagnose.held import leading
from tfdyno.runtime.diagnose.input import IN_PYTHON, as_written, bytes_of, flowing, run
from tfdyno.runtime.diagnose.stages import matched, model_of, stage_facts
from tfdyno.runtime.workload.input_stages import kind, walk

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.base.untyped import Batch
    from tfdyno.core.measure.feed import DiskFacts, FeedRound, RoundKind
    from tfdyno.core.measure.step_facts import StageFacts
    from tfdyno.core.messages.data import Plan
    from tfdyno.runtime.data.source import Data
    from tfdyno.runtime.diagnose.input import Source

MOST_SETS = 6
"""Numbers of CPUs that are tried."""
COLD_ROUNDS = 2


class DataMeasure:
    """What is known when somebody asks for the end is the result."""

    def __init__(self, reference: str, plan: Plan, progress: Callable[[str], None]) -> None:
        """Measure nothing yet.

        Args:
            reference: The workload as typed.
            plan: How long what is measured.
            progress: Called with a line at every stage.
        """
        self.reference, self.plan, self.progress = reference, plan, progress
        self._is_stopped = self._is_measuring = False
        self._rounds: list[FeedRound] = []
        self._looks: list[tuple[StageFacts, ...]] = []
        self._disk: DiskFacts | None = None
        self._notes: list[str] = []

    def stop(self, signal_name: str) -> None:
        """End: the user's code at once, a measurement after the batch that is under way."""
        self._is_stopped = True
        if not self._is_measuring:
            raise StopAsked(signal_name)

    def measured(self, data: Data) -> Feed:
        """Measure what a workload trains on.

        Raises:
            UsageError: There is no batch.
            StopAsked: The end was asked for before the first round had ended.
        """
        self._is_measuring = True
        flow = Flow(data.source, lambda: self._is_stopped)
        try:
            self._all(data, flow)
        except StopAsked:
            if not self._rounds:
                raise
            self._notes.append("It was stopped: there are fewer rounds than were asked for.")
        finally:
            flow.close()
        size = batch_size(flow.first)
        return Feed(
            reference=self.reference,
            title=data.title,
            kind=data.source.kind,
            batch_size=size,
            batch_bytes=bytes_of(flow.first),
            samples_per_epoch=data.batches_per_epoch * size,
            start_s=flow.start_s,
            rounds=tuple(_without_pipes(data, one) for one in self._rounds),
            looks=tuple(self._looks),
            disk=self._disk,
            cpu_kind=cpu_kind(allowed()),
            workers=data.workers,
            uses_processes=data.uses_processes,
            is_cached=_is_cached(data),
            stopped=self._is_stopped,
            notes=(*data.notes, *self._notes),
        )

    def _all(self, data: Data, flow: Flow) -> None:
        """Put rounds first: they alone say something when the rest is stopped."""
        sets = self._sets()
        label: RoundKind = "warm"
        if _is_cached(data) and not self._first_pass(data, sets[0]):
            label = "first"
        self.progress("first batch")
        if not flow.open():
            raise UsageError("the data ended after 0 batches", remedy="see that it gives some")
        files = self._warm_up(data, flow)
        measured_rounds(
            flow, sets, rounds=self.plan.rounds, seconds_s=self.plan.seconds_s, kind=label,
            keep=self._rounds.append, progress=self.progress,
        )  # fmt: skip
        if not self._rounds:
            what, why = "the data ended before a round was measured", f"{flow.taken} batches"
            raise UsageError(what, why=why, remedy="repeat it, or use more of it")
        if flow.has_ended:
            self._notes.append("The data has ended before all rounds were measured.")
        self._stages(data, flow)
        self._files(files, flow, sets[0])

    def _warm_up(self, data: Data, flow: Flow) -> tuple[str, ...]:
        """Let buffers fill and threads start; returns the files that the pipeline reads."""
        self.progress("warming up")
        files = named_files(data.source.dataset)
        if files:
            flow.settle(WARM_S)
            return files
        with OpenedFiles() as opened:
            flow.settle(WARM_S)
        return tuple(opened.seen)

    def _sets(self) -> list[CpuSet]:
        """Return all CPUs, then fewer."""
        numbers = by_core(allowed())
        every = CpuSet(cpus=usable_cpus(numbers), numbers=numbers)
        if not (self.plan.fewer_cpus and hasattr(os, "sched_setaffinity")):
            return [every]
        fewer = counts(every.cpus, MOST_SETS)[1:]
        return [every, *(CpuSet(cpus=one, numbers=numbers[: int(one)]) for one in fewer)]

    def _first_pass(self, data: Data, every: CpuSet) -> bool:
        """Fill the caches of the pipeline; returns whether the pass came to its end."""
        self.progress("first pass, which fills the cache")
        limit_s = self.plan.first_pass_s
        once = Flow(data.source, lambda: self._is_stopped, again=False)
        try:
            found = once.round(limit_s, every.cpus, "first") if once.open() else None
        finally:
            once.close()
        if found:
            self._rounds.append(found)
        if not once.has_ended:
            self._notes.append(f"The cache was not full after {limit_s:g} s: the rounds are those "
                               "of the first pass, later ones are faster.")  # fmt: skip
        return once.has_ended

    def _stages(self, data: Data, flow: Flow) -> None:
        for number in range(self.plan.looks):
            self.progress(f"looking at the stages, {number + 1} of {self.plan.looks}")
            if self._is_stopped:
                raise StopAsked("between two looks")
            look = looked_at_stages(data.source, flow, self.plan.look_s)
            if not look:
                return
            self._looks.append(look)

    def _files(self, files: tuple[str, ...], flow: Flow, every: CpuSet) -> None:
        """Measure the disk by itself, and rounds that read from it."""
        if not files:
            return
        self.progress("reading the files in order")
        self._disk = disk_facts(files, cold=self.plan.cold)
        are_read = self._rounds[-1].read_bytes > 0
        if not (self.plan.cold and are_read) or flow.has_ended:
            return
        for number in range(COLD_ROUNDS):
            self.progress(f"round {number + 1} of {COLD_ROUNDS}, files forgotten")
            forget(files)
            cold = flow.round(self.plan.seconds_s, every.cpus, "cold")
            if cold:
                self._rounds.append(cold)


def _without_pipes(data: Data, one: FeedRound) -> FeedRound:
    """Return the round; where workers are processes, what was read are their batches."""
    return replace(one, read_bytes=0, disk_bytes=0) if data.uses_processes else one


def _is_cached(data: Data) -> bool:
    return any(kind(stage) == "cache" for stage in walk(data.source.dataset))


def looked_at_stages(source: Source, flow: Flow, most_s: float) -> tuple[StageFacts, ...]:
    """Return a pipeline's stages, sources first, from a run of its own exactly as it is written.

    Args:
        source: The pipeline.
        flow: Its batches: tells what TensorFlow made parallel where they were measured.
        most_s: Of the run, its start included.

    Returns:
        Empty where a source gives nothing twice, or this TensorFlow does not tell.
    """
    if source.kind in IN_PYTHON or source.kind == "other":
        return ()
    with contextlib.suppress(AttributeError, TypeError):  # stages of a later TensorFlow
        alike = flowing(source.dataset)
        ran = run(as_written(alike), most_s, time.perf_counter)
        if ran.batch_s:
            running = model_of(flow.iterator) if flow.iterator is not None else {}
            spent = matched(alike, ran.model)
            return stage_facts(source.dataset, alike, spent, len(ran.batch_s), running)
    return ()


def batch_size(batch: Batch) -> int:
    """Return samples in a batch; 1 where it has no first dimension."""
    return leading(batch) or 1
