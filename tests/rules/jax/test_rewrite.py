"""rules/jax/rewrite: only what is safe is changed, and the rest of the text stays."""

from __future__ import annotations

from tests.rules.jax.judged import HEAD, layer, migrated

SET = 'import os\n\nos.environ["KERAS_BACKEND"] = "jax"\n\n'


def test_the_backend_is_set_before_keras_is_imported_and_tensorflow_goes() -> None:
    new, hands = migrated(layer("return tf.nn.relu(x)  # kept"))
    assert hands == []
    kept = "class Own(keras.layers.Layer):\n    def call(self, x):\n"
    assert new == f"{SET}import keras\n{kept}        return keras.ops.relu(x)  # kept\n"


def test_tensorflow_stays_for_the_data_set() -> None:
    source = "import os\nimport tensorflow as tf\n\nds = tf.data.Dataset.range(3)\n"
    source += "m = tf.keras.Sequential()\nb = tf.keras.backend.epsilon()\n"
    new, _ = migrated(source)
    assert new == (
        'import os\nos.environ["KERAS_BACKEND"] = "jax"\n\n'
        "import keras\nimport tensorflow as tf\n\n"
        "ds = tf.data.Dataset.range(3)\nm = keras.Sequential()\nb = tf.keras.backend.epsilon()\n"
    )


def test_imports_from_tensorflow_keras_become_those_of_keras() -> None:
    source = (
        "from tensorflow import keras\n"
        "from tensorflow.keras.layers import (\n    Dense,  # one\n    Input,\n)\n"
        "from tensorflow.keras.preprocessing.text import Tokenizer\n"
        "import tensorflow.keras.models as km\n"
    )
    new, _ = migrated(source)
    assert new == (
        f"{SET}import keras\nfrom keras.layers import (\n    Dense,  # one\n    Input,\n)\n"
        "from tensorflow.keras.preprocessing.text import Tokenizer\n"
        "import tensorflow.keras.models as km\n"
    )


def test_a_layer_gets_one_state_for_its_random_numbers() -> None:
    new, hands = migrated(
        layer(
            "a = tf.random.normal((2,), seed=3)", "return x + a + keras.random.uniform((2,))",
            init="self.n = 2",
        )
    )  # fmt: skip
    assert hands == []
    assert new.count("self.seed_generator = keras.random.SeedGenerator()") == 1
    assert "keras.random.normal((2,), seed=self.seed_generator)" in new
    assert "keras.random.uniform((2,), seed=self.seed_generator)" in new


def test_random_numbers_without_a_place_for_their_state_are_left_to_a_person() -> None:
    _, hands = migrated(layer("return x + tf.random.normal((2,))"))
    assert hands == [5]


def test_what_is_left_to_a_person_is_named_with_its_line_and_stays() -> None:
    new, hands = migrated(layer("y = tf.boolean_mask(x, x > 0)", "return tf.nn.relu(y)"))
    assert hands == [5]
    assert "y = tf.boolean_mask(x, x > 0)" in new
    assert "keras.ops.relu(y)" in new


def test_a_sequential_of_a_data_set_becomes_a_pipeline_where_nothing_else_uses_it() -> None:
    source = HEAD + "flip = keras.Sequential([keras.layers.RandomFlip()])\n"
    source += "ds = tf.data.Dataset.range(3).map(lambda a: flip(a))\n"
    new, hands = migrated(source)
    assert hands == []
    assert "flip = keras.layers.Pipeline([keras.layers.RandomFlip()])" in new
    _, hands = migrated(source + "print(flip(x))\n")
    assert hands == [4]


def test_the_backend_is_set_above_a_decorated_function_that_imports() -> None:
    source = "@cache\ndef f():\n    import keras\n    return keras.Sequential()\n"
    assert migrated(source)[0] == SET + source


def test_ends_of_lines_stay() -> None:
    new, _ = migrated(layer("return tf.nn.relu(x)").replace("\n", "\r\n"))
    assert new.count("\r\n") == new.count("\n")


def test_a_backend_that_is_set_is_changed_where_it_stands() -> None:
    new, _ = migrated("import os\nos.environ['KERAS_BACKEND'] = 'tensorflow'\nimport keras\n")
    assert new == "import os\nos.environ['KERAS_BACKEND'] = \"jax\"\nimport keras\n"


def test_what_was_migrated_needs_no_more() -> None:
    once, _ = migrated(layer("return tf.concat([x, x], axis=-1)"))
    assert migrated(once) == (once, [])
