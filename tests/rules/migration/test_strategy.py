from __future__ import annotations

from tests.rules.migration.code import found

TF = "import tensorflow as tf\nimport keras\n"


def test_a_model_made_by_a_function_called_in_the_scope_is_in_it() -> None:
    source = TF + (
        "def build():\n"
        "    model = keras.Sequential([])\n"
        "    model.compile('adam', jit_compile=True)\n"
        "    return model\n"
        "def main():\n"
        "    strategy = tf.distribute.MirroredStrategy()\n"
        "    with strategy.scope():\n"
        "        model = build()\n"
        "    model.fit(data)\n"
        "main()\n"
    )
    hits = found(source)
    assert "model_outside_scope" not in hits
    assert hits["strategy_jit_compile"].evidence[0].source == "train.py:5"


def test_a_scope_of_a_strategy_that_is_only_an_argument_counts() -> None:
    source = TF + (
        "def train(strategy):\n"
        "    with strategy.scope():\n"
        "        model = keras.Sequential([])\n"
        "    model.fit(data)\n"
        "train(tf.distribute.MirroredStrategy())\n"
    )
    assert "model_outside_scope" not in found(source)


def test_fit_alone_inside_the_scope_is_a_model_outside_of_it() -> None:
    source = TF + (
        "strategy = tf.distribute.MirroredStrategy()\n"
        "model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])\n"
        "model.compile('adam', 'mse')\n"
        "with strategy.scope():\n    model.fit(data)\n"
    )
    hit = found(source)["model_outside_scope"]
    assert hit.evidence[0].source == "train.py:7"
    assert (hit.values["name"], hit.values["inside"]) == ("MirroredStrategy", "fit")
    both = source.replace("model = keras", "with strategy.scope():\n    model = keras")
    assert "model_outside_scope" not in found(both)


def test_a_function_that_makes_and_trains_inside_the_scope_is_in_it() -> None:
    source = TF + (
        "def train():\n    model = keras.Sequential([])\n    model.fit(data)\n"
        "strategy = tf.distribute.MirroredStrategy()\n"
        "with strategy.scope():\n    train()\n"
    )
    assert "model_outside_scope" not in found(source)


def test_a_strategy_that_is_made_only_sometimes_accuses_nobody() -> None:
    source = TF + (
        "if many:\n    strategy = tf.distribute.MirroredStrategy()\n"
        "model = keras.Sequential([])\nmodel.fit(data)\n"
    )
    assert "model_outside_scope" not in found(source)


def test_an_option_by_name_of_a_constant_is_read() -> None:
    source = TF + (
        "STEPS = 8\nstrategy = tf.distribute.MirroredStrategy()\n"
        "with strategy.scope():\n    model = keras.Sequential([])\n"
        "    model.compile('adam', steps_per_execution=STEPS)\n"
    )
    assert "strategy_steps" in found(source)
    assert "strategy_steps" not in found(source.replace("STEPS = 8", "STEPS = 1"))


def test_options_without_a_strategy_are_fine() -> None:
    source = TF + (
        "model = keras.Sequential([])\n"
        "model.compile(keras.optimizers.Adam(gradient_accumulation_steps=4),"
        " jit_compile=True, steps_per_execution=8)\nmodel.fit(data)\n"
    )
    assert found(source) == {}
