"""jobs/_tune_space: the usual values follow from the workload and its device."""

from __future__ import annotations

from typing import Any

import pytest

from tfdyno.core.recipe.recipe import Recipe, from_settings
from tfdyno.jobs.tune._cache import data_bytes, room_bytes
from tfdyno.jobs.tune._space import SpaceFacts, left_out, space_of


def facts(**fields: Any) -> SpaceFacts:
    given = {"batch_size": 64, "execution": "xla", "policy": "float32",
             "suited_policy": "mixed_bfloat16", **fields}  # fmt: skip
    return SpaceFacts(**given)


def choices(start: Recipe | None = None, **fields: Any) -> dict[str, tuple[Any, ...]]:
    return space_of({}, start or Recipe(), facts(**fields)).choices


def test_all_doublings_are_there_whatever_an_estimate_says_of_memory() -> None:
    assert choices()["batch_size"] == (64, 128, 256, 512)
    assert choices(samples_per_epoch=300)["batch_size"] == (64, 128, 256)


@pytest.mark.parametrize(
    ("size", "room", "offered"),
    [(1.0, 2.0, True), (2.0, 2.0, True), (3.0, 2.0, False), (0.0, 2.0, False)],
)
def test_a_cache_is_offered_where_it_is_known_to_fit(
    size: float, room: float, offered: bool
) -> None:
    assert ("input.cache" in choices(data_bytes=size, room_bytes=room)) == offered


def test_an_epoch_has_the_bytes_of_its_inputs() -> None:
    # 224 * 224 * 3 * 4 + 8 bytes, 1,000 times
    assert data_bytes(("float32[224,224,3]", "int64[1]"), 1000) == 602_120_000.0
    assert data_bytes(("float32[224,224,3]",), 0) == 0.0
    assert data_bytes(("float32[?,3]",), 10) == data_bytes(("string[1]",), 10) == 0.0
    assert data_bytes(("bool[4]",), 10) == 40.0


def test_room_is_a_share_of_what_is_free_and_a_guess_elsewhere() -> None:
    assert 0 < room_bytes(is_here=True, limit_bytes=1000) == 500.0
    assert room_bytes(is_here=False) == 1 << 30


def test_a_loop_has_neither_batch_nor_input_nor_several_steps() -> None:
    assert set(choices(is_loop=True)) == {"execution", "precision"}


def test_with_the_batch_kept_larger_ones_go_up_to_an_update_that_is_accumulated() -> None:
    start = from_settings({"batch_size": "64", "accumulation": "4"})
    kept = choices(start, accumulation=4, keep_batch=True)
    assert kept["batch_size"] == (64, 128, 256)
    assert "batch_size" not in choices(keep_batch=True)


def test_jax_has_no_graph_and_its_arrays_no_pipeline() -> None:
    assert "execution" not in choices(backend="jax")
    assert choices(backend="jax", execution="graph")["execution"] == ("auto", "xla")
    assert choices()["execution"] == ("xla", "graph")
    without = choices(has_pipeline=False, data_bytes=1.0, room_bytes=2.0)
    assert not [name for name in without if name.startswith("input.")]


def test_what_is_left_out_is_said_of_jax_and_of_data_that_tf_data_does_not_read() -> None:
    execution = "execution is not tuned: JAX compiles every step with XLA."
    of_input = "Settings of the input are not tuned: tf.data does not read this data."
    assert left_out(facts()) == ()
    assert left_out(facts(backend="jax")) == (execution,)
    assert left_out(facts(backend="jax", execution="eager")) == ()
    assert left_out(facts(has_pipeline=False)) == (of_input,)
    assert left_out(facts(has_pipeline=False, own_input=False)) == ()
    assert left_out(facts(has_pipeline=False, is_loop=True)) == ()
