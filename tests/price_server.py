"""A web server on the loopback with answers as price lists give them: whole, slow, endless."""

from __future__ import annotations

import contextlib
import csv
import io
import threading
import time
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Answer = bytes | int
"""What a path answers: a body, or a status without one."""
SKYPILOT_HEADER = (
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region"
)
GPUHUNT_HEADER = (
    "instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot,disk_size,"
    "gpu_vendor,flags,cpu_arch,provider_data"
)


def skypilot_list(*rows: str, header: str = SKYPILOT_HEADER) -> bytes:
    """Return a list as SkyPilot hosts it."""
    return "\n".join((header, *rows, "")).encode()


def skypilot_row(
    instance: str, card: str, count: float, price: object, spot: object = "",
    region: str = "us-east-1", memory_mib: float = 0, vcpus: float = 8, ram_gb: float = 32,
) -> str:  # fmt: skip
    """Return a machine as SkyPilot's lists have it."""
    info = (
        f"{{'Gpus': [{{'Name': '{card}', 'Manufacturer': 'NVIDIA', 'Count': {count}, "
        f"'MemoryInfo': {{'SizeInMiB': {memory_mib:g}}}}}], 'TotalGpuMemoryInMiB': 0}}"
    )
    line = io.StringIO()
    cells = (instance, card, count, vcpus, ram_gb, info if memory_mib else "", price, spot, region)
    csv.writer(line, lineterminator="").writerow(cells)
    return line.getvalue()


def gpuhunt_zip(name: str, *rows: str, header: str = GPUHUNT_HEADER) -> bytes:
    """Return a provider's list as gpuhunt publishes it."""
    return zipped(f"{name}.csv", "\n".join((header, *rows, "")))


def zipped(name: str, content: str) -> bytes:
    """Return a zip with one file."""
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w", zipfile.ZIP_DEFLATED) as folder:
        folder.writestr(name, content)
    return body.getvalue()


def gpuhunt_row(
    instance: str, card: str, count: int, memory_gb: float, price: object, *,
    spot: bool = False, location: str = "us-east-1", vendor: str = "nvidia", flags: str = "",
) -> str:  # fmt: skip
    """Return a machine as gpuhunt's lists have it."""
    return (
        f"{instance},{location},{price},8,32.0,{count},{card},{memory_gb},{spot},,{vendor},"
        f"{flags},x86,{{}}"
    )


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def date_time_string(self, timestamp: float | None = None) -> str:
        now_s = time.time() if timestamp is None else timestamp
        return super().date_time_string(now_s + self.server.ahead_s)

    def do_POST(self) -> None:
        self.server.posted.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.do_GET()

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        answer = self.server.answers.get(self.path, 404)
        if callable(answer):
            self.send_response(200)
            if answer == self.server.broken_off:
                self.send_header("Content-Length", "1000")
            self.end_headers()
            self.close_connection = True
            with contextlib.suppress(OSError):  # the client has gone
                answer(self)
        elif isinstance(answer, int):
            self.send_response(answer)
            self.send_header("Content-Length", "0")
            self.end_headers()
        else:
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

    def log_message(self, *_words: object) -> None:
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: dict[str, Answer | Callable[[_Handler], None]] = {}
        self.asked: list[str] = []
        self.posted: list[bytes] = []
        self.ahead_s = 0.0
        self.over = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def drip(self, handler: _Handler) -> None:
        """Send a byte now and then, without end."""
        while not self.over.wait(0.05):
            handler.wfile.write(b"a")

    def pour(self, handler: _Handler) -> None:
        """Send as fast as it goes, without end."""
        while not self.over.is_set():
            handler.wfile.write(b"a,b,c\n" * 10_000)

    def silent(self, _handler: _Handler) -> None:
        """Send nothing."""
        self.over.wait(60)

    def broken_off(self, handler: _Handler) -> None:
        """Send less than the head says."""
        handler.wfile.write(b"InstanceType,")


PriceServer = _Server


@contextlib.contextmanager
def serving() -> Iterator[_Server]:
    """Serve until the block ends."""
    server = _Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        thread.join()
        server.server_close()
