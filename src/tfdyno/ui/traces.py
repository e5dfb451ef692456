"""Traces that a server holds: a workload is traced once, then only arithmetic is left."""

from __future__ import annotations

import threading
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
"""Traces that may wait for the one that is made."""
MOST_ESTIMATES = 400
"""Estimates of one trace that are kept between questions."""


_BUILT_IN = ("application", "task")
"""Kinds of workloads that no file of the user decides."""


class NotTraced(Exception):  # noqa: N818  (it is a state, which ends by itself)
    """The trace is being made; ``stage`` says how far it is."""

    def __init__(self, stage: str) -> None:
        self.stage = stage
        super().__init__(stage)


@dataclass(slots=True)
class _Making:
    stage: str = "waiting for another trace"
    error: Exception | None = None


Key = tuple["Workload", int | None]


class Traces:
    """Gives traces by workload and batch; those that lack are made one at a time, by the child."""

    def __init__(self) -> None:
        self._held: OrderedDict[Key, Traced] = OrderedDict()
        self._making: dict[Key, _Making] = {}
        self._guard = threading.Lock()
        self._turn = threading.Lock()

    def of(self, workload: Workload, batch_size: int = 0) -> Traced:
        """Return the trace that answers for a batch.

        Args:
            workload: What is traced, in its precision.
            batch_size: That is asked for; 0: the workload's own. It decides only where the batch
                is part of the model.

        Raises:
            NotTraced: It is being made.
            TfdynoError: It failed; asking again tries again.
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
            for key in [one for one in self._held if one[0].kind not in _BUILT_IN]:
                del self._held[key]

    def _one(self, key: Key) -> Traced:
        with self._guard:
            if key in self._held:
                self._held.move_to_end(key)
                return self._trimmed(key)
            making = self._making.get(key)
            if making is None:
                kept = kept_trace(key[0], batch_size=key[1])
                if kept:
                    return self._hold(key, kept)
                making = self._start(key)
            elif making.error:
                del self._making[key]
                raise making.error
            raise NotTraced(making.stage)

    def _trimmed(self, key: Key) -> Traced:
        held = self._held[key]
        if len(held.estimates or ()) > MOST_ESTIMATES:
            self._held[key] = held = replace(held, estimates={})
        return held

    def _start(self, key: Key) -> _Making:
        if len(self._making) >= MOST_WAITING:
            raise ToolError(f"{MOST_WAITING} traces are waited for", remedy="ask again later")
        self._making[key] = making = _Making()
        threading.Thread(target=self._make, args=(key, making), daemon=True).start()
        return making

    def _make(self, key: Key, making: _Making) -> None:
        def tell(stage: str) -> None:
            making.stage = stage or making.stage

        try:
            with self._turn:
                made = trace(key[0], batch_size=key[1], progress=tell)
        except TfdynoError as error:
            making.error = error
        except Exception as error:  # whoever waits is told
            what = f"tracing {key[0].reference} failed"
            making.error = ToolError(what, why=f"{type(error).__name__}: {error}")
        else:
            with self._guard:
                del self._making[key]
                self._hold(key, made)

    def _hold(self, key: Key, made: Traced) -> Traced:
        self._held[key] = held = replace(made, estimates={})
        while len(self._held) > MOST_HELD:
            self._held.popitem(last=False)
        return held
