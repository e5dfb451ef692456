"""The address of a served model: TensorFlow Serving's REST route or that of KServe v2."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from tfdyno.core.base.errors import UsageError
from tfdyno.core.measure.load import Route

_FORMS = "http://HOST:PORT/v1/models/NAME or http://HOST:PORT/v2/models/NAME"
_TENSORFLOW = re.compile(
    r"(?P<prefix>.*)/v1/models/(?P<model>[^/:]+)(?P<version>/(?:versions|labels)/[^/:]+)?"
    r"(?::predict)?/?"
)
_KSERVE = re.compile(
    r"(?P<prefix>.*)/v2/models/(?P<model>[^/:]+)(?P<version>/versions/[^/:]+)?(?:/infer)?/?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadUrl:
    """Where a model is served, in parts."""

    scheme: str
    host: str
    port: int
    prefix: str
    """Path before ``/v1`` or ``/v2``."""
    route: Route
    model: str
    version: str
    """``/versions/3``; empty: the server's choice."""

    @property
    def origin(self) -> str:
        """``http://127.0.0.1:8501``, with the brackets of an IPv6 address."""
        return f"{self.scheme}://{self.netloc}"

    @property
    def netloc(self) -> str:
        """Host and port, as the ``Host`` header has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def model_path(self) -> str:
        """Path of the model."""
        family = "v1" if self.route == "tensorflow-serving" else "v2"
        return f"{self.prefix}/{family}/models/{self.model}{self.version}"

    @property
    def predict_path(self) -> str:
        """Path that takes requests."""
        ending = ":predict" if self.route == "tensorflow-serving" else "/infer"
        return f"{self.model_path}{ending}"

    @property
    def metadata_path(self) -> str:
        """Path that tells inputs and outputs."""
        ending = "/metadata" if self.route == "tensorflow-serving" else ""
        return f"{self.model_path}{ending}"

    @property
    def is_local(self) -> bool:
        """Whether the server is on this machine for sure."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


def read_load_url(text: str) -> LoadUrl:
    """Read an address.

    Raises:
        UsageError: It is none, has a password or a query, or names no model.
    """
    wrong = UsageError(f"{text!r} is not the address of a served model", remedy=f"give {_FORMS}")
    if any(ord(sign) <= 32 or ord(sign) > 126 for sign in text):
        raise wrong
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise wrong from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise wrong
    if parts.username or parts.password or parts.query or parts.fragment:
        raise UsageError("an address with a password, '?' or '#' is not used",
                         remedy="give a token with --token")  # fmt: skip
    route: Route = "tensorflow-serving"
    match = _TENSORFLOW.fullmatch(parts.path)
    if match is None:
        route, match = "kserve-v2", _KSERVE.fullmatch(parts.path)
    if match is None:
        raise wrong
    return LoadUrl(
        scheme=parts.scheme,
        host=parts.hostname,
        port=port or (443 if parts.scheme == "https" else 80),
        prefix=match["prefix"],
        route=route,
        model=match["model"],
        version=match["version"] or "",
    )
