"""A call of Keras' ``fit`` on JAX looked at in place.

A call of the step only starts it there, and the next one may begin before it has ended. So each
call waits for the step before its own: the host works beside the device as it does without a look,
and a step takes from one end to the next. What each batch is waited for is timed where the step
takes it.
"""

from __future__ import annotations

import contextlib
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax

from tfdyno.model.measure.statistics import median
from tfdyno.profile.operations import operation_facts
from tfdyno.profile.planes import read_planes
from tfdyno.runtime.diagnose import fit as diagnose_fit
from tfdyno.runtime.diagnose.held import timed_steps
from tfdyno.runtime.diagnose.jax_batches import new_batches
from tfdyno.runtime.diagnose.jax_compiles import CompileWatch
from tfdyno.runtime.diagnose.jax_input import looked_at, source_of
from tfdyno.runtime.diagnose.jax_model import facts_of, waited_for
from tfdyno.runtime.diagnose.watching import PROFILED_S, Place, Watched, shared
from tfdyno.runtime.diagnose.work import machine_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from tfdyno.core.base.untyped import Batch, DataIterator, Dataset, Value
    from tfdyno.core.measure.step_facts import InputFacts, OperationFacts, StepFacts
    from tfdyno.runtime.diagnose.clock import StepTimes
    from tfdyno.runtime.diagnose.input import Source
    from tfdyno.runtime.diagnose.watching import StepsInspection
    from tfdyno.runtime.workload.fit_call import Call

_MOST_PROFILED, _LEAST_PROFILED = 20, 3


def look_at_fit(call: Call, look: StepsInspection, times: StepTimes) -> StepFacts:
    """Train as the call would until enough was seen; then look at its parts.

    Args:
        call: Of ``fit``, with its arguments.
        look: What is looked at.
        times: The clock.

    Raises:
        UsageError: There was no step, or the recipe does not fit the model.
        Exception: Whatever the user's code raises while steps run.
    """
    return diagnose_fit.look_at_fit(call, look, times, partial(_Parts, cards=look.cards))


class _Parts(diagnose_fit.Parts):
    """The training while it runs on JAX, and its parts by themselves afterwards."""

    def __init__(
        self, call: Call, times: StepTimes, *, cards: Mapping[str, Sequence[float]]
    ) -> None:
        super().__init__(call, times)
        self.cards = cards
        self.batches = new_batches(times.waited)
        self.waiting: tuple[str, ...] = ()
        """Callbacks for which Keras waits for each step."""
        self._last: Any = None
        """What the last call has given, which may not be there yet."""
        times.sync = None  # each call waits

    def place(self) -> Place:
        """Return where JAX computes."""
        first = jax.local_devices()[0]
        if first.platform == "cpu":
            used, limit = machine_memory()
            return Place(backend="jax", device="cpu", memory_used_bytes=used,
                         memory_limit_bytes=limit)  # fmt: skip
        held = first.memory_stats() or {}
        return Place(
            backend="jax",
            device="gpu",
            memory_used_bytes=int(held.get("peak_bytes_in_use", 0)),
            memory_limit_bytes=int(held.get("bytes_limit", 0)),
        )

    def _watching(self, callbacks: list[Any], progress: Callable[[str], None]) -> Watched:
        self.waiting = waited_for(callbacks)
        return Watched(
            self.times,
            callbacks=callbacks,
            model=self.model,
            progress=progress,
            traces=partial(CompileWatch, batches=self.batches),
        )

    def _reading(self) -> AbstractContextManager[None]:
        return contextlib.nullcontext()  # the step itself takes its batch, and times that

    def _called(self, run: Callable[..., Any], *taken: Any) -> Value:
        state, iterator = taken
        return self._run(run, state, self.batches.watched(iterator))

    def _run(self, run: Callable[..., Any], state: Value, iterator: DataIterator) -> Value:
        """Run one call, up to the end of the one before."""
        logs, state = run(state, iterator)
        before, self._last = self._last, logs
        jax.block_until_ready(before)
        return logs, state

    def _said(self, arguments: dict[str, Any]) -> dict[str, Any]:
        found = facts_of(self.model, self.batches.last, self.cards)
        return {**found, "read_each_step": self.waiting}

    def _source(self, adapter: Value) -> Source:
        if getattr(adapter, "_within_epoch", False):
            adapter.on_epoch_end()  # of the epoch that was cut
        return source_of(adapter, diagnose_fit.workers(adapter))

    def _by_itself(self, source: Source) -> tuple[InputFacts | None, Any, str]:
        return looked_at(source, self.iterator.data_adapter, self.times.limits)

    def _held(self, batch: Batch, dataset: Dataset, said: dict[str, Any]) -> dict[str, Any]:
        """Run the same train function on one batch, and its profile."""
        is_ahead = jax.default_backend() != "cpu"  # there Keras brings the next batch to the card
        held = jax.tree.map(jax.device_put, batch) if is_ahead else batch
        state = self.model._get_jax_state(
            trainable_variables=True,
            non_trainable_variables=True,
            optimizer_variables=True,
            metrics_variables=True,
        )

        def call() -> None:
            nonlocal state  # the step takes the memory of the one that it is given
            _, state = self._run(self.run_step, state, iter([held] * self.several))

        def wait() -> None:
            jax.block_until_ready(self._last)

        held_s = timed_steps(call, self.times.limits.held_s, count=self.several)
        operations = _profiled(call, wait, held_s, self.several)
        return {"held_s": held_s, "operations": operations}


def _profiled(
    call: Callable[[], None], wait: Callable[[], None], held_s: tuple[float, ...], several: int
) -> OperationFacts | None:
    """Say where the step's time goes on a batch that is held; None: there is no profile."""
    wanted = int(PROFILED_S / max(median(held_s) * several, 1e-6))
    calls = max(_LEAST_PROFILED, min(_MOST_PROFILED, wanted))
    options = jax.profiler.ProfileOptions()
    options.host_tracer_level, options.python_tracer_level = 2, 0
    with tempfile.TemporaryDirectory(prefix="tfdyno-profile-") as name:
        try:
            jax.profiler.start_trace(name, profiler_options=options)
        except RuntimeError:  # another one is being made
            return None
        wait()
        try:
            for number in range(calls):
                with jax.profiler.StepTraceAnnotation("train", step_num=number):
                    call()
                    wait()
        finally:
            jax.profiler.stop_trace()
        files = [file.read_bytes() for file in Path(name).rglob("*.xplane.pb")]
    found = operation_facts(read_planes(files[0]), calls) if files else None
    if found is None:
        return None
    found = replace(found, host_only=())  # what XLA does on the host is no operation left there
    return found if several == 1 else shared(found, several)
