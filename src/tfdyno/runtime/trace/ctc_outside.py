"""TensorFlow's own CTC operation, which XLA does not have: the step is traced without it.

``tf.compat.v1.nn.ctc_loss``, Keras' ``ctc_batch_cost`` and ``tf.nn.ctc_loss`` of sparse labels end
in one kernel, most often on the CPU, that gives losses and gradients at once. In its place stand a
loss and a gradient of the same sizes, so that all before and after it is what it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfdyno.core.base.units import format_bytes
from tfdyno.runtime.base.tensorflow_internals import ctc_changed

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from tfdyno.core.base.untyped import Dataset, Tensor, Value


def ctc_outside(found: dict[str, int]) -> AbstractContextManager[None]:
    """Let CTC be traced as operations of its sizes.

    Args:
        found: Gets each operation that was met, with the bytes of the logits of one sample.
    """

    def replacement(operation: str) -> Value:
        def met(inputs: Tensor, *_labels: Any, **_options: Any) -> Value:
            logits = tf.convert_to_tensor(inputs)
            steps, _, classes = logits.shape
            found[operation] = (steps or 0) * (classes or 0) * logits.dtype.size
            return _loss_and_gradient(logits)

        return met

    return ctc_changed(replacement)


def outside_note(found: dict[str, int]) -> str:
    """Return what an answer for such a step has to say.

    Args:
        found: At least one operation, as ``ctc_outside`` gives them.
    """
    verb = "is" if len(found) == 1 else "are"
    return (
        f"{' and '.join(sorted(found))} {verb} left out of time and memory, with what prepares the "
        "labels: TensorFlow runs that beside the program, most often on the CPU, and copies "
        f"{format_bytes(max(found.values()))} of logits of each sample there and as much of "
        "gradients back; how long it takes is not known. XLA does not have it: train with "
        "jit_compile=False, or with keras.losses.CTC, which XLA compiles."
    )


def _loss_and_gradient(logits: Tensor) -> tuple[Any, Any]:
    """Return a loss of each sample and the gradient of the logits, in the sizes of the kernel's.

    Args:
        logits: (steps, batch, classes).
    """

    @tf.custom_gradient
    def loss_of(logits: Tensor) -> Value:
        gradient = -logits  # a tensor of its own until the backward pass, as the kernel's is

        def backward(upstream: Dataset) -> Value:
            return gradient * upstream[None, :, None]

        return logits[0, :, 0], backward

    return loss_of(logits), -logits
