"""The facts of a training with its split, and small questions that many rules ask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.core.measure.step_facts import StepFacts
from tfdyno.rules.bottleneck.split import Split, split_of
from tfdyno.rules.bottleneck.tables import limits, matching

if TYPE_CHECKING:
    from tfdyno.core.measure.step_facts import InputFacts, StageFacts

_WORK = {"from_generator", "interleave", "flat_map", "map", "filter", "py_function"}
_READERS = {"tf_record", "text_line", "fixed_length_record", "csv", "list_files"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the rules look at."""

    facts: StepFacts
    split: Split

    @property
    def step_s(self) -> float:
        """The typical step."""
        return self.split.step_s

    @property
    def input(self) -> InputFacts | None:
        """The pipeline, where the step waits for it long enough to be a finding."""
        return self.facts.input if self.counts(self.split.parts_s["input"]) else None

    @property
    def cpus(self) -> float:
        """CPUs that the training may use, at least 1."""
        return max(1.0, self.facts.host.usable_cpus)

    @property
    def mean_operation_s(self) -> float:
        """The mean of the device's time per operation; 0: no profile."""
        operations = self.facts.operations
        if operations is None or operations.count_per_step <= 0:
            return 0.0
        return operations.busy_s / operations.count_per_step

    def counts(self, seconds_s: float) -> bool:
        """Return whether a part of the step is long enough to speak of."""
        return seconds_s >= self.split.floor_s and seconds_s > 0.0


def look(facts: StepFacts) -> Seen:
    """Return the facts with their split; raises ``UsageError`` where no steady step was seen."""
    return Seen(facts=facts, split=split_of(facts))


def stage_walls(given: InputFacts, batch_s: float, cpus: float) -> tuple[float, ...]:
    """Return each stage's seconds of a batch of the pipeline alone; they add up to it.

    A stage's CPU seconds over the elements it works on at once, brought to ``batch_s``. Where no
    stage was timed, those that call functions or read files share it alike.
    """
    weights = [max(0.0, one.own_s) / calls_at_once(one, cpus) for one in given.stages]
    if sum(weights) <= 0.0:
        weights = [float(one.kind in _WORK or reads(one)) for one in given.stages]
    total = sum(weights) or 1.0
    return tuple(batch_s * weight / total for weight in weights)


def calls_at_once(stage: StageFacts, cpus: float) -> float:
    """Return elements that a stage can work on at once on so many CPUs."""
    if stage.parallel_calls < 0:
        return max(1.0, cpus)
    return min(float(max(1, stage.parallel_calls)), max(1.0, cpus))


def reads(stage: StageFacts) -> bool:
    """Return whether it reads files."""
    return stage.kind in _READERS or bool(matching("read", stage.operations))


def draws(stage: StageFacts) -> bool:
    """Return whether it gives something else in each epoch."""
    return bool(matching("random", stage.operations))


def runs_python(stage: StageFacts) -> bool:
    """Return whether Python code runs in it."""
    return stage.runs_python or bool(matching("python", stage.operations))


def waits_itself(seen: Seen, given: InputFacts) -> bool:
    """Return whether the pipeline alone leaves even one CPU idle: it waits for files or sleeps."""
    return 0.0 < given.cpu_ratio * seen.facts.host.cpus < limits()["pipeline_waits_cpus"]


def samples_of_step(seen: Seen) -> int:
    """Return those of all replicas together; facts have it for each of them."""
    return seen.facts.batch_size * max(1, seen.facts.replica_count)


def fed_s(seen: Seen) -> float:
    """Return seconds of a step in which the host gives the card its data."""
    operations = seen.facts.operations
    if operations is None or operations.copy_s <= 0.0:
        return 0.0
    return seen.split.parts_s["copy"] * min(1.0, operations.fed_s / operations.copy_s)
