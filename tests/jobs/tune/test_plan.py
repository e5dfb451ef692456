"""jobs/tune_plan: trials for a card that is not here, each with its estimate, none run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tfdyno.catalog.gpus import find
from tfdyno.core.base.errors import UsageError
from tfdyno.core.recipe.recipe import from_settings
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.jobs.tune.plan import planned
from tfdyno.jobs.tune.request import TuneRequest

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = """
import keras

def make():
    model = keras.Sequential([
        keras.Input((64, 64, 3)), keras.layers.Conv2D(64, 3, activation="relu"),
        keras.layers.Conv2D(64, 3, activation="relu"), keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(10),
    ])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(SCRIPT)
    return tmp_path


def request(**fields: Any) -> TuneRequest:
    return TuneRequest(workload=parse_reference("net.py:make"), data="synthetic", **fields)


@pytest.mark.tf
def test_trials_are_ranked_by_estimate_and_nothing_is_written(folder: Path) -> None:
    told = planned(request(recipe=from_settings({"batch_size": "64"})), find("l4"))
    assert told.planned_for == "L4"
    rates = [one.estimate.samples_per_s.best for one in told.trials
             if one.estimate and one.estimate.samples_per_s]  # fmt: skip
    assert rates == sorted(rates, reverse=True)
    assert {one.status for one in told.trials} <= {"planned", "hopeless"}
    assert {"precision", "execution", "batch_size"} <= told.space.choices.keys()
    assert [one.name for one in folder.iterdir()] == ["net.py"]


@pytest.mark.tf
def test_where_the_start_does_not_fit_an_update_is_made_of_parts() -> None:
    start = from_settings({"batch_size": "4096"})
    told = planned(request(recipe=start), find("gtx-1050-ti"))
    fits = [one for one in told.trials if one.status != "not_fit"]
    assert fits
    assert all(one.batch_size * one.recipe.accumulation == 4096 for one in told.trials)
    unfit = [one for one in told.trials if one.status == "not_fit"]
    assert any(one.batch_size == 4096 for one in unfit)
    assert all("The estimate says" in one.reason for one in unfit)


@pytest.mark.tf
def test_a_limit_of_memory_is_the_cards() -> None:
    start = from_settings({"batch_size": "256", "memory_limit_bytes": "256MiB"})
    told = planned(request(recipe=start), find("l4"))
    assert any(one.status == "not_fit" for one in told.trials)


def test_a_card_of_another_vendor_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot be estimated"):
        planned(request(), replace(find("l4"), vendor="AMD"))


@pytest.mark.tf
def test_a_plan_on_jax_is_of_its_step_and_of_settings_that_exist_there() -> None:
    told = planned(request(backend="jax", recipe=from_settings({"batch_size": "64"})), find("l4"))
    assert told.backend == "jax"
    assert "execution" not in told.space.choices
    assert "execution is not tuned: JAX compiles every step with XLA." in told.notes
    on_tensorflow = planned(request(recipe=from_settings({"batch_size": "64"})), find("l4"))
    rates = [one.trials[0].estimate for one in (told, on_tensorflow)]
    assert rates[0]
    assert rates[1]
    assert rates[0].samples_per_s != rates[1].samples_per_s


def test_a_value_that_jax_does_not_have_is_in_no_plan() -> None:
    with pytest.raises(UsageError, match="threads_inter = 2 means nothing on the JAX backend"):
        planned(request(backend="jax", named={"threads_inter": (2,)}), find("l4"))
