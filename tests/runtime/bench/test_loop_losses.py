"""Losses of the first steps of loops of the user's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.runtime.benches import MODEL, asked, in_tensorflow
from tests.runtime.forks import handled
from tests.runtime.looks import STEP

from tfdyno.core.messages.bench import LOSSES, TellLosses

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf
STEPS = 6
KNOWN = MODEL.replace("keras.layers.Dense(4)", "keras.layers.Dense(4, kernel_initializer='zeros')")
"""Zeros against ones: every loss is 1, and with ``BY`` it is that of the number of the step."""
FUNCTION = KNOWN + STEP.replace("keras.optimizers.SGD()", "keras.optimizers.SGD(0.0)")
BY = "for number in range(1, 100):\n    step(x[:20], y[:20] * number)\n"
EAGER = KNOWN + (
    "m = model()\n"
    "for number in range(1, 100):\n"
    "    with tf.GradientTape() as tape:\n"
    "        loss = tf.reduce_mean((m(x) - number) ** 2)\n"
    "    tape.gradient(loss, m.trainable_variables)\n"
)
ON_BATCH = KNOWN + (
    "m = model(optimizer=keras.optimizers.SGD(0.0), metrics=['mae'])\n"
    "for number in range(1, 100):\n"
    "    m.train_on_batch(x[:16], number * y[:16])\n"
)
RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "function": (FUNCTION + BY, {}),
    "xla": (FUNCTION + BY, {"execution": "xla"}),
    "named": (
        FUNCTION.replace("return loss", "return {'accuracy': 0.5, 'loss': loss}") + BY, {},
    ),
    "eager": (EAGER, {}),
    "on_batch": (ON_BATCH, {}),
    "short": (FUNCTION + BY.replace("100", "4"), {}),
    "silent": (FUNCTION.replace("    return loss\n", "") + BY, {}),
    "batch": (FUNCTION + BY, {"batch_size": 8}),
    "fit": (MODEL + "model().fit(x, y)\n", {}),
    "saves": (FUNCTION + "m.save('own.keras')\n" + BY + "m.save('own.keras')\n", {}),
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("losses")


@pytest.fixture(scope="module")
def found(folder: Path) -> dict[str, Any]:
    return {
        name: handled(
            LOSSES,
            TellLosses(**asked(folder / name, code, recipe=recipe), steps=STEPS),
            folder / name,
        )
        for name, (code, recipe) in RUNS.items()
    }


@pytest.mark.parametrize("name", ["function", "xla", "named", "eager", "on_batch"])
def test_each_step_tells_its_loss(found: dict[str, Any], name: str) -> None:
    # The mean of (0 - number) ** 2.
    assert found[name]["answer"] == pytest.approx([1, 4, 9, 16, 25, 36])


def test_a_loop_that_ends_tells_what_it_has(found: dict[str, Any]) -> None:
    assert found["short"]["answer"] == pytest.approx([1, 4, 9])


def test_a_step_that_returns_nothing_is_refused_with_what_to_do(found: dict[str, Any]) -> None:
    assert found["silent"]["refused"] == (
        "train:step does not tell its loss: it returns no single number; "
        "let the step return its loss."
    )


def test_what_a_loop_cannot_take_is_refused(found: dict[str, Any]) -> None:
    assert "batch_size cannot be set for a loop" in found["batch"]["refused"]


def test_a_script_with_fit_is_refused(found: dict[str, Any]) -> None:
    assert "the script has no loop of its own: it calls fit" in found["fit"]["refused"]


def test_nothing_is_written(found: dict[str, Any], folder: Path) -> None:
    assert len(found["saves"]["answer"]) == STEPS
    left = {each.name for each in (folder / "saves").iterdir()}
    assert left - {"__pycache__"} == {"train.py", "result.json"}


def test_the_loss_is_found_in_what_a_step_tells() -> None:
    told = in_tensorflow(
        "import numpy as np, tensorflow as tf\n"
        "from tfdyno.runtime.bench.loop_losses import loss_in\n"
        "pair = tf.constant([1.0, 2.0])\n"
        "told = [0.5, tf.constant(2.0), np.float32(3.0), np.array([4.0]), pair, None,\n"
        "        tf.constant(3), (pair, 0.25), {'acc': 1.0, 'd_loss': 2.0},\n"
        "        {'mae': 1.0}, tf.constant(1.5, tf.bfloat16), float('inf')]\n"
        "result = [loss_in(one) for one in told]\n"
    )
    assert told == [
        0.5, 2.0, 3.0, 4.0, None, None, None, 0.25, 2.0, None, 1.5, float("inf"),
    ]  # fmt: skip
