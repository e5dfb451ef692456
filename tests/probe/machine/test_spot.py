"""Notices of the clouds, from a server on this machine that plays their metadata services."""

from __future__ import annotations

import http.server
import json
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from tfdyno.core.base.codec import read_toml
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.settings import CLOUDS
from tfdyno.probe.machine.spot import DATA, Notice, SpotWatch

if TYPE_CHECKING:
    from collections.abc import Iterator

AT = "2026-11-22T08:22:00Z"


class Service(http.server.ThreadingHTTPServer):
    """Answers as the three clouds document it, and refuses what they refuse."""

    daemon_threads = True

    def __init__(self) -> None:
        """Listen on a free port."""
        super().__init__(("127.0.0.1", 0), Answer)
        self.notices: set[str] = set()
        self.token = "first"
        self.tokens_given = 0
        self.slow_s = 0.0
        self.asked: list[str] = []
        self.events: list[dict[str, Any]] = []

    def handle_error(self, *_args: Any) -> None:
        """Say nothing where the other side did not wait."""

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Answer(http.server.BaseHTTPRequestHandler):
    """One request."""

    server: Service

    def log_message(self, *_args: Any) -> None:
        """Say nothing."""

    def say(self, code: int, text: str = "") -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def do_PUT(self) -> None:
        if self.path != "/latest/api/token":
            return self.say(404)
        if self.headers["X-aws-ec2-metadata-token-ttl-seconds"] != "21600":
            return self.say(400)
        self.server.tokens_given += 1
        return self.say(200, self.server.token)

    def do_GET(self) -> None:
        service = self.server
        service.asked.append(self.path)
        time.sleep(service.slow_s)
        if self.path.startswith("/latest/"):
            return self.aws(service)
        if self.path.startswith("/computeMetadata/"):
            if self.headers["Metadata-Flavor"] != "Google":
                return self.say(403)
            if self.path.endswith("/instance/id"):
                return self.say(200, "1234")
            return self.say(200, "TRUE" if "gcp" in service.notices else "FALSE")
        if self.headers["Metadata"] != "true" or "api-version=" not in self.path:
            return self.say(400)
        if self.path.startswith("/metadata/instance/compute/name"):
            return self.say(200, "Worker_3")
        return self.say(200, json.dumps({"DocumentIncarnation": 1, "Events": service.events}))

    def aws(self, service: Service) -> None:
        if self.headers["X-aws-ec2-metadata-token"] != service.token:
            return self.say(401)
        if self.path.endswith("/instance-id"):
            return self.say(200, "i-0abc")
        if "aws" in service.notices:
            return self.say(200, json.dumps({"action": "terminate", "time": AT}))
        return self.say(404)


@pytest.fixture
def service() -> Iterator[Service]:
    running = Service()
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield running
    running.shutdown()
    thread.join()
    running.server_close()


def ignored(_notice: Notice) -> None:
    """For a watch that is asked by hand."""


def event(kind: str, *machines: str) -> dict[str, Any]:
    return {"EventType": kind, "Resources": list(machines), "NotBefore": AT}


@pytest.mark.parametrize("cloud", CLOUDS)
def test_no_notice_then_one(cloud: str, service: Service) -> None:
    watch = SpotWatch(cloud, ignored, address=service.address)
    watch.check()
    assert watch.ask() is None
    service.notices.add(cloud)
    service.events = [event("Preempt", "worker_3")]
    notice = watch.ask()
    assert notice is not None
    action, at = {
        "aws": ("terminate", AT), "gcp": ("preempted", ""), "azure": ("Preempt", AT)
    }[cloud]  # fmt: skip
    assert (notice.cloud, notice.action, notice.at) == (cloud, action, at)
    assert notice.sentence.startswith(f"{cloud} takes this machine away ")


def test_an_expired_token_is_renewed(service: Service) -> None:
    watch = SpotWatch("aws", ignored, address=service.address)
    assert watch.ask() is None
    assert watch.ask() is None
    assert service.tokens_given == 1
    service.token = "second"
    assert watch.ask() is None
    assert service.tokens_given == 2


def test_events_of_other_machines_and_of_other_kinds_are_not_told(service: Service) -> None:
    service.events = [event("Preempt", "worker_7"), event("Reboot", "worker_3")]
    watch = SpotWatch("azure", ignored, address=service.address)
    assert watch.ask() is None
    service.events.append(event("Terminate", "worker_3"))
    notice = watch.ask()
    assert notice is not None
    assert notice.action == "Terminate"


def test_the_child_is_told_to_end_once(service: Service) -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    told: list[Notice] = []

    def end(notice: Notice) -> None:
        told.append(notice)
        child.send_signal(signal.SIGTERM)

    with SpotWatch("gcp", end, address=service.address, interval_s=0.01):
        time.sleep(0.1)
        assert child.poll() is None
        service.notices.add("gcp")
        assert child.wait(timeout=60) == -signal.SIGTERM
        time.sleep(0.1)
    assert len(told) == 1


def test_a_service_that_hangs_for_a_while_is_asked_again(service: Service) -> None:
    told: list[Notice] = []
    found = threading.Event()

    def take(notice: Notice) -> None:
        told.append(notice)
        found.set()

    service.slow_s = 0.3
    service.notices.add("gcp")
    with SpotWatch("gcp", take, address=service.address, interval_s=0.01, timeout_s=0.1):
        time.sleep(0.3)
        assert told == []
        service.slow_s = 0.0
        assert found.wait(timeout=60)


def test_a_machine_elsewhere_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    unused = Service()
    address = unused.address
    unused.server_close()
    monkeypatch.setenv("GCE_METADATA_HOST", address.removeprefix("http://"))
    watch = SpotWatch("gcp", ignored)
    with pytest.raises(UsageError, match=f"--spot gcp finds no metadata service at {address}: "):
        watch.check()


def test_an_unknown_cloud_is_refused() -> None:
    with pytest.raises(UsageError, match="--spot 'ibm' is not one of aws, gcp, azure"):
        SpotWatch("ibm", ignored)


def test_a_proxy_is_never_asked(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    assert SpotWatch("gcp", ignored, address=service.address).ask() is None
    assert service.asked == ["/computeMetadata/v1/instance/preempted"]


def test_every_service_has_a_source() -> None:
    services = read_toml(DATA)
    assert tuple(services) == CLOUDS
    assert all("https://" in each["source"] for each in services.values())
