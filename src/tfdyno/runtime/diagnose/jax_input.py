"""The input of a training on JAX by itself: as Keras reads it there, with no model behind it."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import TfdynoError
from tfdyno.core.measure.step_facts import InputFacts
from tfdyno.process.failure import first_line
from tfdyno.runtime.diagnose.input import Source, by_itself, kind_of, run_passes
from tfdyno.runtime.diagnose.jax_batches import leaves

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tfdyno.core.base.untyped import Value
    from tfdyno.core.messages.diagnose import Limits


class Read:
    """Batches as Keras makes them for JAX, from the beginning each time that it is read."""

    def __init__(self, adapter: Value) -> None:
        """Read nothing yet; ``adapter`` is of Keras."""
        self.adapter = adapter

    def __iter__(self) -> Iterator[Any]:
        """Begin a pass."""
        return iter(self.adapter.get_jax_iterator())


def source_of(adapter: Value, workers: int) -> Source:
    """Return what a training on JAX reads: a pipeline of TensorFlow's is looked at as such."""
    kind = kind_of(adapter)
    return Source(
        dataset=adapter.get_tf_dataset() if kind == "dataset" else Read(adapter),
        kind=kind,
        workers=workers,
        opening=adapter.on_epoch_begin,
        closing=adapter.on_epoch_end,
    )


def looked_at(
    source: Source,
    adapter: Value,
    limits: Limits,
    *,
    now: Callable[[], float] = time.perf_counter,
) -> tuple[InputFacts | None, Any, str]:
    """Return what the input takes by itself and one batch for a step; or nothing, and why not.

    Args:
        source: As ``source_of`` makes it.
        adapter: Of Keras, that it reads by.
        limits: For how long.
        now: A clock in seconds.
    """
    if source.kind == "dataset":
        facts, batch, why = by_itself(source, limits)
        return facts, None if batch is None else next(iter(Read(adapter)), None), why
    try:
        ran = run_passes(source, limits.alone_s, now)
    except TfdynoError:
        raise
    except Exception as error:  # what the user's Python raises
        return None, None, f"The input could not be run by itself: {first_line(error)[:200]}."
    facts = InputFacts(
        batch_s=ran.batch_s,
        batch_bytes=sum(int(one.nbytes) for one in leaves(ran.first) if hasattr(one, "nbytes")),
        kind=source.kind,
        prefetches=source.workers > 0,
        workers=source.workers,
        cpu_ratio=min(1.0, ran.busy_s / (os.cpu_count() or 1)),
        read_bytes_per_s=ran.read_bytes_per_s,
        start_s=ran.start_s,
    )
    return facts, ran.first, ""
