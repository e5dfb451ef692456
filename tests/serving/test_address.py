"""HTTP at a socket of the file system and at a port, to a server that says where it was asked."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer, UnixStreamServer
from typing import TYPE_CHECKING

import pytest

from tfdyno.serving.address import LOOPBACK, connection, host_and_port, socket_path

if TYPE_CHECKING:
    from pathlib import Path


class Echo(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.path)))
        self.end_headers()
        self.wfile.write(self.path.encode())

    def address_string(self) -> str:  # a socket of the file system has no address
        return "nobody"

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.parametrize("is_socket", [True, False])
def test_http_is_spoken_at_a_socket_as_at_a_port(is_socket: bool, tmp_path: Path) -> None:
    path = tmp_path / "http"
    server: TCPServer = (
        UnixStreamServer(str(path), Echo) if is_socket else TCPServer((LOOPBACK, 0), Echo)
    )
    address = f"unix:{path}" if is_socket else f"{LOOPBACK}:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    asked = connection(address, timeout_s=5.0)
    try:
        asked.request("GET", "/v2/health/ready")
        assert asked.getresponse().read() == b"/v2/health/ready"
    finally:
        asked.close()
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_socket_where_nobody_listens_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        connection(f"unix:{tmp_path / 'gone'}", timeout_s=1.0).request("GET", "/")


def test_triton_is_told_a_socket_as_its_host() -> None:
    assert host_and_port("127.0.0.1:8000") == ("127.0.0.1", 8000)
    assert host_and_port("unix:/tmp/s/http")[0] == "unix:/tmp/s/http"
    assert (socket_path("unix:/tmp/s/http"), socket_path("127.0.0.1:80")) == ("/tmp/s/http", "")
