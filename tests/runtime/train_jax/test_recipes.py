"""A recipe on JAX: what plain Keras makes of the same settings, to the last bit, also after kills.

The commands that are killed for real are in jobs/train/test_train_kill.py.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.runtime.forks import NO_GPU
from tests.runtime.jax_recipes import BATCH, CUT, EPOCHS, FEW, RECIPES, SAMPLES
from tests.runtime.once import once

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Value

pytestmark = pytest.mark.tf
ROOT = Path(__file__).parents[3]
STEPS = EPOCHS * SAMPLES // BATCH
SAME_AS_PLAIN = ("steps_per_execution", "deterministic", "input", "remat")
"""Settings that change how it is computed, not what."""
OTHERS = tuple(name for name in RECIPES if name not in FEW)
EACH = [*FEW, *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS)]


def seen() -> Value:
    return once("jax_recipes_few", lambda: _look(FEW))


def of_recipe(name: str) -> Value:
    if name in FEW:
        return seen()["recipes"][name]
    return once("jax_recipes_others", lambda: _look(OTHERS))["recipes"][name]


def _look(names: tuple[str, ...]) -> Value:
    read, write = os.pipe()
    path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    environment = {
        **os.environ, **NO_GPU, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu", "PYTHONPATH": path,
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }  # fmt: skip
    words = [sys.executable, "-m", "tests.runtime.jax_recipes", str(write), *names]
    with subprocess.Popen(
        words, env=environment, pass_fds=[write], stderr=subprocess.PIPE, text=True
    ) as child:
        os.close(write)
        _, errors = child.communicate()
    with os.fdopen(read) as found:
        text = found.read()
    assert text, errors
    return json.loads(text)


@pytest.mark.parametrize("name", EACH)
def test_a_recipe_makes_the_weights_of_plain_keras(name: str) -> None:
    """But where Keras moves the average with batches that only accumulate."""
    expected = None if RECIPES[name][1] is None else 0
    assert of_recipe(name)["apart"] == expected


@pytest.mark.parametrize("name", EACH)
def test_a_run_that_goes_on_makes_the_same_weights(name: str) -> None:
    """As if killed in the second epoch: the newest checkpoint is of the third batch of four."""
    found = of_recipe(name)
    cut = 8 if name == "steps_per_execution" else CUT
    assert found["from"] == f"step-{cut:09}"
    assert found["on_apart"] == 0
    assert found["losses"][0] == found["losses"][1]
    assert found["counts"] == found["counts_on"]


@pytest.mark.parametrize("name", EACH)
def test_a_setting_that_should_change_what_is_learned_does(name: str) -> None:
    assert (of_recipe(name)["from_plain"] == 0) == (name in SAME_AS_PLAIN)


def test_updates_are_those_of_the_weights() -> None:
    found = seen()["recipes"]
    assert found["remat"]["counts"] == [STEPS, STEPS, 0]
    assert found["accumulation_ema"]["counts"] == [STEPS, STEPS // 4, 0]
    assert found["loss_scale"]["counts"] == [STEPS, STEPS, 0]


def test_what_keras_took_is_told_beside_what_was_asked() -> None:
    found = {name: row["applied"] for name, row in seen()["recipes"].items()}
    assert found["accumulation_ema"]["accumulation"] == "4"
    assert found["accumulation_ema"]["ema"] == "0.9"
    assert found["loss_scale"]["loss_scale"] == "1024.0"
    assert "float8_from_mixed_bfloat16" in found["float8"]["precision"]


def test_parts_are_recomputed_in_the_program_of_the_gradient() -> None:
    found = seen()["remat"]
    assert found["before"] == found["after"] == 0
    assert found["during"] > 0
    notes = seen()["recipes"]["remat"]["notes"]
    assert any(note.startswith("remat recomputes wide..norm") for note in notes)


@pytest.mark.slow
def test_input_settings_are_put_onto_the_pipeline() -> None:
    notes = " ".join(of_recipe("input")["notes"])
    assert "prefetch: 3 batches are made ready ahead." in notes
    assert "cache" in notes


def test_what_cannot_be_is_one_sentence() -> None:
    found = seen()["refused"]
    assert found["input"].startswith("input.prefetch cannot be set for a ndarray on the JAX")
    assert found["float8"].startswith("precision = float8 cannot be set for sequential: it is not")
    assert found["loss_scale"].startswith("loss_scale = 8 needs a loss that is scaled")
