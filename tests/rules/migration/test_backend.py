from __future__ import annotations

import pytest
from tests.rules.migration.code import found

KERAS = "import keras\n"
SET = "keras.distribution.set_distribution(d)"


@pytest.mark.parametrize(
    "source",
    [
        "mesh = keras.distribution.DeviceMesh((2,), ['x'])\nkeras.distribution.LayoutMap(mesh)",
        f"if keras.backend.backend() != 'jax':\n    raise SystemExit\n{SET}",
        f"keras.config.set_backend('jax')\n{SET}",
        f"import os\nos.environ.setdefault('KERAS_BACKEND', 'jax')\n{SET}",
        f"import jax\n{SET}",
    ],
)
def test_a_file_that_knows_its_backend_or_only_describes_a_layout_is_left_alone(
    source: str,
) -> None:
    assert "keras_distribution" not in found(KERAS + source)


def test_a_distribution_used_through_its_scope_counts() -> None:
    source = KERAS + "d = keras.distribution.DataParallel()\nwith d.scope():\n    pass"
    assert "keras_distribution" in found(source)


def test_the_tensorflow_backend_set_in_the_file_makes_it_proven() -> None:
    source = f"import os\nos.environ['KERAS_BACKEND'] = 'tensorflow'\n{KERAS}{SET}"
    assert found(source)["keras_distribution"].verdict == "proven"
    assert found(KERAS + SET)["keras_distribution"].verdict == "likely"


def test_horovod_around_an_optimizer_that_is_not_of_keras_is_left_alone() -> None:
    base = "import horovod.tensorflow as hvd\nimport tensorflow as tf\nimport keras\n"
    v1 = "hvd.DistributedOptimizer(tf.compat.v1.train.AdamOptimizer(1e-3))"
    assert "horovod_keras3" not in found(base + v1)
    assert "horovod_keras3" in found(base + "hvd.DistributedOptimizer(keras.optimizers.Adam(1e-3))")
