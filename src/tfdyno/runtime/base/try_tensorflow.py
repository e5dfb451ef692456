"""Try the installed TensorFlow: import it, list its GPUs, run one small step of each kind.

Standard library and TensorFlow only, because it runs in the user's own interpreter. Whatever
TensorFlow prints goes to the parent, which explains it.
"""

from __future__ import annotations

import time
import traceback
from typing import TYPE_CHECKING, Any

from tfdyno.process.child import Progress, Request, leave, serve

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.base.untyped import Module

SIZE = 512
"""Rows and columns of the matrices: large enough for a library kernel, milliseconds on a CPU."""


def handle(_request: Request, progress: Progress) -> dict[str, Any]:
    """Run the checks in order and stop at the first that fails.

    Returns:
        ``version``, ``import_s``, ``gpus`` (names), ``checks`` (name, seconds of the first and the
        second call) and, when one failed, ``failed`` (its name) and ``raised`` (the traceback).
    """
    result: dict[str, Any] = {"version": "", "import_s": 0.0, "gpus": [], "checks": []}
    name = "import"
    try:
        progress("importing TensorFlow")
        began_s = time.perf_counter()
        import tensorflow as tf

        result |= {"version": tf.__version__, "import_s": time.perf_counter() - began_s}
        name = "list GPUs"
        cards = tf.config.list_physical_devices("GPU")
        result["gpus"] = [one.name for one in cards]
        for card in cards:  # else it takes the whole card, from whoever uses it beside
            tf.config.experimental.set_memory_growth(card, True)
        for name, run in _checks(tf).items():
            progress(f"running a {name}")
            result["checks"].append([name, _timed(run), _timed(run)])
    except Exception:  # whatever the user's TensorFlow raises is the result
        result |= {"failed": name, "raised": traceback.format_exc()}
    return result


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
    leave(serve(handle))
