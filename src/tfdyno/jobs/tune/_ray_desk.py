"""Where the command's wishes and Ray Tune's trials meet, in the driver; it knows nothing of Ray."""

from __future__ import annotations

import json
import queue
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import Failure
from tfdyno.core.messages.tune import LOST, NodeAnswer, RunDone, RunWanted
from tfdyno.core.messages.wire import decode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tfdyno.core.base.untyped import Value
    from tfdyno.core.messages.tune import NodeWork


class Desk:
    """One thread listens to the command, another one serves Ray Tune."""

    def __init__(self, say: Callable[[RunDone], None]) -> None:
        """Want nothing yet.

        Args:
            say: Tells the command of a run that is done.
        """
        self._say = say
        self._begun: queue.SimpleQueue[RunWanted] = queue.SimpleQueue()
        self._following: dict[int, queue.SimpleQueue[RunWanted | None]] = {}
        self._running: dict[int, int] = {}
        self.is_closed = False
        """Whether nobody asks any more."""

    def __reduce__(self) -> Value:
        """Give an empty one, where Ray Tune keeps its objects for a restart, which never comes."""
        return Desk, (_unheard,)

    def listen(self, lines: Iterable[str]) -> None:
        """Take what is asked until nobody asks.

        Args:
            lines: A ``RunWanted`` each.
        """
        for line in lines:
            wish = decode(json.loads(line), RunWanted)
            if wish.work is None:
                self._end(wish.trial)
            elif wish.trial in self._following:
                self._following[wish.trial].put(wish)
            else:
                self._following[wish.trial] = queue.SimpleQueue()
                self._running[wish.trial] = wish.run
                self._begun.put(wish)
        self.is_closed = True
        for trial in list(self._following):
            self._end(trial)

    def next_trial(self) -> RunWanted | None:
        """Return the first run of a trial that is to begin; None: there is none now."""
        try:
            return self._begun.get_nowait()
        except queue.Empty:
            return None

    def judged(self, trial: int, answer: NodeAnswer) -> NodeWork | None:
        """Tell what a run measured, and wait for the judgement.

        Returns:
            The work of the next run of the trial; None: it is ended.
        """
        self._answer(trial, answer)
        following = self._following[trial].get()
        if following is None:
            return None
        self._running[trial] = following.run
        return following.work

    def lost(self, trial: int, why: str, *, is_memory: bool) -> None:
        """Tell that Ray has lost the run of a trial; one that is known to be lost is not told."""
        kind = "tool" if is_memory else LOST
        why = "the node ran out of memory" if is_memory else why
        failure = Failure(kind=kind, what="Ray has lost the run", why=why)
        self._answer(trial, NodeAnswer(found=failure))

    def _answer(self, trial: int, answer: NodeAnswer) -> None:
        run = self._running.pop(trial, None)
        if run is not None:
            self._say(RunDone(run=run, answer=answer))

    def _end(self, trial: int) -> None:
        if trial in self._following:
            self._following[trial].put(None)


def _unheard(_done: RunDone) -> None:
    """Report to nobody."""
