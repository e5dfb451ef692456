"""A request and a response of HTTP, and an error as a response."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from tfdyno.process.failure import first_line
from tfdyno.serving.front.table import Refused


@dataclass(slots=True, kw_only=True)
class HttpRequest:
    """One request; names of headers are in lower case."""

    method: str
    target: bytes
    headers: Mapping[bytes, bytes]
    body: bytes
    begin_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpResponse:
    """One response; ``headers`` beyond type and length."""

    code: int
    body: bytes = b""
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = field(default=())


class NotAllowed(Refused):
    """405 with the methods that the route has."""

    def __init__(self, allowed: str) -> None:
        super().__init__(405, f"The methods here are {allowed}")
        self.allowed = allowed


class Unauthorized(Refused):
    """401 with what to send."""

    def __init__(self) -> None:
        super().__init__(401, "Send the token: Authorization: Bearer TOKEN")


def defect(error: Exception) -> Refused:
    """Answer 500 for what nobody foresaw: one line for the client, the rest for the log."""
    traceback.print_exception(error)
    return Refused(500, f"{type(error).__name__}: {first_line(error)}")


def refusal(refused: Refused) -> HttpResponse:
    """Write an error as TensorFlow Serving and KServe do: an object with the key ``error``."""
    headers: tuple[tuple[str, str], ...] = ()
    if refused.retry_after_s:
        headers = (("Retry-After", str(refused.retry_after_s)),)
    elif isinstance(refused, NotAllowed):
        headers = (("Allow", refused.allowed),)
    elif isinstance(refused, Unauthorized):
        headers = (("WWW-Authenticate", "Bearer"),)
    return json_response({"error": refused.text}, code=refused.code, headers=headers)


def json_response(
    value: object, *, code: int = 200, headers: tuple[tuple[str, str], ...] = ()
) -> HttpResponse:
    """Return a value as JSON."""
    return HttpResponse(code=code, body=msgspec.json.encode(value), headers=headers)
