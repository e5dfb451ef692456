"""Why a script fails on the JAX backend: an operation of TensorFlow's own in its model."""

from __future__ import annotations

import re
import traceback
from typing import TYPE_CHECKING

from tfdyno.core.errors import TfdynoError, UsageError
from tfdyno.runtime.failure import is_own

if TYPE_CHECKING:
    from collections.abc import Iterator

_CALL = re.compile(r"\b((?:tf|tensorflow)(?:\.\w+)+)")
ALLOWED = ("tf.data.", "tf.io.", "tf.keras.")


def told(error: UsageError, of_layout: TfdynoError | None) -> TfdynoError:
    """The error with its real cause.

    Args:
        error: That ended the user's code.
        of_layout: What a rule of the layout did wrong in it.
    """
    if of_layout:
        return of_layout
    for cause in _causes(error):
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
