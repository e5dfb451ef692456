"""Send a server of models damaged requests: none gets a 5xx, and good ones are answered as ever.

    scripts/fuzz_serving.py http://127.0.0.1:8501 cnn --count 100000 --seed 1

Half of them are damaged bodies in sound HTTP, half damaged HTTP over a raw socket. Standard
library only, so it runs against any server of TensorFlow Serving's and KServe's routes.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import socket
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.base.untyped import Value

CHECK_EVERY = 500
ANSWER_S = 15.0
NEVER_SERVED = 501
"""What ``:classify`` and ``:regress`` get."""
VALUES: tuple[Any, ...] = (
    None, True, "", "a", "\ud83d\ude00", "\x00", -1, 0, 1e308, 10**18, 10**400, -0.0, [], {}, [[]],
    [None], {"b64": "a"}, {"b64": "////"}, {"b64": 1}, [[1], [1, 2]], "NaN",
)  # fmt: skip
TEXTS = (
    b"", b" ", b"{", b"[", b"null", b"1", b'"', b"\xff\xfe", b"NaN", b"{}{}", b'{"instances":',
    b'{"instances":[NaN]}', b'{"instances":[1e999]}', b'{"instances":[Infinity]}',
    b'{"instances":[1],"instances":[2]}', b'{"instances":[1],"inputs":[1]}', b'{"instances":[]}',
    b'{"instances":[[1],2]}', b'{"instances":"\\ud800"}', b'{"instances":[01]}', b"\x00" * 50,
    b"\xef\xbb\xbf{}", b'{"inputs":{"b64":"AA=="}}', b'{"instances":[1,]}', b'{"inputs":[]}',
    b'{"inputs":[{"name":"x","shape":[-1],"datatype":"FP32","data":[1]}]}',
    b'{"inputs":[{"name":"x","shape":[9999999999999999],"datatype":"FP32","data":[1]}]}',
)  # fmt: skip
PATHS = (
    "/", "/v1", "/v1/models", "/v1/models/", "/v1/models/../../etc/passwd", "/..%2f..%2fetc/passwd",
    "/v1/models/%00:predict", "/v1/models/%ff%fe:predict", "/v1/models/a b:predict", "//", "/%",
    "/v1/models/{name}/versions/99999999999999999999:predict", "/v1/models/{name}/versions/-1",
    "/v1/models/{name}:classify", "/v1/models/{name}:regress", "/v1/models/{name}/labels/x:predict",
    "/v1/models/{name}:", "/v2/models/{name}/infer/", "/v2/models/{name}/versions/x/infer",
    "/v2/repository/index", "/v1/models/" + "a" * 5000, "/metrics?x=" + "%41" * 900, "*",
    "http://elsewhere/v1/models/{name}",
)  # fmt: skip
METHODS = ("GET", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE", "CONNECT", "POST", "FOO")


@dataclass(slots=True, kw_only=True)
class Tally:
    """What came back, by kind of damage and status (0: closed without an answer)."""

    counts: Counter[tuple[str, int]] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A served model: where, and sound bodies for it."""

    host: str
    port: int
    name: str
    sound_v1: bytes
    sound_v2: bytes


def target_of(url: str, name: str, rng: random.Random) -> Target:
    """Ask the server for the model's inputs and make one sound row."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or 80
    code, answer = _ask(host, port, "GET", f"/v2/models/{name}", b"")
    if code != 200:
        raise SystemExit(f"{url} does not serve {name}: {answer.decode(errors='replace')}")
    inputs = json.loads(answer)["inputs"]
    shapes = [[1 if size < 0 else size for size in each["shape"]] for each in inputs]
    rows = [
        _nested(shape, each["datatype"], rng) for shape, each in zip(shapes, inputs, strict=True)
    ]
    first = {each["name"]: row[0] for each, row in zip(inputs, rows, strict=True)}
    v2 = [
        {"name": each["name"], "shape": shape, "datatype": each["datatype"], "data": row}
        for each, shape, row in zip(inputs, shapes, rows, strict=True)
    ]
    return Target(
        host=host, port=port, name=name,
        sound_v1=json.dumps({"instances": [first]}).encode(),
        sound_v2=json.dumps({"inputs": v2}).encode(),
    )  # fmt: skip


def _nested(shape: list[int], datatype: str, rng: random.Random) -> Value:
    if shape:
        return [_nested(shape[1:], datatype, rng) for _ in range(shape[0])]
    makers: dict[str, Callable[[], Any]] = {
        "BOOL": lambda: rng.random() < 0.5, "BYTES": lambda: "text",
    }  # fmt: skip
    is_float = datatype.startswith("FP")
    return makers.get(datatype, lambda: round(rng.random(), 3) if is_float else rng.randrange(9))()


def _ask(host: str, port: int, method: str, path: str, body: bytes) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(host, port, timeout=ANSWER_S)
    try:
        connection.request(method, path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def damaged_body(sound: bytes, rng: random.Random) -> tuple[str, bytes]:
    """One body with a damage of a random kind, and the kind's name."""
    kind = rng.choice(["cut", "flip", "text", "deep", "value", "key", "number", "noise", "repeat"])
    if kind == "cut":
        return kind, sound[: rng.randrange(len(sound))]
    if kind == "flip":
        data = bytearray(sound)
        for _ in range(rng.randrange(1, 6)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        return kind, bytes(data)
    if kind == "text":
        return kind, rng.choice(TEXTS)
    if kind == "deep":
        depth = rng.choice([10, 100, 1_000, 20_000])
        opening, closing = rng.choice([(b"[", b"]"), (b'{"a":', b"}")])
        middle = rng.choice([b"1", b""])
        return kind, b'{"instances":' + opening * depth + middle + closing * rng.choice(
            [0, depth]
        ) + b"}"
    if kind == "noise":
        return kind, rng.randbytes(rng.randrange(1, 300))
    if kind == "number":
        text = rng.choice(
            [b"9" * 400, b"1e400", b"-", b"1.", b".5", b"0x1", b"1e-999", b"--1", b"00"]
        )
        return kind, sound.replace(b"0", text, 1)
    if kind == "repeat":
        key = rng.choice([b"instances", b"inputs", b"signature_name", b"id"])
        return kind, b'{"' + key + b'":[1],' + sound[1:]
    return kind, _replaced(json.loads(sound), kind, rng)


def _replaced(value: Value, kind: str, rng: random.Random) -> bytes:
    """The sound body with one value or one key replaced at a random depth."""
    holder, place = value, rng.choice(list(value))
    while rng.random() < 0.7 and isinstance(holder[place], dict | list) and holder[place]:
        holder = holder[place]
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        place = rng.choice(list(keys))
    if kind == "key" and isinstance(holder, dict):
        holder[str(rng.choice(VALUES))] = holder.pop(place)
    else:
        holder[place] = rng.choice(VALUES)
    return json.dumps(value).encode()


def damaged_http(target: Target, rng: random.Random) -> tuple[str, bytes]:
    """One request that breaks HTTP, or uses it as nobody should, and the name of the damage."""
    kind = rng.choice(
        ["line", "header", "length", "chunks", "path", "method", "noise", "cut", "other", "verbs"]
    )
    name, sound = target.name, target.sound_v1
    line = f"POST /v1/models/{name}:predict HTTP/1.1\r\nHost: a\r\n".encode()
    if kind == "line":
        words = [b"POST", b"/" + rng.randbytes(5), b"HTTP/9.9", b"", b"GET", b"HTTP/1.0", b"\x00"]
        return kind, b" ".join(rng.choices(words, k=rng.randrange(1, 5))) + b"\r\n\r\n"
    if kind == "header":
        odd = [
            b"X" * 70_000,
            b": a",
            b"A\x00: b",
            b"A: \xff\x00",
            b" A: b",
            b"Content-Length: x",
            b"X-Request-Timeout-Ms: -1",
            b"X-Request-Timeout-Ms: 1e3",
            b"Content-Encoding: gzip",
            b"Inference-Header-Content-Length: 99999999",
            b"Expect: 100-continue",
            b"Upgrade: h2c\r\nConnection: Upgrade",
            b"Authorization: " + rng.randbytes(8).hex().encode(),
        ]
        return kind, line + rng.choice(odd) + b"\r\nContent-Length: 2\r\n\r\n{}"
    if kind == "length":
        told = rng.choice(
            [b"-1", b"99999999999999999999", b"5, 5", b"0x10", b"", b"1\r\nContent-Length: 2"]
        )
        return kind, line + b"Content-Length: " + told + b"\r\n\r\n" + sound
    if kind == "chunks":
        odd = [
            b"zz\r\n{}\r\n0\r\n\r\n",
            b"-2\r\n{}\r\n0\r\n\r\n",
            b"ffffffffffffffffff\r\n{}\r\n",
            b"2\r\n{}0\r\n\r\n",
            b"2;" + b"e" * 3000 + b"\r\n{}\r\n0\r\n\r\n",
            b"2\r\n{}\r\n0\r\n",
        ]
        more = rng.choice([b"", b"Content-Length: 3\r\n"])
        return kind, line + more + b"Transfer-Encoding: chunked\r\n\r\n" + rng.choice(odd)
    if kind == "path":
        path = rng.choice(PATHS).replace("{name}", name)
        method = rng.choice(["GET", "POST"])
        return (
            kind,
            f"{method} {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{{}}".encode(),
        )
    if kind in ("method", "verbs"):
        paths = [f"/v1/models/{name}:predict", "/metrics", "/readyz", f"/v2/models/{name}/infer"]
        method, path = rng.choice(METHODS), rng.choice(paths)
        return (
            kind,
            f"{method} {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{{}}".encode(),
        )
    if kind == "cut":
        whole = line + b"Content-Length: %d\r\n\r\n" % len(sound) + sound
        return kind, whole[: rng.randrange(len(whole))]
    if kind == "other":
        return kind, rng.choice(
            [
                b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                b"\x16\x03\x01\x02\x00\x01\x00",
                b"GET /\r\n\r\n",
                b"\r\n" * 50,
                b"SSH-2.0-x\r\n",
                line * 30,
            ]
        )
    return kind, rng.randbytes(rng.randrange(1, 500))


def _raw(target: Target, data: bytes) -> bytes:
    """Send bytes, say that no more come, and read until the server closes."""
    received = b""
    with socket.create_connection((target.host, target.port), timeout=ANSWER_S) as client:
        try:
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
            while piece := client.recv(65536):
                received += piece
        except (ConnectionResetError, BrokenPipeError):
            pass  # a refusal may arrive while we are sending
    return received


def run(
    target: Target, numbers: range, seed: int, told: Callable[[int, Tally], None] | None = None
) -> Tally:
    """Send the damaged requests with these numbers; each depends on the seed and its number."""
    tally = Tally()
    wanted = _ask(
        target.host, target.port, "POST", f"/v1/models/{target.name}:predict", target.sound_v1
    )
    if wanted[0] != 200:
        raise SystemExit(f"the sound request is not answered: {wanted}")
    client = http.client.HTTPConnection(target.host, target.port, timeout=ANSWER_S)
    for number in numbers:
        rng = random.Random(f"{seed} {number}")
        try:
            _framed(target, client, rng, tally, number) if number % 2 else _unframed(
                target, rng, tally, number
            )
        except (OSError, http.client.HTTPException) as error:
            tally.failures.append(f"request {number}: {type(error).__name__}: {error}")
            client.close()
        if number % CHECK_EVERY == 0 or number == numbers[-1]:
            path = f"/v1/models/{target.name}:predict"
            if _ask(target.host, target.port, "POST", path, target.sound_v1) != wanted:
                tally.failures.append(
                    f"after request {number}: a sound request is answered otherwise"
                )
            if told:
                told(number, tally)
    client.close()
    return tally


def _framed(
    target: Target,
    client: http.client.HTTPConnection,
    rng: random.Random,
    tally: Tally,
    number: int,
) -> None:
    is_v2 = rng.random() < 0.4
    kind, body = damaged_body(target.sound_v2 if is_v2 else target.sound_v1, rng)
    path = f"/v2/models/{target.name}/infer" if is_v2 else f"/v1/models/{target.name}:predict"
    headers = {"Content-Type": rng.choice(["application/json", "text/plain", "\xff", ""])}
    client.request("POST", path, body, headers)
    answer = client.getresponse()
    _count(tally, f"body {kind}", answer.status, answer.read(), number)


def _unframed(target: Target, rng: random.Random, tally: Tally, number: int) -> None:
    kind, data = damaged_http(target, rng)
    received = _raw(target, data)
    received = received.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")
    words = received.split(b" ", 2)
    code = int(words[1]) if received.startswith(b"HTTP/1.1 ") and words[1].isdigit() else 0
    _count(tally, f"http {kind}", code, received, number)


def _count(tally: Tally, kind: str, code: int, answer: bytes, number: int) -> None:
    tally.counts[kind, code] += 1
    if code >= 500 and code != NEVER_SERVED:
        tally.failures.append(f"request {number} ({kind}): {code} {answer[-300:]!r}")


def _told(number: int, tally: Tally) -> None:
    if number % 5000 == 0:
        print(f"{number} requests, {len(tally.failures)} failures", file=sys.stderr, flush=True)


def main() -> int:
    """Run from the command line; exit 1 when something failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("url")
    parser.add_argument("name")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    begin_s = time.monotonic()
    target = target_of(chosen.url, chosen.name, random.Random(chosen.seed))
    tally = run(target, range(chosen.count), chosen.seed, _told)
    by_code: Counter[int] = Counter()
    for (_, code), count in tally.counts.items():
        by_code[code] += count
    for (kind, code), count in sorted(tally.counts.items()):
        print(f"{kind:14} {code or 'closed':>6} {count:7}")
    codes = ", ".join(f"{code or 'closed'}: {count}" for code, count in sorted(by_code.items()))
    spent_s = time.monotonic() - begin_s
    print(f"{chosen.count} requests in {spent_s:.0f} s; {codes}; {len(tally.failures)} failures")
    for failure in tally.failures[:20]:
        print(failure)
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())
