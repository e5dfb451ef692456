"""Scripts as people write them, run up to ``fit`` by a real child."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.runtime.loaded import facts

from tfdyno.core.base.errors import TfdynoError
from tfdyno.core.choose.workload import Saving
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.jobs.choose.trace import trace

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.choose.workload import Trace

MODEL = (
    "import keras, numpy as np\n"
    "def model(**how):\n"
    "    m = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])\n"
    "    m.compile(how.pop('optimizer', 'sgd'), 'mse', **how)\n"
    "    return m\n"
    "x, y = np.zeros((64, 8), 'float32'), np.zeros((64, 1), 'float32')\n"
)


def traced(folder: Path, code: str, **fields: Any) -> Trace:
    (folder / "train.py").write_text(code)
    return trace(parse_reference(str(folder / "train.py"), **fields)).trace


def refusal(folder: Path, code: str, **fields: Any) -> str:
    with pytest.raises(TfdynoError) as caught:
        traced(folder, code, **fields)
    return str(caught.value)


def test_a_bare_except_around_fit_does_not_lose_the_model(tmp_path: Path) -> None:
    code = MODEL + "try:\n    model().fit(x, y, batch_size=16)\nexcept:\n    print('failed')\n"
    assert traced(tmp_path, code).script_batch_size == 16


def test_what_argparse_says_is_passed_on(tmp_path: Path) -> None:
    code = (
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--units', required=True)"
    )
    message = refusal(tmp_path, code + "\np.parse_args()\n")
    assert "the following arguments are required: --units" in message
    assert "give its own arguments after --" in message


def test_a_reason_for_exit_in_words_is_passed_on(tmp_path: Path) -> None:
    assert "it ended with 'no data today'" in refusal(tmp_path, "raise SystemExit('no data today')")


@pytest.mark.tf
def test_a_script_that_relies_on_a_gpu_is_told_that_none_is_shown(tmp_path: Path) -> None:
    code = "import tensorflow as tf\ngpu = tf.config.list_physical_devices('GPU')[0]\n"
    assert "no GPU is shown to the code here" in refusal(tmp_path, code)


@pytest.mark.tf
def test_the_cause_of_a_wrong_shape_is_told(tmp_path: Path) -> None:
    message = refusal(tmp_path, MODEL + "model().fit(np.zeros((64, 9)), y)\n")
    assert "expected axis -1 of input shape to have value 8" in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("how", "note"),
    [
        ("run_eagerly=True", "Keras then runs operation by operation"),
        ("optimizer=keras.optimizers.SGD(gradient_accumulation_steps=4)", "every 4 batches"),
    ],
)
def test_settings_that_the_step_does_not_hold_are_told(tmp_path: Path, how: str, note: str) -> None:
    found = traced(tmp_path, MODEL + f"model({how}).fit(x, y)\n")
    assert any(note in warning for warning in found.warnings)


def test_an_input_shape_that_fits_no_open_input_is_refused(tmp_path: Path) -> None:
    message = refusal(tmp_path, MODEL + "model().fit(x, y)\n", input_shapes=((9,),))
    assert "--input-shape 9 fits no input whose shape is open" in message


def test_a_file_saved_without_a_gpu_counts_as_compiled_by_xla(tmp_path: Path) -> None:
    import subprocess
    import sys

    code = MODEL + f"model().save({str(tmp_path / 'm.keras')!r})\n"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert trace(parse_reference(str(tmp_path / "m.keras"))).trace.execution == "xla"


STRATEGY = (
    "import tensorflow as tf\n"
    "s = tf.distribute.MirroredStrategy()\n"
    "with s.scope():\n    m = model()\n"
    "m.fit(x, y, batch_size=8 * s.num_replicas_in_sync)\n"
)


@pytest.mark.tf
def test_a_strategy_means_graph_on_the_jax_path(tmp_path: Path) -> None:
    found = traced(tmp_path, MODEL + STRATEGY)
    assert (found.path, found.execution, found.script_batch_size) == ("jax", "graph", 8)
    assert any("MirroredStrategy" in warning for warning in found.warnings)


@pytest.mark.tf
def test_a_strategy_means_graph_on_the_tensorflow_path(tmp_path: Path) -> None:
    own = MODEL.replace("Dense(1)", "Dense(1, activation=lambda v: tf.nn.relu(v))")
    found = traced(tmp_path, "import tensorflow as tf\n" + own + STRATEGY)
    assert (found.path, found.execution) == ("tensorflow", "graph")


@pytest.mark.tf
def test_the_batch_of_a_named_step_is_told_from_sizes_like_it(tmp_path: Path) -> None:
    (tmp_path / "step.py").write_text("def step(x, w):\n    return x @ w\n")
    reference = parse_reference(
        f"{tmp_path / 'step.py'}:step", input_spec=("float32[batch,32]", "float32[32,8]")
    )
    shapes = [t.shape for t in trace(reference, batch_size=64).trace.tensors]
    assert shapes[:2] == [(64, 32), (32, 8)]


@pytest.mark.tf
def test_a_script_has_its_words_its_name_and_its_folder() -> None:
    assert facts()["script"] == ["['a',", "'b']", "__main__", facts()["script_folder"]]


@pytest.mark.tf
def test_an_exit_counts_only_while_something_is_still_wanted() -> None:
    assert facts()["script_exit"] == 3


def test_what_callbacks_save_is_read_and_other_calls_of_fit_are_told(tmp_path: Path) -> None:
    code = MODEL + (
        "from keras.callbacks import BackupAndRestore, EarlyStopping, ModelCheckpoint\n"
        "saving = [ModelCheckpoint('best.keras', save_best_only=True), EarlyStopping(),\n"
        "          BackupAndRestore('kept', save_freq=25),\n"
        "          BackupAndRestore('kept', save_freq=False)]\n"
        "class Scaler:\n    def fit(self, x): return self\nScaler().fit(x)\n"
        "m = model(optimizer='adam')\n"
        "m.fit(x, y, batch_size=16, callbacks=saving)\n"
        "m.fit(x, y, epochs=20)\n"
    )
    found = traced(tmp_path, code)
    assert found.savings == (Saving(only_best=True), Saving(every_batches=25))
    assert [note for note in found.warnings if "calls fit" in note] == [
        "The script calls fit in 2 places (lines 15, 16); this is call 1 alone, its length and "
        "its step; --fit names another, and advise --all-fits adds them up."
    ]
    once = traced(tmp_path, code.replace("m.fit(x, y, epochs=20)", "m.predict(x)"))
    assert not any("calls fit" in note for note in once.warnings)
