"""A step that the user names, ``file.py:train_step``, with ``--input-spec`` for its arguments."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfdyno.core.errors import UsageError
from tfdyno.runtime.failure import user_code
from tfdyno.runtime.loop_step import LoopStep, loop_step
from tfdyno.runtime.workloads import function_of

if TYPE_CHECKING:
    from tfdyno.core.workload import Workload

DEFAULT_BATCH = 32
_SPEC = re.compile(r"^(\w+)\[([^\]]*)\]$")


def named_step(workload: Workload) -> LoopStep:
    """The function (a ``tf.function`` or not) with a tensor for each of its arguments.

    Raises:
        UsageError: There is no such function, or a spec is not ``dtype[batch,224,224,3]``.
    """
    with user_code(workload.reference):
        function = function_of(workload.reference)
    return loop_step(function, [_zeros(text) for text in workload.input_spec], {})


def _zeros(text: str) -> Any:  # noqa: ANN401
    """A tensor of the shape that a spec describes; ``batch`` stands for the batch size."""
    match = _SPEC.match(text.strip())
    if not match:
        raise UsageError(
            f"--input-spec {text!r} cannot be read",
            remedy="write dtype[dimensions], for example float32[batch,224,224,3]",
        )
    sizes = [part.strip() for part in match[2].split(",") if part.strip()]
    try:
        dtype = tf.as_dtype(match[1])
        shape = [DEFAULT_BATCH if part == "batch" else int(part) for part in sizes]
    except (TypeError, ValueError) as error:
        raise UsageError(f"--input-spec {text!r} cannot be read", why=str(error)) from None
    return tf.zeros(shape, dtype)
