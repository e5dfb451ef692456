"""A second run of a part: state as in the first, wherever the step runs."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from tests.runtime.remats import run_models

pytestmark = pytest.mark.tf
CODE = """
# Keras' own way: the averages move twice and the mask changes.
model, _, _, x = trained(blocks, "")
before = values(model.layers[0].norm)
layer = model.layers[0]
def moved(function):
    for variable, value in zip(layer.norm.variables, before):
        variable.assign(value)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(function(tf.constant(x)))
    tape.gradient(loss, [v.value for v in layer.trainable_variables])
    return apart(before, values(layer.norm))
once = moved(lambda z: layer(z, training=True))
result["naive"] = moved(tf.recompute_grad(lambda z: layer(z, training=True))) / once
plan = apply_remat(model, "blocks", batch_size=64)
result["ours"] = moved(lambda z: layer(z, training=True)) / once

# As a trainer with a compiled step of each replica calls it: updates are collected, not assigned.
def step_of(wanted):
    model, plan, _, x = trained(subclassed, wanted)
    @tf.function(jit_compile=True)
    def step(x):
        with keras.StatelessScope() as scope, tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(x, training=True) ** 2)
        gradients = tape.gradient(loss, [v.value for v in model.trainable_variables])
        states = [scope.get_current_value(v) for v in model.non_trainable_variables]
        return loss, gradients, states
    before = values(model)
    loss, gradients, states = step(tf.constant(x))
    arrays = [np.asarray(a).astype("f8") for a in [loss, *gradients, *states]]
    return arrays, apart(before, values(model)), len(states)

plain, with_remat = step_of(""), step_of("blocks")
result["surrounded"] = {
    "apart": apart(plain[0], with_remat[0]), "assigned": with_remat[1], "states": plain[2]}

# A gradient of a gradient, as in a penalty on gradients.
def penalty(wanted):
    model, plan, _, x = trained(transformer_dense, wanted)
    x = tf.constant(x)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            inner.watch(x)
            loss = tf.reduce_sum(model(x, training=True))
        size = tf.reduce_sum(inner.gradient(loss, x) ** 2)
    wanted = [v.value for v in model.trainable_variables]
    found = outer.gradient(size, wanted, unconnected_gradients="zero")
    return [np.asarray(a).astype("f8") for a in found]

def transformer_dense():
    model = keras.Sequential([keras.Input((6, 16)), Encoder(), Encoder(), L.Dense(1)])
    return model, random.normal(size=(64, 6, 16)).astype("f")
first, second = penalty(""), penalty("blocks")
result["twice"] = {"apart": apart(first, second), "size": max(abs(x).max() for x in first)}
"""


@functools.cache
def results() -> dict[str, Any]:
    return run_models(CODE)


def test_moving_averages_move_once_where_recompute_grad_moves_them_twice() -> None:
    assert results()["naive"] > 1.5  # so the comparison below can fail
    assert results()["ours"] == pytest.approx(1.0, abs=1e-5)


def test_within_a_stateless_scope_updates_are_collected_and_gradients_are_the_same() -> None:
    found = results()["surrounded"]
    assert found["states"] == 9  # three blocks: two averages and a seed each
    assert found["assigned"] == 0.0
    assert found["apart"] <= 1e-6


def test_a_gradient_of_a_gradient_is_right() -> None:
    found = results()["twice"]
    assert found["apart"] <= 1e-6 * found["size"]
