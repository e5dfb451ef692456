"""What JAX compiles while steps run, counted with JAX itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from tfdyno.runtime.diagnose.jax_batches import Batches
from tfdyno.runtime.diagnose.jax_compiles import STEP, CompileWatch

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.base.untyped import Value
    from tfdyno.core.measure.step_facts import RetraceFacts


def named(name: str) -> Callable[..., Value]:
    """A function that JAX has not compiled yet."""

    def function(value: Value) -> Value:
        return jnp.tanh(value) * 2

    function.__name__ = name
    return jax.jit(function)


def watched(
    function: Callable[..., Value], lengths: list[int], callback: str = ""
) -> tuple[dict[str, RetraceFacts], CompileWatch]:
    """What is told of calls with arrays of these lengths, a step each."""
    batches = Batches(lambda _s: None, lambda: 0.0)
    watch = CompileWatch(lambda: callback, batches)
    watch.start()
    try:
        for length in lengths:
            function(batches.take(iter([(np.zeros(length, np.float32),)]))[0])
            watch.step += 1
    finally:
        watch.stop()
    return {one.function: one for one in watch.facts()}, watch


def test_each_new_shape_of_the_step_counts_with_what_differs() -> None:
    found, watch = watched(named(STEP), [3, 3, 4, 5, 4])
    assert found[STEP].traces == 3
    assert found[STEP].calls == 5
    assert found[STEP].differs.startswith("argument x: shape (")
    assert sorted(watch.step_s) == [0, 2, 3]
    assert found[STEP].seconds_s == sum(watch.step_s.values()) > 0


def test_a_first_compile_of_another_function_is_no_news() -> None:
    found, watch = watched(named("of_the_user"), [3, 3, 3])
    assert "of_the_user" not in found
    assert watch.step_s == {}


def test_what_is_compiled_again_in_a_callback_is_told_as_such() -> None:
    found, _ = watched(named("in_a_callback"), [6, 7, 8], callback="Watch")
    assert (found["in_a_callback"].traces, found["in_a_callback"].callback) == (2, "Watch")
    assert found["in_a_callback"].differs == ""  # the batch of the step says nothing of it


def test_nothing_is_counted_behind_the_end() -> None:
    function = named(STEP)
    found, watch = watched(function, [9])
    function(np.zeros(10, np.float32))
    assert {one.function: one for one in watch.facts()} == found
