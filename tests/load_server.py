"""A small model server for the tests of the load client: real sockets, and faults on request.

``python load_server.py PORT '{"work_s": 0.002, ...}'`` prints ``ready PORT`` and serves a model
``m`` with one input ``x float32[-1,4]`` and one output ``y float32[-1,2]``, TensorFlow Serving's
route and KServe v2. One request is worked on at a time.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

TENSORS = {"inputs": [("x", 4)], "outputs": [("y", 2)]}


class Server:
    """Answers as its options say."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options
        self.count = 0
        self.free_s = 0.0
        self.sizes: list[int] = []

    async def connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                words = head.split(b" ", 2)
                length = 0
                for line in head.split(b"\r\n"):
                    if line.lower().startswith(b"content-length:"):
                        length = int(line.partition(b":")[2])
                body = await reader.readexactly(length)
                if not await self.answer(writer, words[1].decode(), head, body):
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        writer.close()

    async def answer(
        self, writer: asyncio.StreamWriter, path: str, head: bytes, body: bytes
    ) -> bool:
        option = self.options.get
        if (token := option("token")) and f"Bearer {token}".encode() not in head:
            return self.write(writer, 401, {"error": "no token"})
        if not path.endswith((":predict", "/infer")):
            return self.look(writer, path)
        self.count += 1
        number = self.count
        if option("at_a_time", True) and not await self.turn(writer):
            return True
        if number == option("stall_at"):
            await asyncio.sleep(3600)
        if number == option("hang_up_at"):
            return False
        if (every := option("fail_every")) and number % every == 0:
            return self.write(writer, option("fail_with", 500), {"error": "planted"})
        raw = json.loads(body)
        v2 = path.endswith("/infer")
        rows = raw["inputs"][0]["shape"][0] if v2 else len(raw["instances"])
        self.sizes.append(rows)
        wide = 3 if number == option("wrong_at") else 2
        if v2:
            data = [0.5] * (rows * wide)
            tensor = {"name": "y", "datatype": "FP32", "shape": [rows, wide], "data": data}
            return self.write(writer, 200, {"outputs": [tensor]})
        return self.write(writer, 200, {"predictions": [[0.5] * wide] * rows})

    async def turn(self, writer: asyncio.StreamWriter) -> bool:
        """Wait for one's turn; False: too many wait already, and the request was refused."""
        now_s, work_s = time.monotonic(), self.options.get("work_s", 0.0)
        waits_s = max(0.0, self.free_s - now_s)
        if waits_s > self.options.get("most_wait_s", 1e9):
            self.write(writer, 429, {"error": "too many"})
            return False
        self.free_s = max(now_s, self.free_s) + work_s
        if waits_s + work_s > 0:
            await asyncio.sleep(waits_s + work_s)
        return True

    def look(self, writer: asyncio.StreamWriter, path: str) -> bool:
        if path.endswith("/metadata") and not self.options.get("no_metadata"):
            sides = {
                side: {
                    name: {
                        "dtype": "DT_FLOAT",
                        "tensor_shape": {"dim": [{"size": "-1"}, {"size": str(size)}]},
                        "name": name,
                    }
                    for name, size in tensors
                }
                for side, tensors in TENSORS.items()
            }
            signatures = {"signature_def": {"serving_default": sides}}
            return self.write(writer, 200, {
                "model_spec": {"name": "m", "version": self.version()},
                "metadata": {"signature_def": signatures},
            })  # fmt: skip
        if path == "/v2/models/m":
            sides_v2 = {
                side: [{"name": name, "datatype": "FP32", "shape": [-1, size]}
                       for name, size in tensors]
                for side, tensors in TENSORS.items()
            }  # fmt: skip
            return self.write(writer, 200, {"name": "m", "versions": ["1"], **sides_v2})
        if path == "/v2/models/m/stats":
            counts = {size: self.sizes.count(size) for size in set(self.sizes)}
            stats = [{"batch_size": size, "compute_infer": {"count": n}}
                     for size, n in counts.items()]  # fmt: skip
            return self.write(writer, 200, {"model_stats": [{"batch_stats": stats}]})
        return self.write(writer, 404, {"error": "not found"})

    def version(self) -> str:
        return "2" if self.count >= self.options.get("new_version_at", 1e9) else "1"

    def write(self, writer: asyncio.StreamWriter, status: int, document: object) -> bool:
        body = json.dumps(document).encode()
        close = bool(self.options.get("close"))
        extra = b"Connection: close\r\n" if close else b""
        if self.options.get("chunked"):
            body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
            extra += b"Transfer-Encoding: chunked\r\n"
        else:
            extra += b"Content-Length: %d\r\n" % len(body)
        writer.write(b"HTTP/1.1 %d X\r\nServer: tiny\r\n%s\r\n%s" % (status, extra, body))
        return not close


async def main(port: int, options: dict[str, Any]) -> None:
    """Serve until killed."""
    context = None
    if options.get("certificate"):
        import ssl

        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(options["certificate"], options["key"])
    one = Server(options)
    server = await asyncio.start_server(one.connection, "127.0.0.1", port, ssl=context)
    print("ready", server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), json.loads(sys.argv[2])))
