"""A machine that measures nothing: rates, memory and what fails are given; no child is started."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import TfdynoError, ToolError
from tfdyno.core.measure.fix_proof import Agreement
from tfdyno.core.measure.measurement import BenchRun, BenchTask, Environment, Measured
from tfdyno.core.messages.tune import Pair
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.jobs.tune.request import Node

if TYPE_CHECKING:
    from tfdyno.core.messages.bench import MeasureHere
    from tfdyno.jobs.child.worker import Progress

OWN_BATCH = 64
PLACE = Environment(
    device="cpu", tensorflow="2.21.0", keras="3.15.1", python="3.11.7", tfdyno="0", system="Linux",
    host="here", cpu="a CPU", cpu_count=2, memory_bytes=1 << 35,
)  # fmt: skip
TASK = BenchTask(
    reference="train.py", title="net", parameter_count=1000, inputs=("float32[8]",),
    policy="float32", execution="graph", batch_size=OWN_BATCH, samples_per_epoch=1 << 16,
)  # fmt: skip
AGREES = Agreement(agrees=True, difference_ratio=0.0, tolerance_ratio=0.01, why="equal", steps=8)


@dataclass(kw_only=True)
class Machine:
    """What runs on it takes as long as ``step_s`` says."""

    step_s: Callable[[Recipe], float]
    peak_bytes: Callable[[Recipe], float] = lambda _recipe: float(1 << 30)
    most_bytes: float = float(1 << 50)
    """More than this does not fit."""
    name: str = ""
    place: Environment = PLACE
    task: BenchTask = TASK
    fails: dict[int, TfdynoError] = field(default_factory=dict)
    """Errors of its runs, by their number."""
    stalls: Callable[[Recipe], bool] = lambda _recipe: False
    """Whether every fifth step takes ten times as long."""
    steady: Callable[[int], bool] = lambda _number: True
    """Whether a run, by its number, finds its steady state."""
    ran: list[Recipe] = field(default_factory=list)
    compared: list[Pair] = field(default_factory=list)

    @property
    def node(self) -> Node:
        """As a tuning sees it."""
        return Node(run=self.run, look=lambda _asked, _progress: self.place, compare=self.compare,
                    name=self.name)  # fmt: skip

    def run(self, asked: MeasureHere, _progress: Progress) -> Measured:
        """One run, or how it fails."""
        number, recipe = len(self.ran), asked.recipe
        self.ran.append(recipe)
        if error := self.fails.get(number):
            raise error
        peak_bytes = self.peak_bytes(recipe)
        if peak_bytes > self.most_bytes:
            raise ToolError(f"{asked.doing}: this machine ran out of memory")
        step_s = self.step_s(recipe) * (1 + 0.002 * ((7 * number) % 5 - 2) / 2)
        stall = 10.0 if self.stalls(recipe) else 1.0
        run = BenchRun(
            samples_s=tuple(
                step_s * (stall if i % 5 == 4 else 1 + 0.001 * (i % 3)) for i in range(40)
            ),
            steps_per_sample=(1,) * 40, steady_from=2 if self.steady(number) else 40,
            first_step_s=1.0, import_s=1.0, build_s=1.0, peak_memory_bytes=int(peak_bytes),
            memory_kind="process", started_at="2026-11-25T12:00:00Z", order=asked.order,
        )  # fmt: skip
        batch_size = recipe.batch_size or self.task.batch_size
        return Measured(run=run, task=replace(self.task, batch_size=batch_size),
                        environment=self.place)  # fmt: skip

    def compare(self, pair: Pair, _progress: Progress) -> Agreement:
        """Losses are the same whatever is trained."""
        self.compared.append(pair)
        return AGREES
