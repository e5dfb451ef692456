"""Traces that a server holds: a workload is traced once, then only arithmetic is left."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import TfdynoError, ToolError
from tfdyno.jobs.choose.trace import Traced, kept_trace, trace

if TYPE_CHECKING:
    from tfdyno.core.choose.workload import Workload

MOST_HELD = 4
"""Traces that stay in memory; the cache on the disk has all."""
MOST_WAITING = 8
"""Traces that are made or wait for that."""
MOST_ESTIMATES = 400
"""Estimates of one trace that are kept between questions."""
TOLD_S = 10.0
"""For so long a failure is told to everybody who asks; then it is tried again."""
ABANDONED_S = 10.0
"""A trace that waits and that nobody has asked for in so long is not made."""

_BUILT_IN = ("application", "task")
"""Kinds of workloads that no file of the user decides."""


class NotTraced(Exception):  # noqa: N818  (it is a state, which ends by itself)
    """The trace is being made; ``stage`` says how far it is."""

    def __init__(self, stage: str) -> None:
        self.stage = stage
        super().__init__(stage)


@dataclass(slots=True)
class _Making:
    generation: int
    """Of the files, when it was asked for."""
    asked_s: float = 0.0
    stage: str = "starting"
    is_made: bool = False


@dataclass(frozen=True, slots=True)
class _Failure:
    error: Exception
    since_s: float


Key = tuple["Workload", int | None]


class Traces:
    """Gives traces by workload and batch; those that lack are made one at a time, by the child."""

    def __init__(self) -> None:
        self._held: OrderedDict[Key, Traced] = OrderedDict()
        self._making: dict[Key, _Making] = {}
        self._failed: dict[Key, _Failure] = {}
        self._generation = 0
        self._maker: threading.Thread | None = None
        # Whoever asks for what is held waits for no disk: the second is taken outside the first.
        self._guard, self._disk = threading.Lock(), threading.Lock()

    def of(self, workload: Workload, batch_size: int = 0) -> Traced:
        """Return the trace that answers for a batch.

        Args:
            workload: What is traced, in its precision.
            batch_size: That is asked for; 0: the workload's own. It decides only where the batch
                is part of the model.

        Raises:
            NotTraced: It is being made.
            TfdynoError: It failed; asking again after ``TOLD_S`` or ``forget`` tries again.
        """
        traced = self._one((workload, None))
        found = traced.trace
        wanted = batch_size or found.script_batch_size or found.batch_size
        if found.marker or wanted == found.batch_size:
            return traced
        return self._one((workload, wanted))

    def forget(self) -> None:
        """Let go of what a file decides: the next question looks whether it has changed."""
        with self._guard:
            self._generation += 1
            self._failed.clear()
            for key in [one for one in self._held if one[0].kind not in _BUILT_IN]:
                del self._held[key]

    def _one(self, key: Key) -> Traced:
        if found := self._known(key):
            return found
        with self._disk:
            if found := self._known(key):  # another question looked for it meanwhile
                return found
            generation = self._generation
            kept = kept_trace(key[0], batch_size=key[1])
        with self._guard:
            if kept:
                return self._hold(key, kept, generation)
            raise NotTraced(self._wait(key))

    def _known(self, key: Key) -> Traced | None:
        """Return what is held; raises what is known of one that is not."""
        with self._guard:
            if key in self._held:
                self._held.move_to_end(key)
                return self._trimmed(key)
            failure = self._failed.get(key)
            if failure and time.monotonic() - failure.since_s < TOLD_S:
                raise failure.error.with_traceback(None)
            if key in self._making:
                raise NotTraced(self._wait(key))
        return None

    def _trimmed(self, key: Key) -> Traced:
        held = self._held[key]
        if len(held.estimates or ()) > MOST_ESTIMATES:
            self._held[key] = held = replace(held, estimates={})
        return held

    def _wait(self, key: Key) -> str:
        """Have a trace made that somebody waits for; return how far it is."""
        making = self._making.get(key)
        if making is None:
            self._abandon()
            if len(self._making) >= MOST_WAITING:
                raise ToolError(f"{MOST_WAITING} traces are waited for", remedy="ask again later")
            making = self._making[key] = _Making(generation=self._generation)
        making.asked_s = time.monotonic()
        if self._maker is None:
            self._maker = threading.Thread(target=self._make_all, daemon=True)
            self._maker.start()
        is_next = making.is_made or not any(one.is_made for one in self._making.values())
        return making.stage if is_next else "waiting for another trace"

    def _abandon(self) -> None:
        """Take out what waits, and nobody waits for."""
        oldest_s = time.monotonic() - ABANDONED_S
        for key, one in list(self._making.items()):
            if one.asked_s < oldest_s and not one.is_made:
                del self._making[key]

    def _make_all(self) -> None:
        """Make what is waited for, the last asked first, until nothing is."""
        while True:
            with self._guard:
                self._abandon()
                if not self._making:
                    self._maker = None
                    return
                key = max(self._making, key=lambda one: self._making[one].asked_s)
                making = self._making[key]
                making.is_made = True
            self._make(key, making)

    def _make(self, key: Key, making: _Making) -> None:
        def tell(stage: str) -> None:
            making.stage = stage or making.stage

        made: Traced | None = None
        error: Exception | None = None
        try:
            made = trace(key[0], batch_size=key[1], progress=tell)
        except TfdynoError as wrong:
            error = wrong
        except Exception as wrong:  # whoever waits is told
            what = f"tracing {key[0].reference} failed"
            error = ToolError(what, why=f"{type(wrong).__name__}: {wrong}")
        with self._guard:
            del self._making[key]
            if made:
                self._hold(key, made, making.generation)
            elif error and self._is_current(key, making.generation):
                self._keep_failure(key, error)

    def _keep_failure(self, key: Key, error: Exception) -> None:
        now_s = time.monotonic()
        told = {key: one for key, one in self._failed.items() if now_s - one.since_s < TOLD_S}
        self._failed = {**told, key: _Failure(error, now_s)}

    def _is_current(self, key: Key, generation: int) -> bool:
        return generation == self._generation or key[0].kind in _BUILT_IN

    def _hold(self, key: Key, made: Traced, generation: int) -> Traced:
        """Keep it, unless its file may have been changed since it was asked for."""
        held = replace(made, estimates={})
        if self._is_current(key, generation):
            self._held[key] = held
            while len(self._held) > MOST_HELD:
                self._held.popitem(last=False)
        return held
