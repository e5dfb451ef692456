"""A server of the page in a process of its own, and clients on real sockets."""

from __future__ import annotations

import contextlib
import http.client
import json
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.ui.what_ifs import MODEL

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """Where it listens, and what it asks for."""

    url: str
    port: int
    token: str
    process: subprocess.Popen[str]
    folder: Path = Path()
    """Whose results it shows, where a test says so."""

    def get(self, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
        """Ask with the token, unless ``authorization`` is something else; empty headers go away."""
        sent = {"authorization": f"Bearer {self.token}", **headers}
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        with contextlib.closing(client):
            client.putrequest("GET", path, skip_host="host" in sent)
            for name, value in sent.items():
                if value:
                    client.putheader(name.replace("_", "-"), value)
            client.endheaders()
            answer = client.getresponse()
            names = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, names, answer.read()

    def json(self, path: str, **headers: str) -> tuple[int, Any]:
        """Ask until there is an answer: a trace is waited for."""
        while True:
            status, _, body = self.get(path, **headers)
            if status != 202:
                return status, json.loads(body)
            time.sleep(0.05)

    def raw(self, sent: bytes) -> bytes:
        """Send bytes, and give back all that comes until the server closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S) as client:
            client.sendall(sent)
            client.shutdown(socket.SHUT_WR)
            found = b""
            with contextlib.suppress(ConnectionResetError):
                while more := client.recv(65536):
                    found += more
            return found


@contextlib.contextmanager
def running(*words: str) -> Iterator[Running]:
    """Start ``tfdyno ui`` on a free port, and end it by Ctrl-C."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tfdyno", "ui", *(words or (MODEL,)), "--port", "0", "--no-browser"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout
        line = process.stdout.readline()
        assert line.startswith("ready http://127.0.0.1:"), process.stderr and process.stderr.read()
        url = line.split()[1]
        yield Running(
            url=url,
            port=int(url.split(":")[2].partition("/")[0]),
            token=url.partition("#token=")[2],
            process=process,
        )
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
