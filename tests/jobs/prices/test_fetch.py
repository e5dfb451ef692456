from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING

import pytest
from tests.price_server import PriceServer, serving

from tfdyno.jobs.prices.fetch import SourceError, fetch

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def server() -> Iterator[PriceServer]:
    with serving() as one:
        yield one


def _fetch(url: str, *, most_bytes: int = 1_000_000, within_s: float = 60.0) -> bytes:
    return fetch(url, most_bytes=most_bytes, until_s=time.monotonic() + within_s).body


def test_an_answer_comes_whole_with_the_clock_of_the_server(server: PriceServer) -> None:
    server.answers["/list"] = b"x" * 300_000
    server.ahead_s = 400 * 86400.0
    sizes: list[int] = []
    found = fetch(f"{server.url}/list", most_bytes=300_000, until_s=time.monotonic() + 60,
                  heard=sizes.append)  # fmt: skip
    assert len(found.body) == sum(sizes) == 300_000
    assert found.date is not None
    assert found.date.timestamp() - time.time() == pytest.approx(server.ahead_s, abs=120)


def test_what_the_server_says_is_the_reason(server: PriceServer) -> None:
    server.answers["/list"] = 503
    with pytest.raises(SourceError, match="the server says 503 Service Unavailable"):
        _fetch(f"{server.url}/list")


def test_an_endless_answer_ends_at_its_limit(server: PriceServer) -> None:
    server.answers["/list"] = server.pour
    with pytest.raises(SourceError, match="over 1 MB, no list has so many"):
        _fetch(f"{server.url}/list")


def test_a_dripping_answer_ends_at_its_time_although_it_is_never_silent(
    server: PriceServer,
) -> None:
    server.answers["/list"] = server.drip
    with pytest.raises(SourceError, match="too slow"):
        _fetch(f"{server.url}/list", within_s=0.5)


def test_a_silent_server_is_not_waited_for(server: PriceServer) -> None:
    server.answers["/list"] = server.silent
    with pytest.raises(SourceError, match="does not answer"):
        _fetch(f"{server.url}/list", within_s=0.5)


def test_less_than_was_said_is_no_answer(server: PriceServer) -> None:
    server.answers["/list"] = server.broken_off
    with pytest.raises(SourceError, match="broke off, 987 bytes before its end"):
        _fetch(f"{server.url}/list")


def test_nobody_there_is_a_reason() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(SourceError, match="cannot be reached"):
        _fetch(f"http://127.0.0.1:{port}/list")


def test_without_time_nothing_is_asked(server: PriceServer) -> None:
    with pytest.raises(SourceError, match="no time was left"):
        _fetch(f"{server.url}/list", within_s=-1)
    assert server.asked == []
