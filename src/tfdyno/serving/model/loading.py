"""A model on its way to be served: loaded, checked against what is known of it, and warmed up."""

from __future__ import annotations

import os
import sys
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.messages.serve import Known, ServedBatching, ServeModel
    from tfdyno.serving.model.saved import Arrays, Signature

LOOK_S = 0.05


class Loading:
    """A model on its way, in a thread, of which is known what it will be."""

    def __init__(self, request: ServeModel, known: Known) -> None:
        """Begin nothing yet."""
        self._request, self._described, self._batching = request, known.signatures, known.batching
        self.signatures: dict[str, Signature] = {}
        self._error: Exception | None = None
        self._done = threading.Event()

    def start(self) -> None:
        """Begin; it does not keep the process from ending."""
        threading.Thread(target=self._run, daemon=True).start()

    def wait(self, over: threading.Event) -> None:
        """Wait until it is there, or ``over``; raises what went wrong."""
        while not self._done.wait(LOOK_S):
            if over.is_set():
                return
        if self._error:
            raise self._error

    def call(self, name: str, arrays: Arrays) -> Arrays:
        """Return what Triton calls for a signature."""
        self._done.wait()
        return self.signatures[name].call(arrays)

    def warm_up_rest(self) -> None:
        """Try the batch sizes that were not tried yet."""
        for one in self._distinct():
            warm_up(one, sizes(one, self._batching)[1:-1])

    def _run(self) -> None:
        try:
            self.signatures = loaded(self._request)
            self._check()
            for one in self._distinct():
                tried = sizes(one, self._batching)
                warm_up(one, list(dict.fromkeys([tried[0], tried[-1]])))
        except Exception as error:
            self._error = error
        self._done.set()

    def _distinct(self) -> list[Signature]:
        """Return one signature per Triton model, without batches where it takes none."""
        names = {facts.triton_model: name for name, facts in reversed([*self._described.items()])}
        return [
            self.signatures[name]
            if self._described[name].batched
            else replace(self.signatures[name], unbatched="as before")
            for name in names.values()
        ]

    def _check(self) -> None:
        """Check again: the files may have been replaced in the same instant."""
        from tfdyno.serving.model.binding import describe

        default = next(iter(self.signatures.values()))
        for name, facts in self._described.items():
            one = self.signatures.setdefault(name, default)
            found = describe(one, facts.triton_model)
            if (found.inputs, found.outputs) != (facts.inputs, facts.outputs):
                raise ToolError(f"the signature {name} is another than before")


def loaded(request: ServeModel) -> dict[str, Signature]:
    """Return the signatures, every rank known."""
    _settle_tensorflow(request.threads_intra)
    from tfdyno.serving.model import saved as serve_model

    found = serve_model.load(request.model, request.scratch)
    return {name: serve_model.check_sizes(one) for name, one in found.items()}


def _settle_tensorflow(threads: int | None) -> None:
    """Set, before TensorFlow starts, how many threads it may use."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ["KERAS_BACKEND"] = "tensorflow"
    import tensorflow as tf

    if threads:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
    for gpu in tf.config.list_physical_devices("GPU"):
        # A reload has two versions on the card at once: none may take all of its memory.
        tf.config.experimental.set_memory_growth(gpu, True)


def sizes(signature: Signature, batching: ServedBatching) -> list[int]:
    """Return the batch sizes that are tried."""
    from tfdyno.serving.model.saved import powers_of_two

    return [1] if signature.unbatched else list(powers_of_two(batching.max_batch_size))


def warm_up(signature: Signature, batches: Sequence[int]) -> str:
    """Let TensorFlow do now what it does at the first call on each batch size.

    Returns:
        Why the signature does not answer made-up input; empty: it does, or there is none.
    """
    from tfdyno.serving.model.saved import fitting_free_size, made_up

    free, why = fitting_free_size(signature) if batches else (0, "")
    if why:
        print(f"{signature.name} is not warmed up: {why}", file=sys.stderr)
    for size in batches if free else ():
        signature.call(made_up(signature.inputs, size, free))
    return why
