"""Predicted against measured latency of a server that batches, under load that waits for nobody.

Serves a Keras CNN by NVIDIA Triton (PyTriton), asks Triton how long batches of each size take it,
and sends requests at random moments at several shares of the full rate. With ``--device-s FIXED
ROW`` the model waits so long instead of computing, so that a busy processor disturbs it less. Run
it with the Python of the serving environment, and with ``src`` on the path. Prints JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np

SHAPE = (64, 64, 3)
SIZES = (1, 2, 4, 8, 16)
SHARES = (0.3, 0.5, 0.7, 0.85)
CALLS = 20
"""Of every client in a closed loop, to measure batches."""
CLIENTS = (1, 2, 3, 5, 9, 17, 33)
"""At once. One batch is under way while the others gather, so each brings a size of its own."""
OFTEN = 8


def serve(options: argparse.Namespace) -> None:
    """The server; ends with its standard input."""
    import keras
    import tensorflow as tf
    from pytriton.decorators import batch
    from pytriton.model_config import DynamicBatcher, ModelConfig, Tensor
    from pytriton.triton import Triton, TritonConfig, TritonSecurityConfig

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    keras.utils.set_random_seed(0)
    layers = keras.layers
    model = keras.Sequential([
        keras.Input(SHAPE), layers.Rescaling(1 / 255), layers.Conv2D(32, 3, activation="relu"),
        layers.Conv2D(32, 3, strides=2, activation="relu"), layers.Conv2D(64, 3, activation="relu"),
        layers.GlobalAveragePooling2D(), layers.Dense(10, activation="softmax"),
    ])  # fmt: skip
    call = tf.function(model, input_signature=[tf.TensorSpec((None, *SHAPE), tf.uint8)])
    for size in SIZES:
        call(np.zeros((size, *SHAPE), np.uint8))

    fixed_s, row_s = options.device_s

    @batch
    def answer(image: np.ndarray) -> dict[str, np.ndarray]:
        if fixed_s:  # as a GPU keeps its process waiting, whatever else the processor does
            time.sleep(fixed_s + row_s * len(image))
            return {"scores": np.zeros((len(image), 10), np.float32)}
        return {"scores": call(image).numpy()}

    config = TritonConfig(
        http_port=options.port, grpc_port=options.port + 1, metrics_port=options.port + 2,
        http_address="127.0.0.1", grpc_address="127.0.0.1", metrics_address="127.0.0.1",
        id=f"queue-{options.port}",
    )  # fmt: skip
    guarded = TritonSecurityConfig(restricted_endpoints=["shared-memory", "model-repository"])
    with Triton(config=config, security_config=guarded) as triton:
        triton.bind(
            model_name="cnn", infer_func=answer,
            inputs=[Tensor(name="image", dtype=np.uint8, shape=SHAPE)],
            outputs=[Tensor(name="scores", dtype=np.float32, shape=(10,))],
            config=ModelConfig(
                max_batch_size=options.limit,
                batcher=DynamicBatcher(max_queue_delay_microseconds=int(options.delay_s * 1e6)),
            ),
        )  # fmt: skip
        triton.run()
        print("ready", flush=True)
        os.dup2(2, 1)  # Triton goes on logging
        sys.stdin.read()


class Client:
    """Sends rows in the binary form of the KServe protocol."""

    def __init__(self, session: aiohttp.ClientSession, port: int) -> None:
        self.session, self.url = session, f"http://127.0.0.1:{port}/v2/models/cnn"
        self.pixels = np.random.default_rng(0).integers(0, 255, (max(SIZES), *SHAPE), np.uint8)

    async def send(self, rows: int) -> float:
        """Seconds of one request."""
        raw = self.pixels[:rows].tobytes()
        head = json.dumps({
            "inputs": [{"name": "image", "shape": [rows, *SHAPE], "datatype": "UINT8",
                        "parameters": {"binary_data_size": len(raw)}}],
            "outputs": [{"name": "scores", "parameters": {"binary_data": True}}],
        }).encode()  # fmt: skip
        headers = {"Inference-Header-Content-Length": str(len(head)),
                   "Content-Type": "application/octet-stream"}  # fmt: skip
        began_s = time.perf_counter()
        url = f"{self.url}/infer"
        async with self.session.post(url, data=head + raw, headers=headers) as answer:
            await answer.read()
            if answer.status != 200:
                raise SystemExit(f"{answer.status}: {await answer.text()}")
        return time.perf_counter() - began_s

    async def batches(self) -> dict[int, tuple[int, float]]:
        """Size of a batch to how many ran and the seconds that Triton's model was taken by them."""
        async with self.session.get(f"{self.url}/stats") as answer:
            found = (await answer.json())["model_stats"][0]["batch_stats"]
        return {
            one["batch_size"]: (
                one["compute_infer"]["count"],
                sum(one[part]["ns"] for part in ("compute_input", "compute_infer",
                                                 "compute_output")) / 1e9,
            ) for one in found
        }  # fmt: skip


async def service_s(client: Client) -> tuple[dict[int, float], float]:
    """Seconds of a batch of each size, and what a request of one row alone takes beyond that.

    Clients in a closed loop bring the sizes about. A batch is made of requests of one row, as the
    load does it: Triton hands each to the model by itself, which costs more than one request of as
    many rows.
    """
    times = [await client.send(1) for _ in range(CALLS)]
    before = await client.batches()
    times = [await client.send(1) for _ in range(CALLS)]
    alone = between(before, await client.batches())[1]
    before = await client.batches()
    for clients in CLIENTS:
        await asyncio.gather(*(closed(client, CALLS) for _ in range(clients)))
    return between(before, await client.batches()), float(np.median(times)) - alone


async def closed(client: Client, calls: int) -> None:
    """A client that waits for each answer."""
    for _ in range(calls):
        await client.send(1)


def between(
    before: dict[int, tuple[int, float]], after: dict[int, tuple[int, float]]
) -> dict[int, float]:
    """Mean seconds of the batches that ran meanwhile, of sizes that were seen often enough."""
    found = {}
    for size, (count, seconds) in after.items():
        count_before, seconds_before = before.get(size, (0, 0.0))
        if count - count_before >= OFTEN:
            found[size] = (seconds - seconds_before) / (count - count_before)
    return dict(sorted(found.items()))


async def loaded(client: Client, rate: float, length_s: float, seed: int) -> list[float]:
    """Latencies of requests that arrive at random, from the moment each was due."""
    source, found, tasks = random.Random(seed), list[float](), set[asyncio.Task[None]]()
    began_s = time.perf_counter()
    due_s = 0.0

    async def one(at_s: float) -> None:
        await client.send(1)
        found.append(time.perf_counter() - began_s - at_s)

    while (due_s := due_s + source.expovariate(rate)) < length_s:
        await asyncio.sleep(max(0.0, due_s - (time.perf_counter() - began_s)))
        task = asyncio.create_task(one(due_s))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    await asyncio.gather(*tasks)
    return found


async def rounds(port: int, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Every share of the full rate once a round, each right after a batch was measured."""
    from tfdyno.model.serving.queue import full_rate_per_s, load_at, service_times

    found = []
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:
        client = Client(session, port)
        await service_s(client)
        full = 0.0
        for number in range(options.rounds):
            for share in SHARES:
                before, beyond = await service_s(client)
                full = full or full_rate_per_s(service_times(before))
                counts = await client.batches()
                times = await loaded(client, share * full, options.length_s, number * 100 + 1)
                seen = between(counts, await client.batches())
                after, beyond_after = await service_s(client)
                mean = {size: (before[size] + after[size]) / 2 for size in before if size in after}
                times_s = service_times(mean)[: options.limit]
                load = load_at(times_s, share * full, options.delay_s)
                own_s = service_times(mean | seen)[: options.limit]
                own = load_at(own_s, len(times) / options.length_s, options.delay_s)
                over_s = (beyond + beyond_after) / 2
                row = {
                    "round": number, "share": share, "rate_per_s": share * full,
                    "requests": len(times), "beyond_s": over_s,
                    "service_s": mean, "seen_s": seen, "load_average": os.getloadavg()[0],
                    "measured_p50_s": float(np.percentile(times, 50)),
                    "measured_p99_s": float(np.percentile(times, 99)),
                    "predicted_p50_s": load and load.p50_s + over_s,
                    "predicted_p99_s": load and load.p99_s + over_s,
                    "own_p50_s": own and own.p50_s + over_s,
                    "own_p99_s": own and own.p99_s + over_s,
                }  # fmt: skip
                print(json.dumps(row), file=sys.stderr, flush=True)
                found.append(row)
    return found


def main() -> None:
    """Serve in a child, load it here."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=18400)
    parser.add_argument("--limit", type=int, default=16)
    parser.add_argument("--delay-s", type=float, default=0.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--length-s", type=float, default=12.0)
    parser.add_argument("--device-s", type=float, nargs=2, default=(0.0, 0.0))
    parser.add_argument("--serve", action="store_true")
    options = parser.parse_args()
    if options.serve:
        serve(options)
        return
    words = [sys.executable, str(Path(__file__)), "--serve", "--port", str(options.port),
             "--limit", str(options.limit), "--delay-s", str(options.delay_s),
             "--device-s", *map(str, options.device_s)]  # fmt: skip
    libraries = os.pathsep.join([sysconfig.get_config_var("LIBDIR"),
                                 *filter(None, [os.environ.get("LD_LIBRARY_PATH")])])  # fmt: skip
    environment = {**os.environ, "LD_LIBRARY_PATH": libraries, "TF_CPP_MIN_LOG_LEVEL": "2"}
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as child:
        assert child.stdin
        assert child.stdout
        while (line := child.stdout.readline()) and line.strip() != "ready":
            pass
        try:
            print(json.dumps(asyncio.run(rounds(options.port, options)), indent=1))
        finally:
            child.stdin.close()


if __name__ == "__main__":
    main()
