"""What went wrong while steps were measured, as one sentence with the step and the line."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import TfdynoError, ToolError, UsageError
from tfdyno.core.base.units import format_bytes
from tfdyno.process.failure import Declined, first_line, is_own, user_code

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_FRAME = re.compile(r'File "([^"]+)", line (\d+)')
_SAID = re.compile(r"^(?:\{\{.*?\}\} )?((?:[A-Za-z_][\w.]*)?(?:Error|Exception|Interrupt)\b: .*)$")
_OUT_OF_MEMORY = ("ResourceExhaustedError", "MemoryError")
_OOM_WORDS = ("out of memory", "OOM when allocating", "RESOURCE_EXHAUSTED")


@contextlib.contextmanager
def measured_code(
    what: str, step_count: Callable[[], int], batch: Callable[[], int]
) -> Iterator[None]:
    """Turn what the user's code raises into words, also while its steps run.

    Args:
        what: The workload as typed.
        step_count: Steps that ended so far.
        batch: Batch size over all replicas; 0: unknown.

    Raises:
        UsageError: The code failed; says in which step and on which line.
        ToolError: The device had not enough memory.
    """
    try:
        with user_code(what):
            yield
    except Declined as declined:
        cause = declined.__context__
        if cause is None or isinstance(cause, TfdynoError):
            raise UsageError(declined.what, why=declined.why, remedy=declined.remedy) from None
        if is_out_of_memory(cause):
            raise out_of_memory(what, batch()) from None
        steps = step_count()
        where = f" at step {steps + 1}" if steps else ""
        raise UsageError(f"{what} failed{where}", why=_within(what, reason(cause))) from None


def _within(what: str, why: str) -> str:
    """Return the reason without its file where that is the one that failed: it is named already."""
    file, line, rest = why.partition(", line ")
    is_same = bool(line) and Path(file).absolute() == Path(what.partition(":")[0]).absolute()
    return f"line {rest}" if is_same else why


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether a device, or this machine, had not enough memory."""
    if type(error).__name__ in _OUT_OF_MEMORY:
        return True
    return any(word in str(error) for word in _OOM_WORDS)


def out_of_memory(what: str, batch_size: int) -> ToolError:
    """Return the sentence for it, with what to do."""
    import tensorflow as tf

    gpu = bool(tf.config.list_physical_devices("GPU"))
    where = "the GPU" if gpu else "this machine"
    why = f"a batch of {batch_size} does not fit" if batch_size else "a step does not fit"
    with contextlib.suppress(ValueError, RuntimeError):
        if gpu:
            in_use = tf.config.experimental.get_memory_info("GPU:0")["peak"]
            why += f": {format_bytes(in_use)} were in use at most"
    remedy = "give a smaller batch, --precision mixed_bfloat16, or accumulation"
    return ToolError(f"{what}: {where} ran out of memory", why=why, remedy=remedy)


def reason(error: BaseException) -> str:
    """Return ``file, line N: what`` of an error, by TensorFlow's message where it has Python's."""
    from tfdyno.process.failure import place

    text = str(error)
    frames = [frame for frame in _FRAME.findall(text) if is_own(frame[0])]
    if not frames:
        return ": ".join(filter(None, (place(error), type(error).__name__, first_line(error))))
    lines = [match[1] for line in text.splitlines() if (match := _SAID.match(line.strip()))]
    file, number = frames[-1]
    said = lines[0] if lines else f"{type(error).__name__}: {first_line(error)}"
    return f"{file}, line {number}: {said[:300]}"
