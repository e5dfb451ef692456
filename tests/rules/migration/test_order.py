from __future__ import annotations

import pytest
from tests.rules.migration.code import found

TF = "import tensorflow as tf\nimport keras\n"
GROW = "tf.config.experimental.set_memory_growth(gpu, True)"
LATE = [
    f"model = keras.applications.ResNet50()\n{GROW}",
    f"tf.config.list_logical_devices('GPU')\n{GROW}",
    f"strategy = tf.distribute.MirroredStrategy()\n{GROW}",
    f"def main():\n    x = tf.ones(3)\n    {GROW}\nmain()",
    f"def grow():\n    {GROW}\ndef main():\n    d = tf.data.Dataset.range(3)\n    grow()\nmain()",
    f"def never_called():\n    x = tf.ones(3)\n    {GROW}",
    "x = tf.ones(3)\ntf.config.set_logical_device_configuration(gpu, [])",
    "x = tf.ones(3)\ntf.config.set_visible_devices([], 'GPU')",
]
IN_TIME = [
    f"for gpu in tf.config.list_physical_devices('GPU'):\n    {GROW}\nx = tf.ones(3)",
    f"def build():\n    return keras.Sequential()\n{GROW}\nmodel = build()",
    f"def main():\n    x = tf.ones(3)\n{GROW}\nmain()",
    f"if debug:\n    x = tf.ones(3)\nelse:\n    {GROW}",
    f"tf.random.set_seed(1)\nkeras.utils.set_random_seed(1)\nkeras.mixed_precision.set_global_policy('float32')\n{GROW}",
    f"opt = keras.losses.MeanSquaredError()\nlayer = keras.layers.Dense(3)\n{GROW}",
]  # fmt: skip


@pytest.mark.parametrize("source", LATE)
def test_a_device_setting_after_the_gpu_was_taken_is_found(source: str) -> None:
    assert "growth_too_late" in found(TF + source)


@pytest.mark.parametrize("source", IN_TIME)
def test_a_device_setting_in_time_is_left_alone(source: str) -> None:
    assert "growth_too_late" not in found(TF + source)


def test_the_finding_says_what_came_before_and_where() -> None:
    match = found(f"{TF}x = tf.ones(3)\n{GROW}")["growth_too_late"]
    assert match.values["before_where"] == "train.py:3"
    assert match.values["before"] == "x = tf.ones(3)"


def test_functions_that_call_each_other_end() -> None:
    source = TF + "def a():\n    b()\ndef b():\n    a()\n" + "a()\n" * 50
    assert found(source) == {}


@pytest.mark.tf
def test_tensorflow_itself_refuses_the_setting_after_the_calls_that_the_rule_names() -> None:
    import subprocess
    import sys

    from tfdyno.rules.migration import order

    calls = {"tf.constant": "1", "tf.Variable": "1.0",
             "tf.zeros": "3", "tf.ones": "3", "tf.range": "3",
             "tf.fill": "[2], 1", "tf.eye": "2",
             "tf.convert_to_tensor": "1", "tf.cast": "1, tf.float32",
             "tf.matmul": "[[1.0]], [[1.0]]", "tf.random.normal": "[2]", "tf.random.uniform": "[2]",
             "tf.data.Dataset.from_tensor_slices": "[1]", "tf.data.Dataset.from_tensors": "1",
             "tf.data.Dataset.range": "3", "tf.summary.create_file_writer": "'/tmp'",
             "tf.device": "'/CPU:0'"}  # fmt: skip
    lines = [
        f"{name}({calls.get(name, '')})" + (".__enter__()" if name == "tf.device" else "")
        for name in order._STARTS
    ]
    script = (
        "import os, sys, tensorflow as tf\n"
        "for line in sys.argv[1:]:\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        eval(line)\n"
        "        try: tf.config.threading.set_intra_op_parallelism_threads(1)\n"
        "        except RuntimeError: os._exit(0)\n"
        "        os._exit(1)\n"
        "    if os.waitpid(pid, 0)[1]: print(line)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script, *lines], capture_output=True, text=True, timeout=300
    )
    assert (run.returncode, run.stdout) == (0, "")
