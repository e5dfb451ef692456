"""A step that the user names, ``file.py:train_step``, with ``--input-spec`` for its arguments."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import tensorflow as tf

from tfdyno.core.base.errors import UsageError
from tfdyno.process.failure import user_code
from tfdyno.runtime.workload.loop_step import LoopStep, loop_step
from tfdyno.runtime.workload.workloads import function_of

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Value
    from tfdyno.core.choose.workload import Workload

STAND_INS = range(31, 10_000, 2)
"""Batch sizes to choose from: it must differ from every other size, to be told from them."""
_SPEC = re.compile(r"^(\w+)\[([^\]]*)\]$")


def named_step(workload: Workload) -> LoopStep:
    """Return the function (a ``tf.function`` or not) with a tensor for each of its arguments.

    Raises:
        UsageError: There is no such function, or a spec is not ``dtype[batch,224,224,3]``.
    """
    with user_code(workload.reference):
        function = function_of(workload.reference)
    fixed = {int(number) for text in workload.input_spec for number in re.findall(r"\d+", text)}
    batch = next(size for size in STAND_INS if size not in fixed)
    return loop_step(function, [_zeros(text, batch) for text in workload.input_spec], {})


def _zeros(text: str, batch: int) -> Value:
    """Return a tensor of the shape that a spec describes; ``batch`` stands for the batch size."""
    match = _SPEC.match(text.strip())
    if not match:
        raise UsageError(
            f"--input-spec {text!r} cannot be read",
            remedy="write dtype[dimensions], for example float32[batch,224,224,3]",
        )
    sizes = [part.strip() for part in match[2].split(",") if part.strip()]
    try:
        dtype = tf.as_dtype(match[1])
        shape = [batch if part == "batch" else int(part) for part in sizes]
    except (TypeError, ValueError):
        raise UsageError(
            f"--input-spec {text!r} cannot be read",
            why="it needs a dtype such as float32 and whole sizes, or batch",
            remedy="for example float32[batch,224,224,3]",
        ) from None
    return tf.zeros(shape, dtype)
