"""After the rendezvous: worker 0 asks the others to do something, all at once or one by one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import TfdynoError, ToolError, failure_of
from tfdyno.engines.rendezvous.rendezvous_line import fault_in, received, send, worker

if TYPE_CHECKING:
    import socket

    from tfdyno.core.base.untyped import Value

Act = Callable[[str, Mapping[str, Any]], Any]
"""What a process does: the name of an action, what it is given, and an answer of plain values."""
END = "end"
ROUND_S = 300.0
"""The longest that one action may take."""


class Round:
    """Worker 0 with its lines to the others."""

    def __init__(self, lines: Mapping[int, socket.socket], act: Act) -> None:
        """Take the lines by rank, and what worker 0 does itself."""
        self._lines, self._act = dict(lines), act

    @property
    def ranks(self) -> tuple[int, ...]:
        """All of them, worker 0 first."""
        return (0, *sorted(self._lines))

    def ask(self, rank: int, action: str, **given: Any) -> Value:
        """Let one do something.

        Returns:
            Its answer.

        Raises:
            TfdynoError: It could not, or does not answer any more.
        """
        if rank == 0:
            return self._act(action, given)
        self._put(rank, action, given)
        return self._answer(rank)

    def ask_all(
        self, action: str, of: Callable[[int], Mapping[str, Any]] = lambda _rank: {}
    ) -> dict[int, Any]:
        """Let all do something at the same time.

        Args:
            action: Its name.
            of: What each rank is given.

        Returns:
            Answers by rank; ``TfdynoError`` of those that could not.

        Raises:
            ToolError: One does not answer any more.
        """
        for rank in self.ranks[1:]:
            self._put(rank, action, of(rank))
        found: dict[int, Any] = {}
        try:
            found[0] = self._act(action, of(0))
        except TfdynoError as error:
            found[0] = error
        for rank in self.ranks[1:]:
            try:
                found[rank] = self._answer(rank)
            except _Refused as error:
                found[rank] = error.cause
        return found

    def end(self) -> None:
        """Let the others go."""
        for rank in self.ranks[1:]:
            with contextlib.suppress(ToolError):
                self._put(rank, END, {})

    def _put(self, rank: int, action: str, given: Mapping[str, Any]) -> None:
        send(self._lines[rank], {"do": action, "given": dict(given)}, worker(rank))

    def _answer(self, rank: int) -> Value:
        try:
            answer = received(self._lines[rank], ROUND_S)
        except (OSError, ToolError) as error:
            what = f"{worker(rank)} does not answer any more"
            raise ToolError(what, why=str(error), remedy="its own output says why") from None
        if fault := fault_in(answer):
            raise _Refused(fault)
        return answer.get("done")


class _Refused(ToolError):  # noqa: N818  (it is what happened)
    """A process that answers could not do what it was asked."""

    def __init__(self, cause: TfdynoError) -> None:
        super().__init__(cause.what, why=cause.why, remedy=cause.remedy)
        self.cause = cause


def take_part(line: socket.socket, act: Act) -> None:
    """Do what worker 0 asks, as any other worker, until it is done; raises ``ToolError``."""
    while True:
        try:
            asked = received(line, 2 * ROUND_S)
        except (OSError, ToolError) as error:
            why = str(error)
            raise ToolError("worker 0 does not answer any more", why=why,
                            remedy="its own output says why it ended") from None  # fmt: skip
        if fault := fault_in(asked):
            raise fault
        action = str(asked.get("do", ""))
        if action == END:
            return
        try:
            answer = {"done": act(action, asked.get("given") or {})}
        except TfdynoError as error:
            answer = {"fault": failure_of(error)}
        except Exception as error:  # whatever a strange machine brings is an answer
            answer = {"fault": failure_of(ToolError(f"{action} failed", why=repr(error)))}
        send(line, answer, worker(0))
