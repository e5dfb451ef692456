"""jobs/train/jax_run: a script that only TensorFlow trains is told with its line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.workload import Workload
from tfdyno.jobs.train.jax_run import check_script

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("with tf.GradientTape(): pass", r"line 2, tf\.GradientTape: A tape records .*model\.fit"),
        (
            "class L:\n    def call(self, x): return tf.nn.relu(x)",
            r"line 3, tf\.nn\.relu: .*write instead: keras\.ops\.relu",
        ),
        ("tf.distribute.TPUStrategy()", r"line 2, tf\.distribute\.TPUStrategy: .*cluster"),
    ],
)
def test_it_is_refused_in_one_sentence(source: str, words: str, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(f"import tensorflow as tf\n{source}\n")
    with pytest.raises(UsageError, match=f"cannot train on the JAX backend: {words}"):
        check_script(Workload(reference=str(script), kind="script", mode="train"))


@pytest.mark.parametrize(
    "source",
    [
        "ds = tf.data.Dataset.range(3).map(lambda x: tf.cast(x, 'int32'))",
        "tf.distribute.MirroredStrategy()",  # measured: it trains, and the strategy is not asked
        "import os\nos.environ['KERAS_BACKEND'] = 'tensorflow'",  # the trainer sets the backend
        "this is no Python",
    ],
)
def test_what_the_trainer_runs_on_jax_passes(source: str, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(f"import tensorflow as tf\n{source}\n")
    check_script(Workload(reference=str(script), kind="script", mode="train"))


def test_other_scripts_and_what_is_not_here_pass(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import keras\n")
    for reference in (f"{tmp_path}/train.py", f"{tmp_path}/train.py:f", "other.py", "keras:VGG16"):
        check_script(Workload(reference=reference, kind="script", mode="train"))
