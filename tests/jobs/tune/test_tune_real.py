"""Studies of real workloads: what was not run would not have won."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tfdyno.core.base.errors import ToolError
from tfdyno.jobs.bench import bench
from tfdyno.jobs.bench.run import measured
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.jobs.tune._trial import rates_of
from tfdyno.jobs.tune.request import TuneRequest
from tfdyno.jobs.tune.tune import tune
from tfdyno.model.measure.comparison import compare
from tfdyno.model.measure.trial_law import middle

if TYPE_CHECKING:
    from tfdyno.core.measure.measurement import Measured
    from tfdyno.core.messages.bench import MeasureHere
    from tfdyno.core.train.search_space import Value
    from tfdyno.core.train.tuning import Trial, Tuning
    from tfdyno.jobs.child.worker import Progress

pytestmark = [pytest.mark.tf]
SMALL = """
import keras
import numpy as np
import tensorflow as tf

x = np.random.default_rng(0).normal(size=(2048, 32)).astype("float32")
y = x.sum(axis=1, keepdims=True)
data = tf.data.Dataset.from_tensor_slices((x, y)).map(lambda a, b: (a * 2.0, b)).batch(16)
model = keras.Sequential(
    [keras.Input((32,)), keras.layers.Dense(64, "relu"), keras.layers.Dense(1)]
)
model.compile("adam", "mse")
model.fit(data, epochs=2)
"""
PICTURES = """
import keras
import numpy as np

x = np.random.default_rng(0).normal(size=(1024, 64, 64, 3)).astype("float32")
y = np.zeros((1024,), "int32")
model = keras.Sequential([
    keras.Input((64, 64, 3)), keras.layers.Conv2D(16, 3, padding="same", activation="relu"),
    keras.layers.Conv2D(16, 3, padding="same", activation="relu"),
    keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(4),
])
model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(x, y, batch_size=16, epochs=1)
"""
LIMIT_BYTES = 1200 << 20
FIXED: dict[str, tuple[Value, ...]] = {
    "execution": ("graph",), "precision": ("",), "steps_per_execution": (1,),
    "input.prefetch": (0,), "input.parallel_calls": (0,), "input.cache": (False,),
}  # fmt: skip
"""Nothing is tuned but what a test names."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.py").write_text(SMALL)
    (tmp_path / "pictures.py").write_text(PICTURES)
    return tmp_path


def request(script: str, named: dict[str, tuple[Value, ...]], **fields: Any) -> TuneRequest:
    return TuneRequest(workload=parse_reference(script), named={**FIXED, **named}, runs=2,
                    folder=Path("out"), **fields)  # fmt: skip


def last(asked: TuneRequest) -> Tuning:
    *_, end = tune(asked)
    return end


def rates(asked: TuneRequest, one: Trial) -> tuple[float, ...]:
    """What the trial would have been measured with; raises what its run raises."""
    again = bench.BenchRequest(workload=asked.workload, recipe=one.recipe, protocol=asked.protocol,
                           folder=Path("check"))  # fmt: skip

    def run(work: MeasureHere, progress: Progress) -> Measured:
        return measured(replace(work, limit_bytes=asked.memory_limit_bytes), progress)

    (found,) = bench.bench(again, run=run)
    return rates_of(found)


def is_faster(asked: TuneRequest, winner: Trial, one: Trial) -> bool:
    """Whether a trial is proven to be faster than the winner, in turns."""
    four = replace(asked.protocol, least_runs=4, most_runs=4)
    again = bench.BenchRequest(workload=asked.workload, recipe=winner.recipe, against=one.recipe,
                           protocol=four, folder=Path("check"))  # fmt: skip
    return compare(*bench.bench(again)).verdict == "faster"


def check_unrun(asked: TuneRequest, told: Tuning) -> int:
    """Run all that was not run to its end; none may be better than the fastest, or fit.

    What looks better when it is run alone is set against the fastest in turns.
    """
    measured_ones = [one for one in told.trials if one.status == "measured"]
    winner = max(measured_ones, key=lambda one: one.samples_per_s)
    count = 0
    for one in told.trials:
        if one.status == "not_fit":
            with pytest.raises(ToolError, match="ran out of memory"):
                rates(asked, one)
            count += 1
        elif one.status in ("hopeless", "pruned"):
            if middle(rates(asked, one)) > middle(winner.rates_per_s):
                assert not is_faster(asked, winner, one), one
            count += 1
    return count


def test_a_small_study_proves_its_winner() -> None:
    for seconds_s in (1.0, 4.0, 12.0):  # beside other work short runs may prove nothing
        asked = request("small.py", {"batch_size": (16, 128)}, trials=2, seconds_s=seconds_s)
        told = last(replace(asked, folder=Path(f"out-{seconds_s:g}")))
        # eight times the samples, hardly more time
        assert told.trial(told.best or 0).batch_size == 128
        if told.proof and told.proof.kept:
            break
    assert told.proof
    assert told.proof.kept
    assert told.proof.interval[0] > 1.0


@pytest.mark.slow
def test_no_trial_that_was_not_run_would_have_won_or_fitted() -> None:
    batches = (16, 32, 128, 512, 640, 768, 896, 1024)
    asked = request("pictures.py", {"batch_size": batches}, trials=40, seconds_s=2.0,
                     memory_limit_bytes=LIMIT_BYTES)  # fmt: skip
    told = last(asked)
    assert (told.ended, told.left) == ("covered", 0)
    unfit = [one for one in told.trials if one.status == "not_fit"]
    assert any(one.ran for one in unfit)
    assert any(not one.ran for one in unfit)  # a law spared it
    assert check_unrun(asked, told) >= len(unfit)
    assert middle(told.trial(told.best or 0).rates_per_s) > 0
