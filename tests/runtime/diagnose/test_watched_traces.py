"""What is traced again, and why."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.benches import in_tensorflow
from tests.runtime.watched import line_of, traced

pytestmark = pytest.mark.tf


def _only(name: str) -> dict[str, Any]:
    retraces: list[dict[str, Any]] = traced()[name]["retraces"]
    assert len(retraces) == 1
    assert retraces[0]["seconds_s"] > 0
    return retraces[0]


def test_a_new_function_for_each_call_is_told_at_the_line_that_makes_it() -> None:
    one = _only("new_function")
    assert one["differs"] == "a new tf.function for each call"
    assert one["place"] == line_of("new_function", "tf.function(lambda")
    assert (one["traces"], one["calls"]) == (7, 8)


def test_a_last_batch_of_another_size_is_told_with_both_shapes() -> None:
    one = _only("last_batch")
    assert one["differs"] == (
        "argument images: shape (32, 8) -> (31, 8); argument labels: shape (32, 4) -> (31, 4)"
    )
    assert (one["function"], one["traces"], one["calls"]) == ("train", 1, 20)
    assert one["place"] == line_of("last_batch", "train(tf.ones((rows, 8))")


def test_a_python_number_is_told_with_its_values() -> None:
    one = _only("number")
    assert (one["differs"], one["traces"]) == ("argument step: 10 -> 11", 11)


def test_dtype_and_structure_are_told_by_the_path_of_the_argument() -> None:
    assert _only("dtype")["differs"] == "argument batch['image']: float32 -> float64"
    assert _only("structure")["differs"] == "argument parts[2]: structure: it appeared"


def test_tracing_is_told_by_the_step_that_it_was_in() -> None:
    spent = {name: traced()[name]["traced_s"] for name in ("last_batch", "dtype", "structure")}
    assert {name: list(steps) for name, steps in spent.items()} == {
        "last_batch": ["9"], "dtype": ["5"], "structure": ["5"],
    }  # fmt: skip
    assert spent["dtype"]["5"] == pytest.approx(_only("dtype")["seconds_s"])


def test_a_function_that_was_traced_before_the_watch_is_compared_with_that() -> None:
    assert _only("before")["differs"] == "argument k: 1 -> 2"


def test_a_shape_that_only_xla_compiles_again_counts() -> None:
    one = _only("xla")
    assert one["differs"].endswith("shape (8, 8) -> (9, 8) (compiled by XLA)")
    assert one["traces"] == 5


def test_a_dataset_that_keras_makes_is_told_by_the_function_that_is_traced() -> None:
    retraces = traced()["predict"]["retraces"]
    assert {one["differs"] for one in retraces} == {"a new dataset for each call"}
    assert "wrapped_fn" not in {one["function"] for one in retraces}
    assert {one["place"] for one in retraces} == {line_of("predict", "model.predict")}


def test_a_model_compiled_in_each_step_and_a_dataset_made_in_each_are_told() -> None:
    retraces = traced()["compiled_again"]["retraces"]
    assert retraces[0]["differs"] == "a new tf.function for each call"
    assert retraces[0]["place"] == line_of("compiled_again", "model.fit")
    one = _only("dataset")
    assert (one["function"], one["differs"]) == ("double", "a new dataset for each call")
    assert one["place"] == line_of("dataset", ".map(double)")


OF_DEVICES = """
import dataclasses
import tensorflow as tf
from tfdyno.runtime.diagnose.watched_traces import TraceWatch
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
data = strategy.experimental_distribute_dataset(tf.data.Dataset.range(8).batch(4))
watch = TraceWatch()
watch.start()
for _ in range(5):
    next(iter(data))
    watch.step += 1
watch.stop()
result = [dataclasses.asdict(one) for one in watch.facts()]
"""


def test_functions_of_an_iterator_over_several_devices_are_not_the_user_s() -> None:
    found: list[dict[str, Any]] = in_tensorflow(OF_DEVICES)
    assert found
    assert {one["differs"] for one in found} == {
        "a new iterator over several devices for each call"
    }
    assert {one["traces"] for one in found} == {4}
