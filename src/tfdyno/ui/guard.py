"""Who is answered: the browser that was given the token, from the page itself, and nobody else."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

from starlette.responses import Response

from tfdyno.core.base.codec import to_json

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

PRIVATE = "/api/"
MOST_QUERY_BYTES = 4096
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_HEADERS = [(name.encode(), value.encode()) for name, value in HEADERS.items()]


class Guard:
    """Refuses what the page itself does not ask, before anything of it is read."""

    def __init__(self, app: ASGIApp, *, token: str, port: int) -> None:
        self.app, self.token = app, token.encode()
        names = ("127.0.0.1", "localhost", "[::1]")
        self.hosts = {f"{name}:{port}".encode() for name in names}
        self.hosts |= {name.encode() for name in names} if port == 80 else set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer as ASGI has it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *_HEADERS]}
            await send(message)

        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
        elif refused := self._refused(scope):
            await refused(scope, receive, guarded)
        else:
            await self.app(scope, receive, guarded)

    def _refused(self, scope: Scope) -> Response | None:
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value)

        def only(name: str) -> bytes:
            values = headers.get(name.encode(), [b""])
            return values[0] if len(values) == 1 else b"given twice"

        if only("host").lower() not in self.hosts:
            return error(421, "this server answers to its own address only",
                         "open the one that tfdyno ui printed")  # fmt: skip
        is_private = scope["path"].startswith(PRIVATE)
        own = b"http://" + only("host").lower()
        is_foreign = only("origin").lower() not in (b"", own)
        # A link that stands on another site may be followed: the page itself holds no answer.
        is_link = not is_private and only("sec-fetch-mode") == b"navigate"
        is_own = only("sec-fetch-site") in (b"", b"same-origin", b"none")
        if is_foreign or not (is_own or is_link):
            return error(403, "another site asked", "open the page itself")
        if scope["method"] not in ("GET", "HEAD"):
            return error(405, f"{scope['method']} is not answered", "use GET")
        length = only("content-length")
        if only("transfer-encoding") or length not in (b"", b"0"):
            return error(413, "a body is not taken", "send none")
        if len(scope["query_string"]) > MOST_QUERY_BYTES:
            return error(414, "the address is too long",
                         f"stay under {MOST_QUERY_BYTES} bytes")  # fmt: skip
        if is_private and not self._is_known(only("authorization")):
            return error(401, "the token is missing or wrong",
                         "open the address that tfdyno ui printed")  # fmt: skip
        return None

    def _is_known(self, header: bytes) -> bool:
        scheme, _, given = header.partition(b" ")
        is_same = hmac.compare_digest(given.strip(), self.token)
        return scheme.lower() == b"bearer" and is_same


def error(status: int, what: str, remedy: str = "") -> Response:
    """Return a refusal of the server itself."""
    return refusal(status, f"{what}; {remedy}." if remedy else f"{what.rstrip('.')}.")


def refusal(status: int, sentence: str, code: str = "") -> Response:
    """Return the one form that all errors have.

    Args:
        status: Of HTTP.
        sentence: For whoever reads it.
        code: For the page, where it shows something else for this error.
    """
    told = {"error": sentence, **({"code": code} if code else {})}
    return Response(to_json(told), status, media_type="application/json")
