"""rules/tensorflow_only: what of a script only TensorFlow runs, and what is left alone."""

from __future__ import annotations

import pytest

from tfdyno.rules.tensorflow_only import tensorflow_uses

LAYER = (
    "import tensorflow as tf\nimport keras\nclass L(keras.layers.Layer):\n    def call(self, x):"
)


@pytest.mark.parametrize(
    ("source", "line", "name", "kind"),
    [
        ("import tensorflow as tf\nwith tf.GradientTape(): pass", 2, "tf.GradientTape", "loop"),
        ("from tensorflow import GradientTape\nGradientTape()", 2, "tf.GradientTape", "loop"),
        ("import tensorflow as tf\n@tf.function\ndef f(): pass", 2, "tf.function", "function"),
        (
            "import tensorflow as tf\ns = tf.distribute.MirroredStrategy()", 2,
            "tf.distribute.MirroredStrategy", "strategy",
        ),
        (f"{LAYER}\n        return tf.nn.relu(x)", 5, "tf.nn.relu", "operation"),
        (f"{LAYER} return tf.cast(x, tf.float32)", 4, "tf.cast", "operation"),
        (
            "import tensorflow\nimport keras\nkeras.layers.Lambda(lambda x: tensorflow.abs(x))", 3,
            "tf.abs", "operation",
        ),
    ],
)  # fmt: skip
def test_it_is_found_with_its_line(source: str, line: int, name: str, kind: str) -> None:
    (use,) = tensorflow_uses(source)
    assert (use.line, use.name, use.kind) == (line, name, kind)


@pytest.mark.parametrize(
    "source",
    [
        "import keras\nkeras.ops.relu(3)",
        "import tensorflow as tf\nd = tf.data.Dataset.range(3).map(lambda x: tf.cast(x, 'int32'))",
        "import tensorflow as tf\nx = tf.random.normal((3, 3))",
        f"{LAYER}\n        return tf.keras.ops.relu(x)",
        "class tf:\n    def call(self): return tf.nn()",
        "import tensorflow as tf\nthis is no Python",
    ],
)
def test_what_prepares_data_or_runs_anywhere_is_left_alone(source: str) -> None:
    assert tensorflow_uses(source) == ()
