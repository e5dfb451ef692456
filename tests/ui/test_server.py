from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest
from tests.ui.running import PATIENCE_S, Running, running
from tests.ui.what_ifs import MODEL, OFFERED

from tfdyno.ui.server import MOST_CLIENTS

if TYPE_CHECKING:
    from collections.abc import Iterator

CLIENTS = 64


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running() as found:
        yield found


def step(gpu: str, batch_size: int) -> str:
    query = urlencode({"workload": MODEL, "gpu": gpu, "batch_size": batch_size})
    return f"/api/step?{query}"


def test_sixty_four_clients_at_once_each_get_their_own_answer(server: Running) -> None:
    random = Random(64)
    asked = [(random.choice(OFFERED), random.randint(1, 512)) for _ in range(CLIENTS)]
    alone = {one: server.json(step(*one)) for one in dict.fromkeys(asked)}
    with ThreadPoolExecutor(CLIENTS) as clients:
        together = list(clients.map(lambda one: server.json(step(*one)), asked))
    assert together == [alone[one] for one in asked]
    for (gpu, batch_size), (status, found) in zip(asked, together, strict=True):
        one = found["document"]["estimates"][0]
        assert (status, one["gpu"], one["batch_size"]) == (200, gpu, batch_size)


def test_one_more_connection_than_there_may_be_is_told_as_json(server: Running) -> None:
    with contextlib.ExitStack() as held:
        for _ in range(MOST_CLIENTS):
            held.enter_context(socket.create_connection(("127.0.0.1", server.port)))
        status, _, body = server.get(step("l4", 8))
        assert status == 503
        assert set(json.loads(body)) == {"error"}
    end_s = time.monotonic() + PATIENCE_S
    while server.get(step("l4", 8))[0] == 503:  # until it has seen that they are gone
        assert time.monotonic() < end_s
        time.sleep(0.05)
    assert server.json(step("l4", 8))[0] == 200


def test_clients_that_go_away_leave_the_answers_of_others_as_they_are(server: Running) -> None:
    _, alone = server.json(step("l4", 64))
    head = f"GET {step('t4', 9)} HTTP/1.1\r\nhost: 127.0.0.1:{server.port}\r\n"
    head += f"authorization: Bearer {server.token}\r\n\r\n"
    for length in (3, len(head) // 2, len(head)):
        for _ in range(8):
            client = socket.create_connection(("127.0.0.1", server.port))
            client.sendall(head.encode()[:length])
            client.close()
    assert server.json(step("l4", 64)) == (200, alone)


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # TLS
        b"GET\r\n\r\n",
        b"\0" * 100 + b"\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon here\r\n\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\ncontent-length: -5\r\n\r\n",
    ],
)
def test_bytes_that_are_no_request_get_one_sentence_as_json(server: Running, sent: bytes) -> None:
    head, _, body = server.raw(sent).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 4"), head
    assert set(json.loads(body)) == {"error"}
    assert b"Traceback" not in body


def test_random_bytes_end_nothing(server: Running) -> None:
    random = Random(7)
    for _ in range(50):
        server.raw(random.randbytes(random.randint(1, 3000)))
    assert server.json(step("l4", 8))[0] == 200


def test_ctrl_c_ends_it_with_exit_code_0_and_without_a_traceback() -> None:
    with running("keras:ResNet50") as found:
        assert found.get("/")[0] == 200
        found.process.send_signal(signal.SIGINT)
        out, err = found.process.communicate(timeout=PATIENCE_S)
    assert (found.process.returncode, out, err) == (0, "", "tfdyno: Ctrl-C ends it.\n")


def test_it_listens_on_this_machine_only(server: Running) -> None:
    family = Path("/proc/net/tcp")
    if not family.exists():
        pytest.skip("Linux tells who listens")
    rows = [line.split() for line in family.read_text().splitlines()[1:]]
    listening = {row[1] for row in rows if row[3] == "0A"}
    assert f"0100007F:{server.port:04X}" in listening
    assert f"00000000:{server.port:04X}" not in listening


def test_a_port_that_is_taken_is_told_in_one_sentence(server: Running) -> None:
    words = ["ui", "--port", str(server.port), "--no-browser"]
    done = subprocess.run(
        [sys.executable, "-m", "tfdyno", *words], capture_output=True, text=True, check=False,
        timeout=PATIENCE_S,
    )  # fmt: skip
    assert done.returncode == 3
    assert done.stderr == (
        f"tfdyno: port {server.port} cannot be listened on: Address already in use; name another "
        "with --port, or leave it out.\n"
    )


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux tells the memory")
def test_it_takes_under_80_mb_after_answering(server: Running) -> None:
    query = urlencode({"workload": MODEL, "gpu": "l4"})
    for path in ("step", "run", "ranking"):
        assert server.json(f"/api/{path}?{query}")[0] == 200
    told = Path(f"/proc/{server.process.pid}/status").read_text()
    held = int(told.partition("VmRSS:")[2].split()[0])
    assert held < 80_000
