"""One look at the stages of a pipeline while it gives batches, each with what it took."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from tfdyno.runtime.diagnose.held import leading
from tfdyno.runtime.diagnose.input import IN_PYTHON, as_written, flowing, run
from tfdyno.runtime.diagnose.stages import matched, model_of, stage_facts

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Batch
    from tfdyno.core.measure.step_facts import StageFacts
    from tfdyno.runtime.data.rounds import Flow
    from tfdyno.runtime.diagnose.input import Source


def looked_at_stages(source: Source, flow: Flow, most_s: float) -> tuple[StageFacts, ...]:
    """The stages of a pipeline, sources first, from a run of its own exactly as it is written.

    Args:
        source: The pipeline.
        flow: Its batches: tells what TensorFlow made parallel where they were measured.
        most_s: Of the run, its start included.

    Returns:
        Empty where a source gives nothing twice, or this TensorFlow does not tell.
    """
    if source.kind in IN_PYTHON or source.kind == "other":
        return ()
    with contextlib.suppress(AttributeError, TypeError):  # stages of a later TensorFlow
        alike = flowing(source.dataset)
        ran = run(as_written(alike), most_s, time.perf_counter)
        if ran.batch_s:
            running = model_of(flow.iterator) if flow.iterator is not None else {}
            spent = matched(alike, ran.model)
            return stage_facts(source.dataset, alike, spent, len(ran.batch_s), running)
    return ()


def batch_size(batch: Batch) -> int:
    """Samples in a batch; 1 where it has no first dimension."""
    return leading(batch) or 1
