"""Trainings of Keras on JAX looked at in place: what is seen, and what is said of it."""

from __future__ import annotations

import pytest
from tests.runtime.jax_looks import answer, facts

from tfdyno.rules.bottleneck import diagnose

pytestmark = pytest.mark.tf
NAMED = {
    "generator": ("input.python_generator", ""),
    "pydataset": ("input.slow_pydataset", ""),
    "ragged": ("retrace.shape", "ragged.py:12"),
    "turns": ("host.uncompiled_layer", ""),
    "predicts": ("callback.slow_callback", "predicts.py:14"),
    "sleeps": ("callback.slow_callback", "sleeps.py:14"),
    "keeps": ("leak.tensors", "keeps.py:17"),
    "calls_python": ("host.numpy_in_step", "calls_python.py:20"),
}
"""The cause of each planted script, and its line."""


@pytest.mark.parametrize("name", NAMED)
def test_a_planted_cause_is_named_with_its_line(name: str) -> None:
    primary = diagnose(facts(name)).primary
    assert (primary.cause, primary.place) == NAMED[name]


def test_an_eager_step_is_named() -> None:
    seen = facts("eager")
    assert (seen.execution, seen.python_steps) == ("eager", ("run_eagerly",))
    causes = {one.cause: one for one in diagnose(seen).findings}
    assert causes["host.run_eagerly"].settings == {"execution": "xla"}


def test_a_clean_training_is_accused_of_nothing() -> None:
    found = diagnose(facts("clean"))
    assert found.primary.bottleneck_class == "healthy"
    assert any(note.startswith("Not looked at on JAX") for note in found.notes)


@pytest.mark.parametrize("name", ["clean", "generator", "sleeps", "calls_python", "ragged"])
def test_the_parts_of_a_step_add_up_to_it(name: str) -> None:
    found = diagnose(facts(name))
    assert sum(found.split_s.values()) == pytest.approx(found.step_s)


def test_what_is_seen_of_a_step_is_told() -> None:
    seen, software = facts("clean"), answer("clean")["software"]
    assert (seen.backend, seen.execution, seen.device) == ("jax", "xla", "cpu")
    assert (seen.batch_size, seen.steps_per_epoch) == (512, 10)
    assert seen.held_s
    assert software["jax"]
    assert seen.operations
    assert seen.operations.count_per_step > 5
    assert "gemm" in seen.operations.class_s
    assert seen.step_flops > 512 * 2 * 3 * 64 * 2048 * 0.6  # the first layer needs no input's
    assert seen.host.threads_intra == 0  # those of TensorFlow, which does not compute


def test_a_gpu_that_jax_leaves_unused_is_told() -> None:
    assert any("JAX computes on the CPU" in note for note in facts("clean").notes)


def test_waiting_for_data_is_timed_where_the_step_takes_it() -> None:
    seen = facts("generator")
    assert seen.waits_s > 0.02
    assert seen.input
    assert (seen.input.kind, seen.input.prefetches) == ("generator", False)
    assert min(seen.input.batch_s) > 0.02


def test_callbacks_for_which_keras_waits_are_told() -> None:
    seen = facts("reports")
    assert seen.read_each_step == ("Report in reports.py:14",)  # the other one is async_safe
    assert "validation" in {one.name for one in seen.callbacks}


def test_tensorflows_own_account_of_memory_says_nothing_of_jax() -> None:
    seen = facts("keeps")
    assert {one.where for one in seen.growth} == {"host"}
    assert {one.where for one in seen.memory} == {"host"}


def test_several_steps_in_a_call_are_counted() -> None:
    seen = facts("several")
    assert (seen.steps_per_execution, seen.batch_size) == (3, 64)
    assert seen.held_s
    assert seen.operations


def test_a_training_that_ends_by_itself_is_told() -> None:
    seen = facts("ends")
    assert any("ended by itself after 6 steps" in note for note in seen.notes)


def test_a_loop_of_its_own_is_refused_in_a_sentence() -> None:
    refused = answer("loop")["refused"]
    assert "trains by a loop of its own (train_on_batch)" in refused
    assert "on JAX the steps of model.fit are looked at" in refused
