"""rules/script_rewrite: settings of the training as changed lines of the user's own script."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tfdyno.rules.rewrite.script_rewrite import script_rewritten

HEAD = "import keras\nimport tensorflow as tf\n"


@pytest.mark.parametrize(
    ("settings", "before", "after"),
    [
        ({"execution": "xla"}, "m.compile('sgd')", "m.compile('sgd', jit_compile=True)"),
        ({"execution": "xla"}, "m.compile(jit_compile=False)", "m.compile(jit_compile=True)"),
        ({"execution": "xla"}, "import re\nr = re.compile('a')\nm.compile()\n",
         "import re\nr = re.compile('a')\nm.compile(jit_compile=True)\n"),
        ({"execution": "graph"}, "m.compile(run_eagerly=True)", "m.compile(run_eagerly=False)"),
        ({"execution": "graph"}, "tf.config.run_functions_eagerly(True)",
         "tf.config.run_functions_eagerly(False)"),
        ({"execution": "graph"}, "m.run_eagerly = True", "m.run_eagerly = False"),
        ({"execution": "graph"}, "EAGER = True\nm.compile(run_eagerly=EAGER)",
         "EAGER = False\nm.compile(run_eagerly=EAGER)"),
        ({"steps_per_execution": 32}, "m.compile()", "m.compile(steps_per_execution=32)"),
        ({"steps_per_execution": 32, "execution": "xla"}, "m.compile()",
         "m.compile(steps_per_execution=32, jit_compile=True)"),
        ({"batch_size": 64}, "m.fit(x, batch_size=8)", "m.fit(x, batch_size=64)"),
        ({"batch_size": 64}, "m.fit(a.batch(8), validation_data=b.batch(8))",
         "m.fit(a.batch(64), validation_data=b.batch(64))"),
        ({"batch_size": 64}, "ROWS, BATCH = 9, 8\nm.fit(x.batch(BATCH, drop_remainder=True))",
         "ROWS, BATCH = 9, 64\nm.fit(x.batch(BATCH, drop_remainder=True))"),
        ({"precision": "float32"}, "keras.mixed_precision.set_global_policy('mixed_float16')",
         'keras.mixed_precision.set_global_policy("float32")'),
        ({"precision": "float32"}, "keras.backend.set_floatx('float64')",
         'keras.backend.set_floatx("float32")'),
        ({"threads_intra": 8}, "tf.config.threading.set_intra_op_parallelism_threads(1)",
         "tf.config.threading.set_intra_op_parallelism_threads(8)"),
    ],
)  # fmt: skip
def test_a_setting_is_written_where_the_script_says_it(
    settings: dict[str, object], before: str, after: str
) -> None:
    assert script_rewritten(before, settings) == after


@pytest.mark.parametrize(
    ("head", "line"),
    [
        ("import keras\n", "keras.mixed_precision"),
        ("from tensorflow import keras\n", "keras.mixed_precision"),
        ("import tensorflow as tf\n", "tf.keras.mixed_precision"),
        ("import os\nos.environ['A'] = '1'\nimport keras as k\nimport numpy\n",
         "k.mixed_precision"),
    ],
)  # fmt: skip
def test_what_no_line_says_yet_stands_behind_the_imports(head: str, line: str) -> None:
    source = f"{head}\nmodel = build()\n"
    assert script_rewritten(source, {"precision": "mixed_float16"}) == (
        f'{head}\n{line}.set_global_policy("mixed_float16")\n\nmodel = build()\n'
    )


def test_a_line_more_ends_as_the_others_do() -> None:
    source = "import tensorflow as tf\r\nx = 1\r\n"
    assert script_rewritten(source, {"threads_inter": 2}) == (
        "import tensorflow as tf\r\n\r\n"
        "tf.config.threading.set_inter_op_parallelism_threads(2)\r\nx = 1\r\n"
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [("@tf.function\n", "@tf.function(jit_compile=True)\n"),
     ("@tf.function(reduce_retracing=True)\n",
      "@tf.function(reduce_retracing=True, jit_compile=True)\n"),
     ("@tf.function(jit_compile=False)\n", "@tf.function(jit_compile=True)\n")],
)  # fmt: skip
def test_the_step_of_a_loop_is_compiled_at_its_decorator(before: str, after: str) -> None:
    body = "def step(x):\n    with tf.GradientTape() as tape:\n        pass\n"
    other = "@tf.function\ndef score(x):\n    return model(x)\n"
    source = HEAD + before + body + other
    assert script_rewritten(source, {"execution": "xla"}) == HEAD + after + body + other


@pytest.mark.parametrize(
    ("settings", "source"),
    [
        ({"execution": "xla"}, "a.compile()\nb.compile()"),  # which is meant?
        ({"execution": "xla"}, "compile('1', 'a', 'eval')"),  # Python's own
        ({"execution": "xla"}, "m.compile(**how)"),
        ({"execution": "graph"}, "m.compile()"),
        ({"batch_size": 64}, "m.fit(x)"),
        ({"batch_size": 64}, "B = 8\nB = 9\nm.fit(x.batch(B))"),
        ({"batch_size": 64}, "m.fit(x, batch_size=words.batch)"),
        ({"precision": "mixed_float16"}, "model = build()\n"),  # no name of Keras
        ({"threads_intra": 8}, "import keras\n"),
        ({"threads_intra": 8}, "import tensorflow as tf; x = 1\n"),
        ({"seed": 3, "accumulation": 2}, HEAD),
    ],
)
def test_what_cannot_be_told_is_left_alone(settings: dict[str, object], source: str) -> None:
    assert script_rewritten(source, settings) == source


def test_a_file_that_is_no_python_is_refused() -> None:
    with pytest.raises(SyntaxError):
        script_rewritten("m = (", {"execution": "xla"})


def scripts() -> list[Path]:
    return sorted((Path(__file__).parents[2] / "data" / "bottlenecks").glob("*.py"))


@pytest.mark.parametrize("path", scripts(), ids=lambda path: path.name)
def test_whole_scripts_stay_python(path: Path) -> None:
    settings = {"execution": "xla", "steps_per_execution": 8, "batch_size": 4, "threads_intra": 2,
                "precision": "mixed_float16"}  # fmt: skip
    after = script_rewritten(path.read_text(), settings)
    ast.parse(after)
    assert script_rewritten(after, settings) == after
