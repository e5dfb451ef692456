"""Where the command's wishes and Ray Tune's trials meet, in the driver; it knows nothing of Ray."""

from __future__ import annotations

import json
import queue
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tfdyno.core.base.untyped import Value


class Desk:
    """One thread listens to the command, another one serves Ray Tune."""

    def __init__(self, say: Callable[[dict[str, Any]], None]) -> None:
        """Nothing is wanted yet.

        Args:
            say: Tells the command of an event.
        """
        self._say = say
        self._begun: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._following: dict[int, queue.SimpleQueue[dict[str, Any] | None]] = {}
        self._running: dict[int, int] = {}
        self.is_closed = False
        """Whether nobody asks any more."""

    def __reduce__(self) -> Value:
        """An empty one, where Ray Tune keeps its objects for a restart, which there is none of."""
        return Desk, (_unheard,)

    def listen(self, lines: Iterable[str]) -> None:
        """Take what is asked until nobody asks.

        Args:
            lines: ``{"run", "trial", "node", "request"}`` or ``{"ended": trial}`` each.
        """
        for line in lines:
            event = json.loads(line)
            if "ended" in event:
                self._end(event["ended"])
            elif event["trial"] in self._following:
                self._following[event["trial"]].put(event)
            else:
                self._following[event["trial"]] = queue.SimpleQueue()
                self._running[event["trial"]] = event["run"]
                self._begun.put(event)
        self.is_closed = True
        for trial in list(self._following):
            self._end(trial)

    def next_trial(self) -> dict[str, Any] | None:
        """The first run of a trial that is to begin; None: there is none now."""
        try:
            return self._begun.get_nowait()
        except queue.Empty:
            return None

    def judged(self, trial: int, answer: dict[str, Any]) -> dict[str, Any] | None:
        """Tell what a run measured, and wait for the judgement.

        Returns:
            The request of the next run of the trial; None: it is ended.
        """
        self._answer(trial, answer)
        following = self._following[trial].get()
        if following is None:
            return None
        self._running[trial] = following["run"]
        request: dict[str, Any] = following["request"]
        return request

    def lost(self, trial: int, why: str, *, is_memory: bool) -> None:
        """Tell that Ray has lost the run of a trial; one that is known to be lost is not told."""
        kind = "tool" if is_memory else "lost"
        why = "the node ran out of memory" if is_memory else why
        said = {"kind": kind, "what": "Ray has lost the run", "why": why, "remedy": ""}
        self._answer(trial, {"error": said})

    def _answer(self, trial: int, answer: dict[str, Any]) -> None:
        run = self._running.pop(trial, None)
        if run is not None:
            self._say({"run": run, **answer})

    def _end(self, trial: int) -> None:
        if trial in self._following:
            self._following[trial].put(None)


def _unheard(_event: dict[str, Any]) -> None:
    """Nobody listens."""
