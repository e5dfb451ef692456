"""Run a .tflite file by LiteRT: any number of samples in, plain floats out, and its time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from tfdyno.core.base.errors import UsageError
from tfdyno.runtime.litert.file import read

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from tfdyno.core.deploy.litert_graph import LitertTensor

    Array = NDArray[Any]

MOST_ROWS = 64
"""Samples that run at once: the memory of all intermediate values grows with them."""
WARM_CALLS = 5
_EXAMPLE_SEED = 20261123


class LiteRT:
    """A model that is loaded once and run as often as one likes."""

    def __init__(self, path: Path, threads: int = 1) -> None:
        """Load a file.

        Args:
            path: Of a .tflite file.
            threads: That its operators may use.

        Raises:
            UsageError: It is no such file, is damaged, or needs operators that LiteRT lacks.
        """
        from ai_edge_litert.interpreter import Interpreter

        self.path, self.graph = path, read(path)
        try:
            self.interpreter = Interpreter(str(path), num_threads=threads)
            self.interpreter.allocate_tensors()
        except (ValueError, RuntimeError) as error:
            raise _refusal(path, str(error)) from None

    def outputs(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Return what the model answers, under the names of its signature.

        Args:
            inputs: Arrays of real values, by the names of the signature, with a batch axis of the
                same length each. Where the file has a single input, its name may be another.

        Returns:
            Real values: integers of a quantised output are turned back into floats. In the order
            of their names, which for those that Keras numbers is the order of the model.

        Raises:
            UsageError: An input is missing, or its shape or type is not the model's.
        """
        given = self._by_name(inputs)
        for port in self.graph.inputs:
            _check_shape(given[port.name], self.graph.tensor(port), port.name)
        parts = [self._run(part) for part in self._parts(given)]
        made = {name: [part[name] for part in parts] for name in sorted(parts[0], key=_numbered)}
        joined = {n: np.concatenate(a) if len(a) > 1 else a[0] for n, a in made.items()}
        rows = len(next(iter(given.values())))
        return joined if self._open_batch() else {n: a[:rows] for n, a in joined.items()}

    def latency_s(self, inputs: Mapping[str, Array], seconds: float) -> list[float]:
        """Time single calls, one after the other, for so many seconds.

        A call sets the inputs, runs, and reads the outputs. The first calls are not counted.
        """
        prepared = self._prepare(next(self._parts(self._by_name(inputs))))
        for _ in range(WARM_CALLS):
            self._call(prepared)
        found: list[float] = []
        end = time.perf_counter() + seconds
        while not found or time.perf_counter() < end:
            before = time.perf_counter()
            self._call(prepared)
            found.append(time.perf_counter() - before)
        return found

    def example(self, rows: int = 1) -> dict[str, Array]:
        """Make up inputs: floats from 0 to 1, and zeros where integers stand for something."""
        random = np.random.default_rng(_EXAMPLE_SEED)
        return {p.name: _example(self.graph.tensor(p), rows, random) for p in self.graph.inputs}

    def _by_name(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        names = [port.name for port in self.graph.inputs]
        if len(names) == 1 and len(inputs) == 1:
            return {names[0]: np.asarray(next(iter(inputs.values())))}
        missing = [name for name in names if name not in inputs]
        if missing:
            raise UsageError(
                f"the input {missing[0]} is missing",
                why=f"{self.path.name} takes {', '.join(names)}",
            )
        return {name: np.asarray(inputs[name]) for name in names}

    def _open_batch(self) -> bool:
        return all(0 in self.graph.tensor(port).open_axes for port in self.graph.inputs)

    def _parts(self, given: dict[str, Array]) -> Iterator[dict[str, Array]]:
        """Cut the rows into portions that the model takes; the last is filled where it must be."""
        rows = min(len(array) if array.ndim else 1 for array in given.values())
        if rows == 0:
            raise UsageError("there is no sample to run", why="the batch axis has length 0")
        if self._open_batch():
            # An output without a batch axis belongs to all rows together.
            splits = all(0 in self.graph.tensor(port).open_axes for port in self.graph.outputs)
            size = MOST_ROWS if splits else rows
        else:
            shape = self.graph.tensor(self.graph.inputs[0]).shape
            size = shape[0] if shape else rows
        for start in range(0, rows, size):
            part = {name: array[start : start + size] for name, array in given.items()}
            yield part if self._open_batch() else {n: _filled(a, size) for n, a in part.items()}

    def _prepare(self, part: dict[str, Array]) -> dict[int, Array]:
        """Give the graph the shapes of these arrays; returns what is set at each call."""
        prepared = {}
        for port in self.graph.inputs:
            tensor = self.graph.tensor(port)
            array = _encoded(part[port.name], tensor, port.name)
            if tensor.open_axes:
                self.interpreter.resize_tensor_input(port.tensor, list(array.shape))
            prepared[port.tensor] = array
        self.interpreter.allocate_tensors()
        return prepared

    def _call(self, prepared: dict[int, Array]) -> list[Array]:
        for place, array in prepared.items():
            self.interpreter.set_tensor(place, array)
        self.interpreter.invoke()
        return [self.interpreter.get_tensor(port.tensor) for port in self.graph.outputs]

    def _run(self, part: dict[str, Array]) -> dict[str, Array]:
        try:
            made = self._call(self._prepare(part))
        except (ValueError, RuntimeError) as error:
            raise _refusal(self.path, str(error)) from None
        return {
            port.name: _decoded(array, self.graph.tensor(port))
            for port, array in zip(self.graph.outputs, made, strict=True)
        }


def _numbered(name: str) -> tuple[str, int]:
    """Order ``output_10`` after ``output_9``: as the model gives them."""
    text, _, number = name.rpartition("_")
    return (text, int(number)) if number.isdigit() else (name, 0)


def _refusal(path: Path, message: str) -> UsageError:
    last = next((line for line in reversed(message.splitlines()) if line.strip()), "").strip()
    if "flex" in message.lower() or "Select TensorFlow op" in message:
        return UsageError(
            f"{path} needs operators of TensorFlow that LiteRT does not have",
            why=last,
            remedy="export it again with tfdyno export --to litert, which names them by layer",
        )
    return UsageError(f"LiteRT cannot run {path}", why=last, remedy="export it again")


def _filled(array: Array, rows: int) -> Array:
    lacking = rows - len(array)
    return np.concatenate([array, np.repeat(array[-1:], lacking, axis=0)]) if lacking else array


def _check_shape(array: Array, tensor: LitertTensor, name: str) -> None:
    """Check all but the first axis, which is cut into portions that the model takes."""
    expected, free = tensor.shape, {0, *tensor.open_axes}
    fits = array.ndim == len(expected) and all(
        axis in free or size == expected[axis] for axis, size in enumerate(array.shape)
    )
    if not fits:
        words = ["any" if axis in free else str(size) for axis, size in enumerate(expected)]
        raise UsageError(
            f"the input {name} has the shape {list(array.shape)}",
            why=f"the model takes [{', '.join(words)}]",
        )


def _encoded(array: Array, tensor: LitertTensor, name: str) -> Array:
    """Write it in the model's type, quantised where integers stand for real numbers."""
    if tensor.dtype == "string":
        return array.astype(object)
    kind = np.dtype(tensor.dtype)
    if tensor.scale and array.dtype.kind == "f":
        limits = np.iinfo(kind)
        whole = np.rint(array / tensor.scale) + tensor.zero_point
        return np.clip(whole, limits.min, limits.max).astype(kind)
    if not np.can_cast(array.dtype, kind, casting="same_kind") and array.dtype.kind != "b":
        raise UsageError(f"the input {name} is {array.dtype}", why=f"the model takes {kind}")
    return np.ascontiguousarray(array.astype(kind))


def _decoded(array: Array, tensor: LitertTensor) -> Array:
    if not tensor.scale or array.dtype.kind == "f":
        return np.array(array)
    real = (array.astype(np.float32) - np.float32(tensor.zero_point)) * np.float32(tensor.scale)
    return np.asarray(real)


def _example(tensor: LitertTensor, rows: int, random: np.random.Generator) -> Array:
    open_batch = 0 in tensor.open_axes
    shape = (rows, *tensor.shape[1:]) if open_batch else tensor.shape
    if tensor.dtype == "string":
        return np.full(shape, b"", dtype=object)
    kind = np.dtype(tensor.dtype)
    if kind.kind == "f" or tensor.scale:
        return random.random(shape, dtype=np.float32)
    return np.zeros(shape, kind)
