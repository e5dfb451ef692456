"""One step of a Keras model under TensorFlow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from gpu_truth.running import NoDeviceError, Running

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Model, Tensor, Value


def prepare(precision: str, device: str) -> None:
    """Set what has to be set before the first tensor.

    Raises:
        NoDeviceError: TensorFlow sees no card.
    """
    cards = tf.config.list_physical_devices("GPU")
    if device == "gpu" and not cards:
        raise NoDeviceError(f"TensorFlow {tf.__version__} sees no GPU: tfdyno doctor tells why")
    for card in cards:
        tf.config.experimental.set_memory_growth(card, True)
    if precision == "float32":
        tf.config.experimental.enable_tensor_float_32_execution(False)


def running(model: Model, x: Tensor, y: Tensor, step: dict[str, Any], device: str) -> Running:
    """Make the step; it is traced and compiled when it is called first."""
    compiled = step["execution"] == "xla"
    place = "/GPU:0" if device == "gpu" else "/CPU:0"
    with tf.device(place):
        x, y = (
            tf.nest.map_structure(lambda a: tf.identity(tf.constant(a)), part) for part in (x, y)
        )
    if step["mode"] == "train":
        model.optimizer.build(model.trainable_variables)
        train = tf.function(lambda a, b: model.train_step((a, b)), jit_compile=compiled)

        def call() -> Value:
            return train(x, y)["loss"]

    else:
        infer = tf.function(lambda a: model(a, training=False), jit_compile=compiled)

        def call() -> Value:
            return infer(x)

    def wait(result: Value) -> float:
        first = tf.nest.flatten(result)[0]
        return float(tf.reshape(first, [-1])[0].numpy())

    def memory() -> tuple[int, int]:
        told = tf.config.experimental.get_memory_info("GPU:0")
        return told["current"], told["peak"]

    def reset() -> None:
        if device == "gpu":
            tf.config.experimental.reset_memory_stats("GPU:0")

    return Running(
        call=call,
        wait=wait,
        memory=memory if device == "gpu" else None,
        reset_memory=reset,
        facts=_versions(),
    )


def _versions() -> dict[str, object]:
    build = tf.sysconfig.get_build_info()
    told = {"cuda": build.get("cuda_version"), "cudnn": build.get("cudnn_version")}
    return {
        "framework_version": tf.__version__,
        **{name: str(value) for name, value in told.items() if value},
    }
