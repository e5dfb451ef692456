"""``tfdyno.fit``: what is asked in Python, and what is refused there."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from tests.runtime.fits import fitted

from tfdyno.core.base.errors import UsageError
from tfdyno.core.train.training import RunSettings
from tfdyno.runtime.train.fit import read_settings

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf
CASES = """
def refused():
    net = model()
    eager = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)], name="bare")
    late = {"threads_intra": 3, "precision": "mixed_bfloat16", "strategy": "mirrored",
            "deterministic": True, "memory_fraction": 0.5, "visible_devices": "0"}
    empty = tf.data.Dataset.from_tensor_slices((x, y)).take(0).batch(16)
    return {
        "late": said(lambda: quiet(net, (x, y), recipe=late)),
        "fine": said(lambda: quiet(net, (x, y), recipe={
            "precision": "float32", "strategy": "single", "devices": 1,
            "input": {"private_threads": 1}})),
        "tf32": tf.config.experimental.tensor_float_32_execution_enabled(),
        "bare": said(lambda: quiet(eager, (x, y))),
        "no_model": said(lambda: quiet(3, (x, y))),
        "argument": said(lambda: quiet(net, (x, y), epoch=2)),
        "twice": said(lambda: quiet(net, (x, y), y=y)),
        "none": said(lambda: quiet(net, None)),
        "four": said(lambda: quiet(net, (x, y, x, y))),
        "empty": said(lambda: quiet(net, empty)),
        "key": said(lambda: quiet(net, (x, y), recipe={"presicion": "float32"})),
        "works": plain_works(net),
    }
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return fitted(tmp_path_factory.mktemp("fit"), CASES, "refused")


REFUSED = {
    "late": "precision, strategy, threads_intra, visible_devices, memory_fraction, deterministic "
    "cannot be set by fit in a process that runs already",
    "bare": "bare is not compiled",
    "no_model": "builtins.int cannot be trained",
    "argument": "did you mean epochs",
    "twice": "y is given twice",
    "none": "fit needs data",
    "four": "a tuple of 4 is no data",
    "empty": "the data is empty",
    "key": "'presicion' is not one of",
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_refused_in_words(case: str, found: dict[str, Any]) -> None:
    assert found["refused"][case].startswith("UsageError: ")
    assert REFUSED[case] in found["refused"][case]


def test_what_stands_already_is_taken(found: dict[str, Any]) -> None:
    assert found["refused"]["fine"] is None
    assert found["refused"]["tf32"], "the switch is back"
    assert found["refused"]["works"]


def test_settings_are_read_as_on_the_command_line(tmp_path: Path) -> None:
    assert read_settings() == RunSettings(save_model=False)
    made = read_settings(output=tmp_path, checkpoint_every="10min", norms=5)
    assert (made.checkpoint_steps, made.checkpoint_s) == (0, 600.0)
    assert (made.tensorboard, made.norms_steps, made.save_model) == (True, 5, True)
    steps = read_settings(output="here", checkpoint_every=50)
    assert (steps.checkpoint_steps, steps.checkpoint_s) == (50, 0.0)
    assert steps.output.startswith(os.sep)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"resume": True}, "resume needs the folder of a run"),
        ({"norms": 5}, "norms needs the folder of a run"),
        ({"checkpoint_every": "soon"}, "checkpoint_every soon cannot be read; write a"),
        ({"keep": 0}, "keep 0 is not possible"),
    ],
)
def test_settings_that_cannot_be_are_refused(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_settings(**asked)
