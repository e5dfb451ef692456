"""The process of one served version: the model, and NVIDIA Triton with dynamic batching around it.

It reads one line of JSON on standard input and prints one on standard output when it answers, or
when it cannot. SIGTERM and the end of standard input end it after what is in flight. Everything
that other code prints goes to standard error.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import sys
import sysconfig
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from tfdyno.core.errors import TfdynoError, ToolError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tfdyno.runtime.serve_model import Arrays, Signature

LOOPBACK = "127.0.0.1"
DEFAULT = "serving_default"
KERAS_NAME = "serve"
"""What Keras calls the function that it exports as ``serving_default`` too."""
RESTRICTED = ["shared-memory", "model-repository", "trace", "logging"]
MONITOR_S = 0.2
LONGEST_NAME = 32
"""Of a model in Triton: PyTriton makes sockets of it, whose paths hold 107 characters."""
EXIT_S = 8
"""How long Triton may take for what is in flight."""


def main() -> int:
    """Serve until told to end; 2 for a model that cannot be served, 3 for a server that failed."""
    events = _own_output()
    over = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: over.set())
    request = json.loads(sys.stdin.readline() or "{}")
    if not request:
        return 0
    threading.Thread(target=_watch_input, args=(over,), daemon=True).start()
    try:
        _serve(request, events, over)
    except TfdynoError as error:
        words = {"what": error.what, "why": error.why, "remedy": error.remedy}
        kind = "usage" if isinstance(error, UsageError) else "tool"
        _tell(events, {"event": "failed", "kind": kind, **words})
        return error.exit_code
    finally:
        shutil.rmtree(request["scratch"], ignore_errors=True)  # whoever gave it may be gone
    return 0


def _own_output() -> TextIO:
    """Keep standard output for events; what Triton and TensorFlow print goes to standard error."""
    own = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return own


def _watch_input(over: threading.Event) -> None:
    """The end of the pipe from the supervisor means that nobody needs this process any more."""
    with contextlib.suppress(ValueError, OSError):
        while os.read(0, 4096):
            pass
    over.set()


def _tell(events: TextIO, event: dict[str, Any]) -> None:
    with contextlib.suppress(BrokenPipeError):
        events.write(json.dumps(event) + "\n")
        events.flush()


def _serve(request: dict[str, Any], events: TextIO, over: threading.Event) -> None:
    scratch = Path(request["scratch"])
    began_s = time.monotonic()
    _settle_tensorflow(request)
    from tfdyno.runtime import serve_model

    loaded = serve_model.load(Path(request["model"]), scratch)
    if over.is_set():
        return
    signatures = {
        name: _judged(serve_model.check_sizes(loaded[name]), request["max_batch_size"])
        for name in _names(loaded)
    }
    batching = _batching(signatures, request)
    for one in signatures.values():
        _warm_up(one, int(batching["max_batch_size"]))
    with _triton(request, scratch) as server:
        described = _bind(server, signatures, loaded, request["name"], batching)
        _run(server, over)
        if over.is_set():
            return
        ports = {key: request[key] for key in ("http_port", "grpc_port", "metrics_port")}
        _tell(events, {
            "event": "ready", **ports, "signatures": described, "batching": batching,
            "load_s": round(time.monotonic() - began_s, 3),
        })  # fmt: skip
        while not over.wait(MONITOR_S):
            if not server.is_alive():
                raise ToolError("Triton ended", why="its log says why")


def _settle_tensorflow(request: dict[str, Any]) -> None:
    """Before TensorFlow starts: how many threads it may use."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ["KERAS_BACKEND"] = "tensorflow"
    import tensorflow as tf

    if threads := request.get("threads_intra"):
        tf.config.threading.set_intra_op_parallelism_threads(threads)
    for gpu in tf.config.list_physical_devices("GPU"):
        # A reload has two versions on the card at once: none may take all of its memory.
        tf.config.experimental.set_memory_growth(gpu, True)


def _names(loaded: dict[str, Signature]) -> list[str]:
    """The signatures that differ: Keras exports the same function by two names."""
    default, keras = loaded.get(DEFAULT), loaded.get(KERAS_NAME)
    is_twin = (
        default and keras and (default.inputs, default.outputs) == (keras.inputs, keras.outputs)
    )
    return [name for name in loaded if not (is_twin and name == KERAS_NAME)]


def _judged(signature: Signature, max_batch_size: int) -> Signature:
    """The signature with the reason why it cannot be batched, where trying it shows one."""
    from dataclasses import replace

    from tfdyno.runtime.serve_model import fitting_free_size, mixes_rows

    if signature.unbatched:
        return signature
    if max_batch_size == 1:
        return replace(signature, unbatched="the largest batch is 1")
    free, _ = fitting_free_size(signature)
    if not free:
        return signature  # there is nothing to try it with
    try:
        why = mixes_rows(signature, free)
    except Exception as error:
        from tfdyno.runtime.failure import first_line

        why = f"two samples at once fail: {first_line(error)}"
    return replace(signature, unbatched=why) if why else signature


def _batching(signatures: dict[str, Signature], request: dict[str, Any]) -> dict[str, Any]:
    """How many requests are put together and how long the first waits for the others."""
    batching = {
        "max_batch_size": request["max_batch_size"],
        "max_delay_ms": request["max_delay_ms"],
        "reason": "",
        "unbatched": {name: one.unbatched for name, one in signatures.items() if one.unbatched},
    }
    main = signatures.get(DEFAULT) or next(iter(signatures.values()))
    if not request.get("p99_ms") or main.unbatched:
        return batching
    from tfdyno.model.serving_batching import choose
    from tfdyno.runtime.serve_model import fitting_free_size, latency_s, powers_of_two

    free, why = fitting_free_size(main)
    if not free:
        raise UsageError("--p99-ms cannot be met for sure", why=f"made-up input fails: {why}",
                         remedy="give --max-batch and --max-delay-ms")  # fmt: skip
    measured = {
        size: latency_s(main, free, size) for size in powers_of_two(request["max_batch_size"])
    }
    chosen = choose(measured, request["p99_ms"] / 1000, request.get("requests_per_s"))
    return {
        **batching,
        "max_batch_size": chosen.max_batch_size,
        "max_delay_ms": chosen.max_delay_s * 1000,
        "reason": chosen.reason,
        "latency_s_by_batch": {str(size): value for size, value in measured.items()},
    }


def _warm_up(signature: Signature, max_batch_size: int) -> None:
    """Let TensorFlow do now what it does at the first call on each batch size."""
    from tfdyno.runtime.serve_model import fitting_free_size, made_up, powers_of_two

    free, why = fitting_free_size(signature)
    if not free:
        print(f"{signature.name} is not warmed up: {why}", file=sys.stderr)
        return
    for size in [1] if signature.unbatched else powers_of_two(max_batch_size):
        signature.call(made_up(signature.inputs, size, free))


@contextlib.contextmanager
def _triton(request: dict[str, Any], scratch: Path) -> Iterator[Any]:
    """Triton on loopback, ended with the block; its own folder is the scratch folder."""
    _let_triton_find_python()
    from pytriton.triton import Triton, TritonConfig, TritonLifecyclePolicy, TritonSecurityConfig

    config = TritonConfig(
        http_address=LOOPBACK, http_port=request["http_port"],
        grpc_address=LOOPBACK, grpc_port=request["grpc_port"],
        metrics_address=LOOPBACK, metrics_port=request["metrics_port"],
        allow_gpu_metrics=False, exit_timeout_secs=EXIT_S, log_verbose=0,
    )  # fmt: skip
    security = TritonSecurityConfig(restricted_endpoints=RESTRICTED)
    # Otherwise Triton keeps the models in a folder of its own below /tmp, which stays after a kill.
    policy = TritonLifecyclePolicy(local_model_store=True)
    server = Triton(
        config=config, workspace=scratch / "t", security_config=security,
        triton_lifecycle_policy=policy,
    )  # fmt: skip
    try:
        yield server
    except TimeoutError as error:
        raise ToolError("Triton did not start", why=str(error), remedy="its log says why") from None
    finally:
        with contextlib.suppress(Exception):
            server.stop()


def _run(server: Any, over: threading.Event) -> None:  # noqa: ANN401
    """Start Triton and wait until it answers; told to end, or when it has ended, no longer."""
    done = threading.Event()
    errors: list[Exception] = []

    def run() -> None:
        try:
            server.connect()
        except Exception as error:
            errors.append(error)
        done.set()

    server._run_server()  # what ``run`` does first: in this thread, at whose end Triton ends too
    threading.Thread(target=run, daemon=True).start()
    while not done.wait(MONITOR_S):
        if over.is_set():
            return
        if not server._triton_server.is_alive():
            raise ToolError("Triton did not start", why=_why(server))
    if errors:
        raise ToolError("Triton did not start", why=_why(server) or str(errors[0]))


def _why(server: Any) -> str:  # noqa: ANN401
    """The last error in Triton's log."""
    lines = str(server._triton_server.logs()).splitlines()
    errors = [line for line in lines if "failed" in line or "error" in line.lower()]
    told = [line for line in errors if "failed to load" in line] or errors[-1:]
    return re.sub(r"^.*?\] ", "", told[0]).strip('"') if told else ""


def _let_triton_find_python() -> None:
    """Triton's Python has to be the one that runs this, whatever else the system has.

    Triton's stub loads ``libpython3.x.so`` by name; another one of the same version does not fit
    the standard library of this one ('RLock' has no '_recursion_count').
    """
    own = sysconfig.get_config_var("LIBDIR") or ""
    given = os.environ.get("LD_LIBRARY_PATH", "")
    os.environ["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [own, given]))


def _bind(
    server: Any,  # noqa: ANN401
    signatures: dict[str, Signature],
    loaded: dict[str, Signature],
    name: str,
    batching: dict[str, Any],
) -> dict[str, dict[str, Any]]:
    """Give every signature to Triton as a model; what each is called and takes."""
    described = {}
    main = DEFAULT if DEFAULT in signatures else next(iter(signatures))
    short = re.sub(r"[^A-Za-z0-9._-]", "-", name)[:LONGEST_NAME]
    for position, (key, one) in enumerate(signatures.items()):
        triton_model = short if key == main else f"{short}.{position}"
        _bind_one(server, one, triton_model, batching)
        described[key] = _described(one, triton_model)
    for key in loaded.keys() - signatures.keys():  # the same function by another name
        described[key] = described[main]
    if len(signatures) == 1:
        described.setdefault(DEFAULT, described[main])
    return described


def _bind_one(server: Any, one: Signature, triton_model: str, batching: dict[str, Any]) -> None:  # noqa: ANN401
    from pytriton.model_config import DynamicBatcher, ModelConfig

    # Triton takes no tensor that is one number per sample: then only the front puts them together.
    has_sizes = all(len(each.shape or ()) > 1 for each in (*one.inputs, *one.outputs))
    batched = not one.unbatched and has_sizes
    delay_us = int(batching["max_delay_ms"] * 1000)
    config = ModelConfig(
        batching=batched,
        max_batch_size=int(batching["max_batch_size"]) if batched else 1,
        batcher=DynamicBatcher(max_queue_delay_microseconds=delay_us),
    )
    server.bind(
        model_name=triton_model,
        infer_func=_answering(one),
        inputs=[_tensor(each, batched=batched) for each in one.inputs],
        outputs=[_tensor(each, batched=batched) for each in one.outputs],
        config=config,
        strict=False,
    )


def _tensor(tensor: Any, *, batched: bool) -> Any:  # noqa: ANN401
    import numpy as np
    from pytriton.model_config import Tensor

    dtype = np.bytes_ if tensor.dtype == "bytes" else np.dtype(tensor.dtype).type
    shape = tensor.shape if tensor.shape is not None else (None,)
    sizes = shape[1:] if batched else shape
    return Tensor(name=tensor.name, dtype=dtype, shape=tuple(size or -1 for size in sizes))


def _described(one: Signature, triton_model: str) -> dict[str, Any]:
    def tensors(them: Sequence[Any]) -> list[dict[str, Any]]:
        return [{"name": t.name, "dtype": t.dtype, "shape": t.shape} for t in them]

    return {
        "triton_model": triton_model,
        "inputs": tensors(one.inputs),
        "outputs": tensors(one.outputs),
        "batched": not one.unbatched,
    }


def _answering(one: Signature) -> Any:  # noqa: ANN401
    """What Triton calls with the requests that it has put together; answers in their order."""
    import numpy as np

    def answer(requests: Sequence[Any]) -> list[Arrays]:
        if one.unbatched or len(requests) == 1:
            return [one.call(dict(request.data)) for request in requests]
        rows = [len(next(iter(request.data.values()))) for request in requests]
        together = {
            each.name: np.concatenate([request.data[each.name] for request in requests])
            for each in one.inputs
        }
        ends = np.cumsum(rows)[:-1]
        parts = {key: np.split(value, ends) for key, value in one.call(together).items()}
        return [{key: value[i] for key, value in parts.items()} for i in range(len(requests))]

    return answer


if __name__ == "__main__":
    code = main()
    sys.stderr.flush()
    # TensorFlow's and PyTriton's threads are not waited for: what was in flight is answered.
    os._exit(code)
