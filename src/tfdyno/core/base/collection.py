"""Python's search for circles of objects, which a short piece of work does without."""

from __future__ import annotations

import contextlib
import gc
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def nothing_collected() -> Iterator[None]:
    """Do without the search for circles: what there are of them stay until the next one.

    It goes through all that the process holds, Keras and JAX as well, again and again: a sixth to a
    third of the counting of a step.
    """
    searches = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if searches:
            gc.enable()
