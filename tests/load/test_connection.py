from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tfdyno.load.connection import Connection, status_of, unchunked

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Dataset


class Wire(asyncio.Transport):
    """Takes what is sent."""

    def __init__(self) -> None:
        super().__init__()
        self.closed = False

    def write(self, data: Dataset) -> None:
        pass

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True


def answers(*pieces: bytes, ends: bool = False) -> list[tuple[int, bytes]]:
    """What a connection tells of an answer that comes in pieces."""
    found: list[tuple[int, bytes]] = []
    one = Connection(lambda _c, status, _h, body: found.append((status, body)), lambda _c: None)
    one.connection_made(Wire())
    one.send(b"", 0.0, 0)
    for piece in pieces:
        one.data_received(piece)
    if ends:
        one.connection_lost(None)
    return found


WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n"
)


@pytest.mark.parametrize("whole", [WHOLE, CHUNKED])
def test_an_answer_cut_anywhere_is_read_once(whole: bytes) -> None:
    for at in range(1, len(whole)):
        assert answers(whole[:at], whole[at:]) == [(200, b"hello")]
    assert answers(*(whole[at : at + 1] for at in range(len(whole)))) == [(200, b"hello")]


def test_a_body_without_a_length_ends_with_the_connection() -> None:
    assert answers(b"HTTP/1.1 200 OK\r\n\r\nhello", ends=True) == [(200, b"hello")]
    assert answers(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", ends=True) == []


def test_continue_is_not_the_answer() -> None:
    assert answers(b"HTTP/1.1 100 Continue\r\n\r\n" + WHOLE) == [(200, b"hello")]


def test_what_is_no_status_line_has_status_0() -> None:
    assert status_of(b"SSH-2.0-OpenSSH\r\n") == 0
    assert status_of(b"HTTP/1.1 503 Busy") == 503


def test_a_chunk_with_a_trailer_ends_after_it() -> None:
    data = b"1\r\na\r\n0\r\nX: y\r\n\r\nrest"
    found = unchunked(data, 0)
    assert found is not None
    assert (found[0], data[found[1] :]) == (b"a", b"rest")
