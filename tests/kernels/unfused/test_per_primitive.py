"""A kernel for each primitive operation, held against TensorFlow's own graph."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import jax
import pytest
from jax import lax
from jax import numpy as jnp
from tests.runtime.lowered import graph, tensors

from tfdyno.core.choose.workload import Workload
from tfdyno.jobs.choose.trace import trace
from tfdyno.kernels.records import Sizes
from tfdyno.kernels.unfused.per_primitive import primitive_kernels

if TYPE_CHECKING:
    from pathlib import Path

    from tests.runtime.lowered import Argument, Step

    from tfdyno.core.choose.program import Kernel

BATCH = 37
MODEL = """
import keras
from keras import layers

def small():
    x = inputs = keras.Input((16, 16, 3))
    for width in (16, 32):
        x = layers.Conv2D(width, 3, padding="same", use_bias=False)(x)
        x = layers.Activation("relu")(layers.BatchNormalization()(x))
    x = layers.Dense(10, dtype="float32")(layers.GlobalAveragePooling2D()(x))
    model = keras.Model(inputs, x)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(0.1), loss)
    return model
"""
GRAPPLER = """
import collections, json, sys
import tensorflow as tf, keras
keras.config.set_dtype_policy("mixed_bfloat16")
sys.path.insert(0, sys.argv[1])
import small
from tensorflow.core.protobuf import config_pb2
from tensorflow.core.protobuf.device_properties_pb2 import DeviceProperties, NamedDevice
from tensorflow.python.framework import meta_graph
from tensorflow.python.grappler import cluster, tf_optimizer
model = small.small()
model.optimizer.build(model.trainable_variables)
data = tf.TensorSpec((37, 16, 16, 3)), tf.TensorSpec((37,), "int32")
made = tf.function(lambda x, y: model.train_step((x, y))).get_concrete_function(*data).graph
name = "/job:localhost/replica:0/task:0/device:GPU:0"
card = DeviceProperties(type="GPU", vendor="NVIDIA", num_cores=132, frequency=1980,
                        bandwidth=4800000000, memory_size=140 << 30)
card.environment["architecture"] = "9.0"
code = made.as_graph_def()
for node in code.node:
    node.device = name
whole = meta_graph.create_meta_graph_def(graph_def=code)
ends = [each.name for each in (*made.outputs, *made.control_outputs)]
whole.collection_def["train_op"].node_list.value.extend(ends)
config = config_pb2.ConfigProto()
config.graph_options.rewrite_options.min_graph_nodes = -1
devices = cluster.Cluster(devices=[NamedDevice(properties=card, name=name)])
done = tf_optimizer.OptimizeGraph(config, whole, cluster=devices)
print(json.dumps(collections.Counter(node.op for node in done.node)))
"""


def kernels(step: Step, *arguments: Argument, mode: str = "infer") -> tuple[Kernel, ...]:
    sizes = Sizes(BATCH, BATCH)
    return primitive_kernels(graph(step, *arguments), sizes, tensors(*arguments), mode)


@pytest.mark.tf
def test_large_kernels_are_those_of_tensorflow_s_graph_after_grappler(tmp_path: Path) -> None:
    file = tmp_path / "small.py"
    file.write_text(MODEL)
    command = [sys.executable, "-c", GRAPPLER, str(tmp_path)]
    environment = {**os.environ, "KERAS_BACKEND": "tensorflow", "CUDA_VISIBLE_DEVICES": "-1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    theirs = json.loads(done.stdout.splitlines()[-1])
    workload = Workload(reference=f"{file}:small", kind="function", precision="mixed_bfloat16")
    made = trace(workload).per_primitive
    assert made
    image = 16 * 16 * 16  # elements of the smaller feature map
    ours: dict[str, int] = {}
    for each in made.kernels:
        elements = max((*each.dims.get("elements", ()), *each.dims.get("summed", ())), default=0)
        if elements >= image or each.kind == "convolution":
            ours[each.name] = ours.get(each.name, 0) + 1
    assert theirs["Conv2D"] + theirs["Conv2DBackpropInput"] + theirs["Conv2DBackpropFilter"] == 5
    assert ours["convolution"] == 5
    assert "Transpose" not in theirs
    assert "transpose" not in ours
    assert ours["square"] == theirs["SquaredDifference"] == 2
    # two gradients of means in each normalisation, and the pooling's
    assert ours["tile"] == theirs["Tile"] == 5
    assert ours["maximum"] == theirs["Relu"] == 2
    assert ours["select"] == theirs["ReluGrad"] == 2
    # four sums in each normalisation; TensorFlow has the pooling, the loss and its bias beside them
    assert ours["reduce"] == 8
    assert 8 <= theirs["Mean"] + theirs["Sum"] <= 11


def test_a_kernel_tells_how_many_elements_its_threads_take() -> None:
    def step(x: jax.Array, w: jax.Array) -> jax.Array:
        same = jnp.tanh(x) * 2.0
        return jnp.exp(same * x) + w.astype(jnp.bfloat16).astype(jnp.float32)

    shape = (BATCH, 8, 16)
    made = kernels(step, ("input", shape), ("weight", (16,)))
    taken = [(one.name, *one.dims["per_thread"]) for one in made if one.name != "convert"]
    assert taken == [
        ("tanh", 4),
        ("multiply", 4),  # by a number
        ("multiply", 4),
        ("exponential", 4),
        ("add", 1),  # a vector for every row
    ]
    assert {one.dims["per_thread"] for one in made if one.name == "convert"} == {(1,)}
    assert made[0].dims["elements"] == (BATCH * 8 * 16,)
    assert made[0].dims_scaled == ("elements",)
    assert made[0].read_bytes.per_sample == made[0].write_bytes.per_sample == 8 * 16 * 4


def test_a_sum_tells_the_axes_around_it() -> None:
    shape = (BATCH, 8, 6, 16)

    def summed(*axes: int) -> tuple[dict[str, tuple[int, ...]], tuple[str, ...]]:
        (one,) = of_kind_of(kernels(lambda x: jnp.sum(x, axes), ("input", shape)))
        return one.dims, one.dims_scaled

    columns, rows, between = summed(0, 1, 2), summed(3), summed(2)
    assert columns == ({"outer": (1,), "summed": (BATCH * 48,), "inner": (16,)}, ("summed",))
    assert rows == ({"outer": (BATCH * 48,), "summed": (16,), "inner": (1,)}, ("outer",))
    assert between == ({"outer": (BATCH * 8,), "summed": (6,), "inner": (16,)}, ("outer",))


def test_images_in_float32_are_added_up_in_pieces() -> None:
    def step(x: jax.Array, w: jax.Array) -> jax.Array:
        layout = ("NHWC", "HWIO", "NHWC")
        y = lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=layout)
        return jnp.sum(y.astype(jnp.float32), (0, 1, 2))

    for dtype, dims in (
        ("float32", {"outer": (1,), "summed": (BATCH * 64,), "inner": (16,), "scattered": (1,)}),
        ("bfloat16", {"outer": (1,), "summed": (BATCH * 64,), "inner": (16,)}),
    ):
        made = kernels(step, ("input", (BATCH, 8, 8, 3), dtype), ("weight", (3, 3, 3, 16), dtype))
        assert [one.dims for one in of_kind_of(made)] == [dims]
    (apart,) = of_kind_of(kernels(lambda x: jnp.sum(x, (0, 2)), ("input", (BATCH, 8, 6))))
    assert apart.dims == {
        "outer": (1,), "summed": (BATCH * 6,), "inner": (8,), "scattered": (1,)
    }  # fmt: skip


def of_kind_of(made: tuple[Kernel, ...]) -> list[Kernel]:
    return [one for one in made if one.kind == "reduce"]


def test_of_a_table_no_more_is_read_than_taken() -> None:
    made = kernels(
        lambda table, tokens: jnp.take(table, tokens, axis=0),
        ("weight", (1000, 8)),
        ("input", (BATCH,), "int32"),
    )
    (gather,) = [one for one in made if one.kind == "gather"]
    assert gather.read_bytes.per_sample == 8 * 4 + 4
    assert gather.write_bytes.per_sample == 8 * 4


def test_a_loop_counts_every_trip() -> None:
    def step(x: jax.Array, w: jax.Array) -> jax.Array:
        return lax.fori_loop(0, 5, lambda _, h: jnp.tanh(h @ w), x)

    made = kernels(step, ("input", (BATCH, 64)), ("weight", (64, 64)))
    assert [(one.name, one.count) for one in made if one.kind in ("gemm", "loop")][:2] == [
        ("dot_general", 5),
        ("tanh", 5),
    ]
