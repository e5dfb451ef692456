"""Chains of one kernel in TensorFlow: as its graph runs them, and compiled by XLA."""

from __future__ import annotations

import itertools
import time
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops

from tfdyno.runtime.calibrate.tensorflow_kernels import built

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.base.untyped import Value
    from tfdyno.runtime.calibrate.points import Point

NAME = "TensorFlow"
TRANSFER_BYTES, TRANSFERS = 1 << 26, 5
STEPS, RUNS = 100, 7
"""A run of ``fit`` of so many steps, so many times, after one that does not count."""
OPTIMIZERS = {"disable_meta_optimizer": True}
"""Grappler would run equal operations once, and none whose result nobody reads."""


def prepare() -> None:
    """Set what holds for all chains of the process."""
    tf.config.optimizer.set_experimental_options(OPTIMIZERS)
    for card in tf.config.list_physical_devices("GPU"):
        tf.config.experimental.set_memory_growth(card, enable=True)


def allow_tf32(allowed: bool) -> None:
    """Set whether float32 products of the chains that are built next may run in TF32."""
    tf.config.experimental.enable_tensor_float_32_execution(allowed)


def release() -> str:
    """Return the version of TensorFlow."""
    return str(tf.__version__)


def devices() -> list[str]:
    """Return what the GPUs that TensorFlow sees are called."""
    return [
        str(tf.config.experimental.get_device_details(card).get("device_name", card.name))
        for card in tf.config.list_physical_devices("GPU")
    ]


def paces(where: str) -> dict[str, float]:
    """Return what is no kernel, by its name in the card file: transfers, or Keras' part."""
    return _transfers() if where == "gpu" else {"beside_step_s": _beside_step_s()}


def _beside_step_s() -> float:
    """Return seconds that Keras' ``fit`` takes beside each train step: iterator, callbacks, logs.

    The median of runs of ``fit`` of a model that computes nearly nothing, less calls of a
    function that does nothing, which every estimate has. They take turns: what else the machine
    does then slows both.
    """
    import keras

    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", jit_compile=False)
    batch = np.ones((4, 8), np.float32), np.ones((4, 1), np.float32)
    call = chain(None, 0, "graph")
    call()
    times_s: list[float] = []

    def take_turn(*_given: object) -> None:
        times_s.append(time.perf_counter())
        for _ in range(STEPS):
            call()
        times_s.append(time.perf_counter())

    turn = keras.callbacks.LambdaCallback(on_epoch_end=take_turn)
    data = tf.data.Dataset.from_tensors(batch).repeat()
    model.fit(
        data, steps_per_epoch=STEPS, epochs=1 + RUNS, verbose=0, callbacks=[turn], shuffle=False
    )
    runs_s = [later - earlier for earlier, later in itertools.pairwise(times_s)][1:]
    beside_s = [fit_s - calls_s for fit_s, calls_s in zip(runs_s[::2], runs_s[1::2], strict=True)]
    return max(0.0, median(beside_s)) / STEPS


def _transfers() -> dict[str, float]:
    """Return bytes per second from the host's memory to the card and back."""
    data = np.ones(TRANSFER_BYTES // 4, np.float32)
    there, back = [], []
    for _ in range(TRANSFERS):
        with tf.device("/CPU:0"):  # a new one: TensorFlow keeps the copy of a tensor
            given = tf.identity(tf.constant(data))
        began_s = time.perf_counter()
        with tf.device("/GPU:0"):
            held = tf.identity(given)
        wait(held)
        there.append(time.perf_counter() - began_s)
        began_s = time.perf_counter()
        held.numpy()
        back.append(time.perf_counter() - began_s)
    return {
        "to_card_bytes_per_s": TRANSFER_BYTES / min(there),
        "from_card_bytes_per_s": TRANSFER_BYTES / min(back),
    }


def chain(point: Point | None, count: int, execution: str) -> Callable[[], Any]:
    """Make a call that runs a kernel ``count`` times in a row; None: a call that runs none.

    Args:
        point: The kernel.
        count: How often it stands in the chain.
        execution: ``graph`` or ``xla``.
    """
    if point is None:
        run, given = (lambda x: x), (tf.constant(1.0),)
    else:
        run, given = built(point)
    each = _compiled if execution == "xla" else _ordered

    def body(*arguments: Any) -> Value:
        return each(run, arguments, count if point else 0)

    function = tf.function(body, jit_compile=execution == "xla", autograph=False)
    concrete = function.get_concrete_function(*given)
    return lambda: concrete(*given)


def wait(result: Value) -> None:
    """Wait until the device has done what it was asked for."""
    if tf.config.list_logical_devices("GPU"):
        tf.test.experimental.sync_devices()


def _ordered(run: Callable[..., Any], given: tuple[Any, ...], count: int) -> Value:
    """Let each wait for the one before, so that they run alone as in a step's longest path.

    Every second one takes the result of the one before where it may write over it: about so many of
    a step's operations on elements do, and they need no new memory.
    """
    last: Any = None
    for index in range(count):
        with tf.control_dependencies([last] if last is not None else []):
            again = index % 2 == 1 and _is_alike(last, given)
            last = run(last, *given[1:]) if again else run(*given)
    with tf.control_dependencies([last] if last is not None else []):
        return tf.constant(0.0)


def _is_alike(last: Value, given: tuple[Any, ...]) -> bool:
    """Return whether a result can stand for the first operand; products take other factors."""
    elementwise = len({tuple(one.shape) for one in given}) == 1 and given[0].shape.rank < 2
    return elementwise and last.shape == given[0].shape and last.dtype == given[0].dtype


def _compiled(run: Callable[..., Any], given: tuple[Any, ...], count: int) -> Value:
    """Compile so that XLA fuses nothing across a barrier and drops no result."""
    results: list[Any] = []
    for _ in range(count):
        made = run(*given)
        results.append(made)
        together = gen_xla_ops.xla_optimization_barrier([*given, made])
        given = tuple(together[: len(given)])
    return results or [tf.identity(given[0])]
