"""One answer of a web server, within limits of bytes and seconds."""

from __future__ import annotations

import datetime
import email.utils
import http.client
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import ToolError
from tfdyno.core.base.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable

_CHUNK_BYTES = 65536
_PATIENCE_S = 15.0
"""A server that is silent for so long is down."""


class SourceError(ToolError):
    """A price list that could not be had or read: told in a line, and the others count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What a server sent, and when by its own clock."""

    body: bytes
    date: datetime.datetime | None


def fetch(
    url: str,
    *,
    most_bytes: int,
    until_s: float,
    heard: Callable[[int], None] = lambda _size: None,
    query: bytes | None = None,
) -> Answered:
    """Return the body of an answer with status 200.

    Args:
        url: Address of http or https.
        most_bytes: An answer that goes on beyond this is given up.
        until_s: When to give up, by ``time.monotonic()``, however busily bytes still come.
        heard: Called with the size of every piece.
        query: JSON that is posted; None: nothing is.

    Raises:
        SourceError: Why there is no answer, in a few words.
    """
    # No compressed answers: what they unfold to is not known before.
    headers = {"User-Agent": f"tfdyno/{VERSION}", "Accept-Encoding": "identity"}
    if query is not None:
        headers["Content-Type"] = "application/json"
    request = urllib.request.Request(url, data=query, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=_patience_s(until_s)) as response:
            body = _body(response, most_bytes, until_s, heard)
            return Answered(body=body, date=_date(response.headers.get("Date")))
    except urllib.error.HTTPError as error:
        raise SourceError(f"the server says {error.code} {error.reason}") from None
    except urllib.error.URLError as error:
        raise SourceError(_words(error.reason)) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise SourceError(_words(error)) from None


def _body(
    response: http.client.HTTPResponse,
    most_bytes: int,
    until_s: float,
    heard: Callable[[int], None],
) -> bytes:
    pieces, size = [], 0
    # read1 returns what has come; read would wait for a whole chunk from a server that drips.
    while piece := response.read1(_CHUNK_BYTES):
        pieces.append(piece)
        size += len(piece)
        heard(len(piece))
        if size > most_bytes:
            raise SourceError(f"the answer has over {most_bytes / 1e6:.0f} MB, no list has so many")
        if time.monotonic() > until_s:
            raise SourceError(f"it was too slow: {size / 1e6:.1f} MB came in the time it had")
    if response.length:
        raise SourceError(f"the answer broke off, {response.length:,} bytes before its end")
    return b"".join(pieces)


def _patience_s(until_s: float) -> float:
    left_s = until_s - time.monotonic()
    if left_s <= 0:
        raise SourceError("no time was left for it")
    return min(_PATIENCE_S, left_s)


def _words(error: object) -> str:
    if isinstance(error, TimeoutError):
        return "the server does not answer"
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return f"it cannot be reached ({text})"


def _date(text: str | None) -> datetime.datetime | None:
    try:
        found = email.utils.parsedate_to_datetime(text or "")
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=datetime.UTC)
