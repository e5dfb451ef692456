"""Try the installed TensorFlow: import it, list its GPUs, run one small step of each kind.

Standard library and TensorFlow only, because it runs in the user's own interpreter. Whatever
TensorFlow prints goes to the parent, which explains it.
"""

from __future__ import annotations

import time
import traceback
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tfdyno.core.doctor.machine_facts import ChildFacts
from tfdyno.core.messages.doctor import TRY_TENSORFLOW
from tfdyno.process.child import Progress, leave, serve

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.base.untyped import Module
    from tfdyno.core.messages.child import Nothing

SIZE = 512
"""Rows and columns of the matrices: large enough for a library kernel, milliseconds on a CPU."""


def handle(_request: Nothing, progress: Progress) -> ChildFacts:
    """Run the checks in order and stop at the first that fails, whose traceback is the error."""
    found = ChildFacts()
    name = "import"
    try:
        progress("importing TensorFlow")
        began_s = time.perf_counter()
        import tensorflow as tf

        found = replace(found, version=tf.__version__, import_s=time.perf_counter() - began_s)
        name = "list GPUs"
        cards = tf.config.list_physical_devices("GPU")
        found = replace(found, gpus=tuple(one.name for one in cards))
        for card in cards:  # else it takes the whole card, from whoever uses it beside
            tf.config.experimental.set_memory_growth(card, True)
        for name, run in _checks(tf).items():
            progress(f"running a {name}")
            found = replace(found, checks=(*found.checks, (name, _timed(run), _timed(run))))
    except Exception:  # whatever the user's TensorFlow raises is the result
        return replace(found, failed=name, error=traceback.format_exc())
    return found


def _checks(tf: Module) -> dict[str, Callable[[], Any]]:
    matrix = tf.ones((SIZE, SIZE))
    image, kernel = tf.ones((8, 32, 32, 16)), tf.ones((3, 3, 16, 16))
    compiled = tf.function(lambda x: tf.reduce_sum(tf.nn.relu(x @ x)), jit_compile=True)
    return {
        "matrix product": lambda: tf.linalg.matmul(matrix, matrix),
        "convolution": lambda: tf.nn.conv2d(image, kernel, strides=1, padding="SAME"),
        "compiled function": lambda: compiled(matrix),
    }


def _timed(run: Callable[[], Any]) -> float:
    began_s = time.perf_counter()
    run().numpy()  # waits for the device
    return time.perf_counter() - began_s


if __name__ == "__main__":
    leave(serve(handle, TRY_TENSORFLOW))
