"""Notices that the cloud will take this machine away, polled from its metadata service.

Nothing here runs, and nothing asks the network, unless the user named the cloud.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import threading
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.base import settings
from tfdyno.core.base.codec import read_toml
from tfdyno.core.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

DATA = Path(__file__).parents[1] / "data" / "spot.toml"
INTERVAL_S = 5.0
"""What AWS recommends."""
TIMEOUT_S = 2.0
MOST_BYTES = 1 << 16
NOT_FOUND, DENIED = 404, 401


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """The machine will be taken away."""

    cloud: str
    action: str
    """The action as the cloud names it: ``terminate``, ``stop``, ``hibernate``, ``preempted``,
    ``Preempt``."""
    at: str = ""
    """When, as the cloud writes it; empty where it does not say."""
    warning_s: float = 0.0
    """How long before the end such a notice comes."""

    @property
    def sentence(self) -> str:
        """The notice in a sentence for a person."""
        when = f"at {self.at}" if self.at else f"in about {self.warning_s:.0f} s"
        return f"{self.cloud} takes this machine away {when} ({self.action})."


class SpotWatch:
    """Polls in a thread of its own, as a context manager; tells of the first notice, once.

    with SpotWatch("aws", told=lambda notice: child.terminate()):
        child.wait()

    A service that does not answer for a while is asked again; ``check`` tells before the run
    whether it answers at all.
    """

    def __init__(
        self,
        cloud: str,
        told: Callable[[Notice], None],
        *,
        address: str = "",
        interval_s: float = INTERVAL_S,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        """Prepare; asks nothing yet.

        Args:
            cloud: One of ``settings.CLOUDS``.
            told: Called in the thread of the watch.
            address: Of the service; the cloud's own, or what its environment variable says, if
                empty.
            interval_s: Time between two questions.
            timeout_s: Of one question.

        Raises:
            UsageError: There is no such cloud.
        """
        self.cloud, self._told = settings.one_of(cloud, settings.CLOUDS, "--spot"), told
        self._interval_s, self._timeout_s = interval_s, timeout_s
        self._service: dict[str, Any] = read_toml(DATA)[cloud]
        self._address = address or self._usual_address()
        self._token = ""
        self._name = ""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="spot notices", daemon=True)

    def check(self) -> None:
        """Ask once whether this machine is one of the cloud; raises ``UsageError`` if not."""
        try:
            self._name = self._ask(self._service["alive_path"])
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise UsageError(
                f"--spot {self.cloud} finds no metadata service at {self._address}",
                why=str(reason) or type(error).__name__,
                remedy="leave it out on a machine that is not of this cloud",
            ) from None

    def ask(self) -> Notice | None:
        """Return the notice that stands now.

        Raises:
            OSError, http.client.HTTPException: The service did not answer.
        """
        try:
            text = self._ask(self._service["notice_path"])
        except urllib.error.HTTPError as error:
            if error.code == NOT_FOUND:
                return None
            raise
        found = {"aws": _aws, "gcp": _gcp, "azure": self._azure}[self.cloud](text)
        if found is None:
            return None
        action, at = found
        warning_s = float(self._service["warning_s"])
        return Notice(cloud=self.cloud, action=action, at=at, warning_s=warning_s)

    def __enter__(self) -> SpotWatch:
        """Start to poll."""
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        """Stop; a question under way is not waited for."""
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.is_set():
            with contextlib.suppress(OSError, http.client.HTTPException):
                notice = self.ask()
                if notice is not None and not self._stop.is_set():
                    self._told(notice)
                    return
            self._stop.wait(self._interval_s)

    def _usual_address(self) -> str:
        named = os.environ.get(self._service.get("address_variable", ""), "").rstrip("/")
        if named and "://" not in named:
            named = f"http://{named}"
        return named or str(self._service["address"])

    def _ask(self, path: str) -> str:
        try:
            return self._send(path, self._headers())
        except urllib.error.HTTPError as error:
            if error.code != DENIED or not self._token:
                raise
        self._token = ""  # it has expired
        return self._send(path, self._headers())

    def _headers(self) -> dict[str, str]:
        service = self._service
        headers: dict[str, str] = dict(service["headers"])
        if "token_path" in service:
            self._token = self._token or self._send(
                service["token_path"], service["token_headers"], method="PUT"
            )
            headers[service["token_header"]] = self._token
        return headers

    def _send(self, path: str, headers: dict[str, str], method: str = "GET") -> str:
        request = urllib.request.Request(self._address + path, headers=headers, method=method)
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # never by a proxy
        with direct.open(request, timeout=self._timeout_s) as answer:
            return str(answer.read(MOST_BYTES).decode("utf-8", "replace")).strip()

    def _azure(self, text: str) -> tuple[str, str] | None:
        """Return the event of this machine, among those of its group."""
        if not self._name:
            with contextlib.suppress(OSError, http.client.HTTPException):
                self._name = self._ask(self._service["alive_path"])
        for event in _object(text).get("Events") or ():
            names = [str(name).lower() for name in event.get("Resources") or ()]
            mine = not names or not self._name or self._name.lower() in names
            if mine and event.get("EventType") in self._service["event_types"]:
                return str(event["EventType"]), str(event.get("NotBefore") or "")
        return None


def _aws(text: str) -> tuple[str, str]:
    """There is an answer only when there is a notice."""
    found = _object(text)
    return str(found.get("action") or "terminate"), str(found.get("time") or "")


def _gcp(text: str) -> tuple[str, str] | None:
    return ("preempted", "") if text.upper() == "TRUE" else None


def _object(text: str) -> dict[str, Any]:
    with contextlib.suppress(ValueError):
        found = json.loads(text)
        if isinstance(found, dict):
            return found
    return {}
