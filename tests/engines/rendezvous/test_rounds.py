"""Worker 0 asks, the others do: over real lines, with one that cannot and one that goes away."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING, Any

import pytest

from tfdyno.core.base.errors import TfdynoError, ToolError, UsageError
from tfdyno.engines.rendezvous.rounds import Round, take_part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


def act_of(rank: int) -> Callable[[str, Mapping[str, Any]], Any]:
    def act(action: str, given: Mapping[str, Any]) -> object:
        if action == "fail" and rank == 2:
            raise UsageError("it cannot", why="there is no room", remedy="make some")
        if action == "break" and rank:
            raise ZeroDivisionError("by zero")
        return {"rank": rank, "action": action, **given}

    return act


@contextlib.contextmanager
def company(count: int) -> Iterator[tuple[Round, dict[int, socket.socket], list[Any]]]:
    lines: dict[int, socket.socket] = {}
    threads: list[threading.Thread] = []
    ends: list[Any] = []
    for rank in range(1, count):
        lines[rank], far = socket.socketpair()

        def run(far: socket.socket = far, rank: int = rank) -> None:
            with far:
                try:
                    take_part(far, act_of(rank))
                    ends.append(rank)
                except TfdynoError as error:
                    ends.append(str(error))

        threads.append(threading.Thread(target=run))
        threads[-1].start()
    round_of_all = Round(lines, act_of(0))
    try:
        yield round_of_all, lines, ends
    finally:
        round_of_all.end()
        for line in lines.values():
            line.close()
        for thread in threads:
            thread.join(60)


def test_all_are_asked_and_each_with_its_own_words() -> None:
    with company(3) as (asked, _, ends):
        found = asked.ask_all("look", lambda rank: {"to": (rank + 1) % 3})
        assert {rank: one["to"] for rank, one in found.items()} == {0: 1, 1: 2, 2: 0}
        assert asked.ask(1, "clock") == {"rank": 1, "action": "clock"}
        assert asked.ask(0, "clock")["rank"] == 0
    assert sorted(ends) == [1, 2]


def test_one_that_cannot_is_an_answer_and_the_others_go_on() -> None:
    with company(3) as (asked, _, _ends):
        found = asked.ask_all("fail")
        assert found[1]["rank"] == 1
        assert isinstance(found[2], UsageError)
        assert "there is no room" in str(found[2])
        assert asked.ask(2, "look")["rank"] == 2
        with pytest.raises(ToolError, match="it cannot"):
            asked.ask(2, "fail")


def test_a_defect_on_a_node_is_an_answer_as_well() -> None:
    with company(2) as (asked, _, _ends):
        assert "by zero" in str(asked.ask_all("break")[1])


def test_one_that_is_gone_is_named() -> None:
    with company(3) as (asked, lines, ends):
        lines[2].shutdown(socket.SHUT_RDWR)
        with pytest.raises(ToolError, match="worker 2 does not answer any more"):
            asked.ask_all("look")
    assert any("worker 0 does not answer any more" in str(end) for end in ends)
