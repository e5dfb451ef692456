"""Why a script fails on the JAX backend: TensorFlow's own operations, or a process that is gone."""

from __future__ import annotations

import re
import traceback
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import TfdynoError, ToolError, UsageError
from tfdyno.process.failure import first_line, is_own

if TYPE_CHECKING:
    from collections.abc import Iterator

_CALL = re.compile(r"\b((?:tf|tensorflow)(?:\.\w+)+)")
_GONE = ("Gloo", "NCCL", "UNAVAILABLE:", "DEADLINE_EXCEEDED:", "coordination service")
"""Words of JAX where another process, or the way to it, is the matter."""
ALLOWED = ("tf.data.", "tf.io.", "tf.keras.")


def told(error: UsageError) -> TfdynoError:
    """Return the error that ended the user's code, with its real cause."""
    for cause in _causes(error):
        if type(cause).__name__.endswith("RuntimeError") and any(w in str(cause) for w in _GONE):
            what = "a step could not be exchanged with the other processes"
            return ToolError(what, why=first_line(cause), remedy="their own output says why")
        frames = [f for f in traceback.extract_tb(cause.__traceback__) if is_own(f.filename)]
        if frames and (found := _CALL.search(frames[-1].line or "")):
            name = found[1].replace("tensorflow.", "tf.", 1)
            if not name.startswith(ALLOWED):
                frame = frames[-1]
                return UsageError(
                    f"{frame.filename}, line {frame.lineno}: {name} cannot run on the JAX backend",
                    why="it is TensorFlow's own operation",
                    remedy="use keras.ops in its place, or train without --backend jax",
                )
    return error


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
