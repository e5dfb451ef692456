"""NVIDIA Triton around a model: its start, what it is told of each signature, and its end."""

from __future__ import annotations

import contextlib
import functools
import http.client
import os
import re
import sysconfig
import threading
import time
import traceback
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import ToolError
from tfdyno.core.messages.serve import SignatureFacts
from tfdyno.process.failure import first_line
from tfdyno.serving.address import connection, host_and_port
from tfdyno.serving.front.wire import FAULT, LONGEST_REASON

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tfdyno.core.base.untyped import Tensor, Value
    from tfdyno.core.messages.serve import ServedBatching
    from tfdyno.serving.model.saved import Arrays, Signature

SHARED_MEMORY = Path("/dev/shm")
DEFAULT = "serving_default"
RESTRICTED = ["shared-memory", "model-repository", "trace", "logging"]
LOOK_S = 0.05
"""How often it is looked whether Triton answers; PyTriton by itself looks once a second."""
LONGEST_NAME = 32
"""The longest name of a model in Triton: PyTriton makes sockets of it, whose paths hold 107
characters."""
EXIT_S = 8
"""How long Triton may take for what is in flight."""


@contextlib.contextmanager
def triton(address: str, scratch: Path) -> Iterator[Any]:
    """Run Triton at the given address, ended with the block; its folder is the scratch one.

    It opens nothing else: no gRPC, no metrics.
    """
    _let_triton_find_python()
    from pytriton.triton import Triton, TritonConfig, TritonLifecyclePolicy, TritonSecurityConfig

    host, port = host_and_port(address)
    config = TritonConfig(
        http_address=host, http_port=port, allow_grpc=False, allow_metrics=False,
        exit_timeout_secs=EXIT_S, log_verbose=0,
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


def start(server: Value, address: str, over: threading.Event) -> None:
    """Start Triton and wait until it answers; told to end, or when it has ended, no longer."""
    done = threading.Event()
    errors: list[Exception] = []

    def run() -> None:
        try:
            while not _answers(address) and not over.is_set():
                time.sleep(LOOK_S)
            # What ``connect`` does after its own look, which knows no sockets.
            server._model_manager.setup_models()
        except Exception as error:
            errors.append(error)
        done.set()

    server._run_server()  # what ``run`` does first: in this thread, at whose end Triton ends too
    threading.Thread(target=run, daemon=True).start()
    while not done.wait(LOOK_S):
        if over.is_set():
            return
        if not server._triton_server.is_alive():
            raise ToolError("Triton did not start", why=_why(server))
    if errors:
        raise ToolError("Triton did not start", why=_why(server) or str(errors[0]))
    for block in SHARED_MEMORY.glob(f"pytrtion{os.getpid()}-*"):
        block.chmod(0o600)  # requests lie in it, and Triton lets every user read it


def _answers(address: str) -> bool:
    """Return whether Triton has all models; without PyTriton's pause of a second a look."""
    asked = connection(address, timeout_s=1.0)
    try:
        asked.request("GET", "/v2/health/ready")
        return asked.getresponse().status == HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        asked.close()


def _why(server: Value) -> str:
    """Return the last error in Triton's log."""
    lines = str(server._triton_server.logs()).splitlines()
    errors = [line for line in lines if "failed" in line or "error" in line.lower()]
    told = [line for line in errors if "failed to load" in line] or errors[-1:]
    return re.sub(r"^.*?\] ", "", told[0]).strip('"') if told else ""


def _let_triton_find_python() -> None:
    """Make Triton's Python the one that runs this, whatever else the system has.

    Triton's stub loads ``libpython3.x.so`` by name; another one of the same version does not fit
    the standard library of this one ('RLock' has no '_recursion_count').
    """
    own = sysconfig.get_config_var("LIBDIR") or ""
    given = os.environ.get("LD_LIBRARY_PATH", "")
    os.environ["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [own, given]))


def bind(
    server: Value,
    signatures: dict[str, Signature],
    loaded: dict[str, Signature],
    name: str,
    batching: ServedBatching,
) -> dict[str, SignatureFacts]:
    """Give every signature to Triton as a model; what each is called and takes."""
    described = {}
    main = DEFAULT if DEFAULT in signatures else next(iter(signatures))
    short = re.sub(r"[^A-Za-z0-9._-]", "-", name)[:LONGEST_NAME]
    for position, (key, one) in enumerate(signatures.items()):
        triton_model = short if key == main else f"{short}.{position}"
        _bind_one(server, one, triton_model, batching)
        described[key] = describe(one, triton_model)
    for key in loaded.keys() - signatures.keys():  # the same function by another name
        described[key] = described[main]
    if len(signatures) == 1:
        described.setdefault(DEFAULT, described[main])
    return described


def bind_known(
    server: Value,
    described: Mapping[str, SignatureFacts],
    batching: ServedBatching,
    call: Callable[[str, Arrays], Arrays],
) -> None:
    """Give signatures to Triton that were described before, while their model is loaded."""
    from tfdyno.serving.model.saved import Signature

    bound = set()
    for name, facts in described.items():
        if facts.triton_model in bound:
            continue
        bound.add(facts.triton_model)
        one = Signature(
            name=name,
            inputs=facts.inputs,
            outputs=facts.outputs,
            call=functools.partial(call, name),
            unbatched="" if facts.batched else "as before",
        )
        _bind_one(server, one, facts.triton_model, batching)


def _bind_one(server: Value, one: Signature, triton_model: str, batching: ServedBatching) -> None:
    import numpy as np
    from pytriton.model_config import DynamicBatcher, ModelConfig, Tensor

    # Triton takes no tensor that is one number per sample: then only the front puts them together.
    has_sizes = all(len(each.shape or ()) > 1 for each in (*one.inputs, *one.outputs))
    batched = not one.unbatched and has_sizes
    config = ModelConfig(
        batching=batched,
        max_batch_size=batching.max_batch_size if batched else 1,
        # The front has waited already. What comes while a call runs goes together all the same.
        batcher=DynamicBatcher(max_queue_delay_microseconds=0),
    )
    server.bind(
        model_name=triton_model,
        infer_func=_answering(one),
        inputs=[_tensor(each, batched=batched) for each in one.inputs],
        outputs=[
            *(_tensor(each, batched=batched) for each in one.outputs),
            Tensor(name=FAULT, dtype=np.bytes_, shape=(1,) if batched else (-1, 1)),
        ],
        config=config,
        strict=False,
    )


def _tensor(tensor: Tensor, *, batched: bool) -> Value:
    import numpy as np
    from pytriton.model_config import Tensor

    dtype = np.bytes_ if tensor.dtype == "bytes" else np.dtype(tensor.dtype).type
    shape = tensor.shape if tensor.shape is not None else (None,)
    sizes = shape[1:] if batched else shape
    return Tensor(name=tensor.name, dtype=dtype, shape=tuple(size or -1 for size in sizes))


def describe(one: Signature, triton_model: str) -> SignatureFacts:
    """Return a signature as the front reads it."""
    return SignatureFacts(
        triton_model=triton_model,
        inputs=one.inputs,
        outputs=one.outputs,
        batched=not one.unbatched,
    )


def _answering(one: Signature) -> Value:
    """Return what Triton calls with the requests that it has put together; answers in their order.

    It never raises: Triton knows one error for all requests of a call, and PyTriton 0.7 answers no
    call any more after 40 errors.
    """

    def answer(requests: Sequence[Any]) -> list[Arrays]:
        if not one.unbatched and len(requests) > 1:
            with contextlib.suppress(Exception):
                return _together(one, requests)
        return [_alone(one, dict(request.data)) for request in requests]

    return answer


def _together(one: Signature, requests: Sequence[Any]) -> list[Arrays]:
    """Make one call for all requests."""
    import numpy as np

    rows = [len(next(iter(request.data.values()))) for request in requests]
    together = {
        each.name: np.concatenate([request.data[each.name] for request in requests])
        for each in one.inputs
    }
    ends = np.cumsum(rows)[:-1]
    parts = {key: np.split(value, ends) for key, value in one.call(together).items()}
    return [{key: value[i] for key, value in parts.items()} for i in range(len(requests))]


def _alone(one: Signature, arrays: Arrays) -> Arrays:
    """Return the answer to one request, or zeros and in one line the reason why there is none."""
    import numpy as np

    from tfdyno.serving.model.saved import made_up

    try:
        return one.call(arrays)
    except Exception as error:
        traceback.print_exc()  # to the log of the model process
        reason = f"{type(error).__name__}: {first_line(error)}"[:LONGEST_REASON].encode()
    rows = 1 if one.unbatched else len(next(iter(arrays.values())))
    return {**made_up(one.outputs, rows, 1), FAULT: np.full((rows, 1), reason, object)}
