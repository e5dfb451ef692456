"""jobs/tune on a card of the catalogue: what the estimate leaves out is neither good nor fits.

The expectation is the real estimate's; the card is made up, and its true rates and memory lie
somewhere in the intervals of that estimate.
"""

from __future__ import annotations

import contextlib
import math
import random
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.jobs.made_up_node import PLACE, TASK, Machine
from tests.jobs.tune.test_plan import SCRIPT

from tfdyno.catalog.gpus import find
from tfdyno.core.base.errors import ToolError
from tfdyno.core.measure.measurement import Card, Protocol
from tfdyno.core.messages.bench import MeasureHere
from tfdyno.jobs.child.worker import silent
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.jobs.tune._expect import CardEstimates
from tfdyno.jobs.tune.request import TuneRequest
from tfdyno.jobs.tune.tune import tune
from tfdyno.model.measure import trial_judge as judge

if TYPE_CHECKING:
    from tfdyno.core.base.interval import Interval
    from tfdyno.core.recipe.recipe import Recipe
    from tfdyno.core.train.search_space import Value
    from tfdyno.core.train.tuning import Trial, TrialEstimate, Tuning

pytestmark = [pytest.mark.tf]
CARD = find("gtx-1050-ti")
SPACE: dict[str, tuple[Value, ...]] = {
    "batch_size": (64, 128, 256, 512, 1024, 2048, 4096), "precision": ("", "mixed_float16"),
    "execution": ("graph", "xla"), "input.cache": (False, True), "steps_per_execution": (1,),
    "input.prefetch": (0,), "input.parallel_calls": (0,),
}  # fmt: skip
GPU_PLACE = replace(PLACE, device="gpu", cards=(Card(name=CARD.name, slug=CARD.slug),))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(SCRIPT)
    return tmp_path


@dataclass(kw_only=True)
class MadeUpCard:
    """What is true of each precision, execution and batch, by a seed."""

    seed: int
    input_per_s: float = math.inf
    """Samples that the input gives without a cache."""

    @cached_property
    def estimates(self) -> CardEstimates:
        """The same that the study expects by."""
        return CardEstimates(workload=parse_reference("net.py:make"), gpu=CARD, batch_size=64,
                             progress=lambda _line: None)  # fmt: skip

    def rate_per_s(self, recipe: Recipe) -> float:
        """Somewhere in the interval of the estimate, unless the input is slower."""
        expected = self._expected(recipe)
        assert expected.samples_per_s
        rate = self._drawn(recipe, "rate", expected.samples_per_s)
        return rate if recipe.input.cache else min(rate, self.input_per_s)

    def peak_bytes(self, recipe: Recipe) -> float:
        """Likewise."""
        expected = self._expected(recipe)
        assert expected.memory_bytes
        return self._drawn(recipe, "memory", expected.memory_bytes)

    def _expected(self, recipe: Recipe) -> TrialEstimate:
        found = self.estimates.of(recipe, recipe.batch_size or 64)
        assert found
        return found

    def _drawn(self, recipe: Recipe, what: str, within: Interval) -> float:
        execution = recipe.execution if recipe.execution != "auto" else "xla"
        key = f"{self.seed} {what} {recipe.precision} {execution} {recipe.batch_size or 64}"
        share = random.Random(key).random()
        return within.low * math.pow(within.high / within.low, share)

    def machine(self) -> Machine:
        """That a study can be made on."""
        return Machine(
            step_s=lambda recipe: (recipe.batch_size or 64) / self.rate_per_s(recipe),
            peak_bytes=self.peak_bytes, most_bytes=CARD.usable_memory_bytes, place=GPU_PLACE,
            task=replace(TASK, execution="xla", samples_per_epoch=1 << 20),
        )  # fmt: skip


def study(machine: Machine, trials: int, **named: tuple[Value, ...]) -> Tuning:
    nodes = contextlib.nullcontext((machine.node,))
    asked = TuneRequest(workload=parse_reference("net.py:make"), folder=Path("out"), runs=2,
                     named={**SPACE, **named}, trials=trials)  # fmt: skip
    *_, told = tune(asked, engine=nodes)
    return told


def ran_once(machine: Machine, one: Trial) -> float:
    """Samples per second of a trial that was not run to its end; 0 where it does not fit."""
    try:
        work = MeasureHere(
            workload=parse_reference("net.py:make"), recipe=one.recipe, protocol=Protocol(),
            order=0, doing="a check",
        )  # fmt: skip
        found = machine.run(work, silent)
    except ToolError:  # the made-up card knows no other
        return 0.0
    return found.task.batch_size / found.run.samples_s[0]


@pytest.mark.parametrize(
    ("seed", "input_per_s"),
    [(1, math.inf), (1, 1500.0),
     *(pytest.param(seed, rate, marks=pytest.mark.slow)
       for seed in (2, 3, 4) for rate in (math.inf, 1500.0))],
)  # fmt: skip
def test_what_the_estimate_leaves_out_is_run_once_and_is_neither_better_nor_fits(
    seed: int, input_per_s: float
) -> None:
    """With 1,500 samples/s from the input every trial without a cache is slower than estimated."""
    machine = MadeUpCard(seed=seed, input_per_s=input_per_s).machine()
    told = study(machine, trials=14)
    assert not [one for one in told.trials if one.status == "failed"]
    fastest = max(one.samples_per_s for one in told.trials if one.status == "measured")
    unfit = [one for one in told.trials if one.status == "not_fit"]
    slower = [one for one in told.trials if one.status in ("hopeless", "pruned")]
    assert all(ran_once(machine, one) == 0.0 for one in unfit)
    assert all(ran_once(machine, one) <= 1.005 * fastest for one in slower)
    # few: ranges of today's software are wide, and no slower one need be sure to be one
    assert [one for one in unfit if not one.ran]


def test_what_ran_disproves_an_estimate_of_more_memory_than_there_is() -> None:
    """The card takes a fifth of what every estimate says: none is left out that would fit."""
    card = MadeUpCard(seed=3)
    machine = card.machine()
    machine.peak_bytes = lambda recipe: 0.2 * card.peak_bytes(recipe)
    told = study(machine, trials=14, execution=("xla",), precision=("",))
    unfit = [one for one in told.trials if one.status == "not_fit"]
    assert all(ran_once(machine, one) == 0.0 for one in unfit)
    saved = [one for one in told.trials if one.rates_per_s and judge.unfit(one)]
    assert saved  # the estimate alone would have left it out
