"""The process of one served version: the model, and NVIDIA Triton with dynamic batching around it.

It reads one line of JSON on standard input and prints one on standard output when it answers, or
when it cannot. SIGTERM and the end of standard input end it after what is in flight. Everything
that other code prints goes to standard error.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TextIO

from tfdyno.core.base.errors import TfdynoError, ToolError, UsageError, failure_of
from tfdyno.core.messages.serve import (
    Failed,
    MeasuredBatching,
    ModelReady,
    ServedBatching,
    ServeModel,
    SignatureFacts,
)
from tfdyno.core.messages.wire import decode, encode, fields_of
from tfdyno.serving.model.loading import Loading, loaded, sizes, warm_up

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.messages.serve import Known, Said
    from tfdyno.serving.model.saved import Signature

DEFAULT = "serving_default"
KERAS_NAME = "serve"
"""What Keras calls the function that it exports as ``serving_default`` too."""
MONITOR_S = 0.2


def main() -> int:
    """Serve until told to end; 2 for a model that cannot be served, 3 for a server that failed."""
    events = _own_output()
    over = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: over.set())
    line = sys.stdin.readline()
    if not line:
        return 0
    request = decode(json.loads(line), ServeModel)
    threading.Thread(target=_watch_input, args=(over,), daemon=True).start()
    try:
        _serve(request, events, over)
    except TfdynoError as error:
        _tell(events, Failed(**fields_of(failure_of(error))))
        return error.exit_code
    finally:
        shutil.rmtree(request.scratch, ignore_errors=True)  # whoever gave it may be gone
    return 0


def _own_output() -> TextIO:
    """Keep standard output for events; what Triton and TensorFlow print goes to standard error."""
    own = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return own


def _watch_input(over: threading.Event) -> None:
    """End the process with the pipe from the supervisor: then nobody needs it any more."""
    with contextlib.suppress(ValueError, OSError):
        while os.read(0, 4096):
            pass
    over.set()


def _tell(events: TextIO, event: Said) -> None:
    with contextlib.suppress(BrokenPipeError):
        events.write(encode(event) + "\n")
        events.flush()


def _serve(request: ServeModel, events: TextIO, over: threading.Event) -> None:
    known = request.known
    serving = _known(request, known, over) if known else _new(request, over)
    with serving as server:
        if over.is_set():
            return
        said = ModelReady(
            address=request.address, signatures=server.described, batching=server.batching,
            unanswered=server.unanswered,
        )  # fmt: skip
        _tell(events, said)
        threading.Thread(target=server.afterwards, daemon=True).start()
        while not over.wait(MONITOR_S):
            if not server.triton.is_alive():
                raise ToolError("Triton ended", why="its log says why")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Serving:
    """Triton that answers, unless it was told to end before it did."""

    triton: Any
    described: Mapping[str, SignatureFacts]
    batching: ServedBatching
    afterwards: Callable[[], None] = lambda: None
    """What is left to do while requests are answered."""
    unanswered: tuple[str, ...] = ()
    """What signatures said that did not answer made-up input."""


@contextlib.contextmanager
def _new(request: ServeModel, over: threading.Event) -> Iterator[_Serving]:
    """Load and judge a model that nothing is known of yet, then start Triton."""
    from tfdyno.serving.model import binding as serve_binding

    found = loaded(request)
    signatures = {name: _judged(found[name]) for name in _names(found)}
    batching = _batching(signatures, request)
    unanswered = [warm_up(one, sizes(one, batching)) for one in signatures.values()]
    with serve_binding.triton(request.address, request.scratch) as server:
        described = serve_binding.bind(server, signatures, found, request.name, batching)
        serve_binding.start(server, request.address, over)
        described = _called(request.address, signatures, described, over)
        yield _Serving(triton=server, described=described, batching=batching,
                       unanswered=tuple(filter(None, unanswered)))  # fmt: skip


@contextlib.contextmanager
def _known(request: ServeModel, known: Known, over: threading.Event) -> Iterator[_Serving]:
    """Load a model that was served before while Triton starts.

    Before it answers, one sample and a full batch are tried; the sizes between follow afterwards.
    """
    from tfdyno.serving.model import binding as serve_binding

    described, batching = known.signatures, known.batching
    loading = Loading(request, known)
    # PyTriton is imported before TensorFlow is, in another thread: they share packages.
    with serve_binding.triton(request.address, request.scratch) as server:
        loading.start()
        serve_binding.bind_known(server, described, batching, loading.call)
        serve_binding.start(server, request.address, over)
        loading.wait(over)
        described = _called(request.address, loading.signatures, described, over)
        yield _Serving(
            triton=server, described=described, batching=batching, afterwards=loading.warm_up_rest
        )


def _names(loaded: dict[str, Signature]) -> list[str]:
    """Return the signatures that differ: Keras exports the same function by two names."""
    default, keras = loaded.get(DEFAULT), loaded.get(KERAS_NAME)
    is_twin = (
        default and keras and (default.inputs, default.outputs) == (keras.inputs, keras.outputs)
    )
    return [name for name in loaded if not (is_twin and name == KERAS_NAME)]


def _judged(signature: Signature) -> Signature:
    """Return the signature with the reason why it cannot be batched, where trying it shows one."""
    from tfdyno.serving.model.rows import mixes_rows
    from tfdyno.serving.model.saved import fitting_free_size

    if signature.unbatched:
        return signature
    free, _ = fitting_free_size(signature)
    if not free:
        return signature  # there is nothing to try it with
    try:
        why = mixes_rows(signature, free)
    except Exception as error:
        from tfdyno.process.failure import first_line

        why = f"samples put together fail: {first_line(error)}"
    return replace(signature, unbatched=why) if why else signature


def _batching(signatures: dict[str, Signature], request: ServeModel) -> ServedBatching:
    unbatched = _unbatched(signatures, request)
    main = signatures.get(DEFAULT) or next(iter(signatures.values()))
    if not request.p99_ms or main.unbatched:
        return ServedBatching(
            max_batch_size=request.max_batch_size,
            max_delay_ms=request.max_delay_ms,
            unbatched=unbatched,
        )
    from tfdyno.model.serving.batching import choose
    from tfdyno.serving.model.saved import fitting_free_size, latency_s, powers_of_two

    free, why = fitting_free_size(main)
    if not free:
        raise UsageError("--p99-ms cannot be met for sure", why=f"made-up input fails: {why}",
                         remedy="give --max-batch and --max-delay-ms")  # fmt: skip
    measured = {size: latency_s(main, free, size) for size in powers_of_two(request.max_batch_size)}
    beside_s = request.beside_s
    calls_s = {size: model_s + beside_s for size, model_s in measured.items()}
    chosen = choose(calls_s, request.p99_ms / 1000, request.requests_per_s)
    counted = f"; {beside_s * 1e3:.3g} ms of each call are for what is beside the model"
    return MeasuredBatching(
        max_batch_size=chosen.max_batch_size,
        max_delay_ms=chosen.max_delay_s * 1000,
        reason=f"{chosen.reason.rstrip('.')}{counted if beside_s else ''}.",
        holds=chosen.holds,
        unbatched=unbatched,
        latency_s_by_batch=measured,
    )


def _unbatched(signatures: dict[str, Signature], request: ServeModel) -> dict[str, str]:
    """Return why requests are not put together, by signature; those that are, are left out."""
    otherwise = "the largest batch is 1" if request.max_batch_size == 1 else ""
    reasons = {name: one.unbatched or otherwise for name, one in signatures.items()}
    return {name: why for name, why in reasons.items() if why}


def _called(
    address: str,
    signatures: dict[str, Signature],
    described: Mapping[str, SignatureFacts],
    over: threading.Event,
) -> dict[str, SignatureFacts]:
    """Return the description with the time of a call through Triton, whose first calls are slow."""
    from tfdyno.serving.model.first_calls import first_call_s

    found: dict[str, float] = {}
    for name, facts in described.items():
        model = facts.triton_model
        if name in signatures and model not in found and not over.is_set():
            found[model] = first_call_s(address, signatures[name], facts)
    return {
        name: replace(facts, call_s=found.get(facts.triton_model, 0.0))
        for name, facts in described.items()
    }


if __name__ == "__main__":
    code = main()
    sys.stderr.flush()
    # TensorFlow's and PyTriton's threads are not waited for: what was in flight is answered.
    os._exit(code)
