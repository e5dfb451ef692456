"""An export against the model it was made from: outputs, classes, and time of a call in turns."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import keras
import numpy as np
import tensorflow as tf

from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.core.base.interval import Interval
from tfdyno.core.base.process_limits import allowed
from tfdyno.core.deploy.export import Accuracy, Difference, Latency
from tfdyno.core.messages.export import SourceModel
from tfdyno.model.measure.statistics import bootstrap_median, median
from tfdyno.process.failure import first_line
from tfdyno.runtime.export import huggingface
from tfdyno.runtime.export.compare import Judge, filled
from tfdyno.runtime.export.data import Arrays, Data
from tfdyno.runtime.export.source import Source, load

if TYPE_CHECKING:
    from pathlib import Path

Run = Callable[[Arrays], Arrays]
CHUNK = 64
"""Rows in a call while outputs are compared."""
BATCHES = (1, 32)
ROUNDS = 15
ROUND_S = 0.03
"""The time of calls on one side in a round."""
MOST_S = 8.0
"""The longest time for the rounds of one batch size, unless these are ``LEAST_ROUNDS``."""
LEAST_ROUNDS = 5
_CONFIDENCE_RATIO = 0.95


@dataclass(frozen=True, kw_only=True)
class Runner:
    """Something that gives outputs for inputs, by name."""

    run: Run
    words: str


def original(source: Source) -> Runner:
    """Return the model itself, as a TensorFlow graph."""
    function = source.function()

    def run(inputs: Arrays) -> Arrays:
        found = function(*(tf.constant(inputs[s.name], s.dtype) for s in source.specs))
        return {name: value.numpy() for name, value in found.items()}

    return Runner(run=_fitted(run, source), words=f"TensorFlow {tf.__version__}")


def exported(kind: str, path: Path, source: Source) -> Runner:
    """Return what was written, run by what it is made for.

    Raises:
        ToolError: It cannot be loaded: the converter wrote something damaged.
    """
    try:
        found = _RUNNERS[kind](path, source)
    except Exception as error:
        raise ToolError(f"the {kind} that was written cannot be loaded",
                        why=first_line(error)) from None  # fmt: skip
    return replace(found, run=_fitted(found.run, source))


def _fitted(run: Run, source: Source) -> Run:
    """Fit any number of rows up to a chunk, where the signature has a fixed batch as well."""
    size = fixed_batch(source)
    return filled(run, size) if size else run


def _saved_model(path: Path, source: Source) -> Runner:
    loaded = tf.saved_model.load(str(path))
    signature = loaded.signatures["serving_default"]

    def run(inputs: Arrays) -> Arrays:
        given = {s.name: tf.constant(inputs[s.name], s.dtype) for s in source.specs}
        return {name: value.numpy() for name, value in signature(**given).items()}

    return Runner(run=run, words=f"TensorFlow {tf.__version__}")


def _keras(path: Path, source: Source) -> Runner:
    asked = SourceModel(kind="keras_file", path=str(path), reference=str(path))
    again = load(asked, {s.name: _row(s) for s in source.specs})
    names = dict(zip((s.name for s in again.specs), (s.name for s in source.specs), strict=True))
    runner = original(again)
    run = runner.run
    outputs = list(source.outputs)

    def renamed(inputs: Arrays) -> Arrays:
        found = run({name: inputs[own] for name, own in names.items()})
        return dict(zip(outputs, found.values(), strict=True))

    return Runner(run=renamed, words=f"Keras {keras.__version__}")


def _row(spec: tf.TensorSpec) -> np.ndarray:
    shape = [1 if size is None else size for size in spec.shape]
    return np.zeros(shape, object if spec.dtype == tf.string else spec.dtype.as_numpy_dtype)


def _onnx(path: Path, _source: Source) -> Runner:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_outputs()]
    taken = {one.name for one in session.get_inputs()}  # an input without use is left out

    def run(inputs: Arrays) -> Arrays:
        given = {name: array for name, array in inputs.items() if name in taken}
        return dict(zip(names, session.run(None, given), strict=True))

    return Runner(run=run, words=f"onnxruntime {onnxruntime.__version__}")


def _tensorrt(path: Path, source: Source) -> Runner:
    found = _onnx(path / "model.onnx", source)
    return Runner(run=found.run, words=f"{found.words}, not TensorRT")


def _litert(path: Path, source: Source) -> Runner:
    """Order by position what the file and the signature name otherwise."""
    from tfdyno.runtime.litert.run import LiteRT
    from tfdyno.runtime.litert.signature import input_specs

    threads = len(allowed())
    loaded = LiteRT(path, threads=threads)
    own = [spec.name for spec in source.specs]
    taken = list(input_specs(source.model))
    outputs = list(source.outputs)

    def run(inputs: Arrays) -> Arrays:
        given = inputs if set(taken) == set(own) else _renamed(inputs, own, taken)
        found = loaded.outputs(given)
        return found if set(found) == set(outputs) else _renamed(found, list(found), outputs)

    return Runner(run=run, words=f"LiteRT, {threads} threads")


def _renamed(arrays: Arrays, names: list[str], others: list[str]) -> Arrays:
    return {other: arrays[name] for name, other in zip(names, others, strict=True)}


def _huggingface(path: Path, source: Source) -> Runner:
    run, words = huggingface.read_again(path, source)
    return Runner(run=run, words=words)


_RUNNERS: dict[str, Callable[[Path, Source], Runner]] = {
    "savedmodel": _saved_model,
    "keras": _keras,
    "onnx": _onnx,
    "tensorrt": _tensorrt,
    "huggingface": _huggingface,
    "litert": _litert,
    "litert-fp16": _litert,
    "litert-int8": _litert,
}


def compare(
    source: Source, before: Runner, after: Runner, data: Data
) -> tuple[tuple[Difference, ...], Accuracy | None]:
    """Return all rows through both.

    Raises:
        ToolError: The export does not run, or gives other names or shapes.
    """
    output, truth = judged(source, data)
    judge = Judge(tuple(source.outputs), output, truth, amounts(source, data, output))
    for first, inputs in data.batches(chunk(source)):
        judge.add(first, before.run(inputs), _run(after, inputs))
    return judge.differences(), judge.accuracy()


def reader_dtypes(source: Source) -> tuple[str, ...]:
    """Return types to which KerasHub's reader rounds weights, whatever the folder holds."""
    rounds = huggingface.READER_DTYPES.get(type(source.model.backbone).__name__)
    return (rounds,) if rounds else ()


def _run(runner: Runner, inputs: Arrays) -> Arrays:
    try:
        return runner.run(inputs)
    except Exception as error:
        raise ToolError("the export does not run", why=first_line(error)) from None


def chunk(source: Source) -> int:
    """Return rows in one call: those of the signature where it has a fixed batch."""
    return fixed_batch(source) or CHUNK


def fixed_batch(source: Source) -> int:
    """Return the number of rows that the signature takes; 0: any."""
    return min((int(s.shape[0]) for s in source.specs if s.shape.rank and s.shape[0]), default=0)


def check_classes(source: Source, data: Data, text: str, *, needed: bool) -> None:
    """Refuse classes that cannot be judged by, before anything is converted.

    Args:
        source: The model.
        data: Its rows.
        text: What ``--data`` names.
        needed: Whether a gate asks for the accuracy.

    Raises:
        UsageError: They fit several outputs, or none where they are needed.
    """
    if not judged(source, data)[0] and needed:
        raise UsageError("--max-accuracy-drop needs classes that fit an output",
                         why=f"{text} has none",
                         remedy="give y with one class for each row")  # fmt: skip


def judged(source: Source, data: Data) -> tuple[str, np.ndarray]:
    """Return the output that classes are known for, and the classes; empty where none are.

    Raises:
        UsageError: Nothing says which of several outputs they are of.
    """
    unnamed = data.classes.get("")
    found = {
        name: truth
        for name, spec in source.outputs.items()
        if (truth := _truth(data.classes.get(name, unnamed), spec)) is not None
    }
    if unnamed is not None and len(found) > 1:
        names = list(found)
        raise UsageError(
            f"the classes fit {len(found)} outputs: {', '.join(names)}",
            why="nothing says which of them they are of",
            remedy=f"call them by the output: y_{names[-1]} in a file, "
            f"{{'{names[-1]}': y}} from a function",
        )
    return next(iter(found.items()), ("", np.zeros(0)))


def _truth(given: np.ndarray | None, spec: tf.TensorSpec) -> np.ndarray | None:
    """Return the targets as classes that an output can name; None: they are none of it."""
    rank = spec.shape.rank
    if given is None or rank is None:
        return None
    if spec.dtype.is_integer and given.ndim == rank:  # the output is the class itself
        return given.astype(int) if np.array_equal(given, np.round(given)) else None
    if not spec.dtype.is_floating or rank < 2:
        return None
    last = spec.shape[-1]
    if given.ndim == rank and given.shape[-1] == last != 1:
        return np.argmax(given, axis=-1) if _are_shares(given) else None  # one-hot
    if given.ndim == rank and given.shape[-1] == 1:
        given = given[..., 0]
    fits = given.ndim == rank - 1 and _are_classes(given, last)
    return given.astype(int) if fits else None


def amounts(source: Source, data: Data, output: str) -> tuple[str, ...]:
    """Find outputs whose targets are no classes: amounts, as of a regression.

    Args:
        source: The model.
        data: Its rows.
        output: The one that classes are known for.
    """
    if "" in data.classes:  # one array, for the first output unless it was classes of another
        return () if output else tuple(source.outputs)[:1]
    return tuple(name for name in source.outputs if name in data.classes and name != output)


def _are_shares(values: np.ndarray) -> bool:
    """Return whether each row is one-hot, or shares of one as soft labels are."""
    return bool(np.all(values >= 0) and np.allclose(values.sum(axis=-1), 1.0, atol=1e-3))


def _are_classes(values: np.ndarray, scores: int | None) -> bool:
    """Return whether they number an output's scores: 12.0 is no class of one score or of ten."""
    most = max(2, scores or 2**31) - 1
    inside = values.size and values.min() >= 0 and values.max() <= most
    return bool(inside and np.array_equal(values, np.round(values)))


def latencies(source: Source, before: Runner, after: Runner, data: Data) -> tuple[Latency, ...]:
    """Time a call of both, in turns, at batch 1 and 32; where the batch is fixed, at that."""
    fixed = fixed_batch(source)
    sizes = (fixed,) if fixed else BATCHES
    return tuple(_latency(before.run, after.run, _repeated(data, size), size) for size in sizes)


def _repeated(data: Data, size: int) -> Arrays:
    return {name: np.resize(array, (size, *array.shape[1:])) if array.dtype != object
            else np.concatenate([array] * math.ceil(size / len(array)))[:size]
            for name, array in data.inputs.items()}  # fmt: skip


def _latency(before: Run, after: Run, inputs: Arrays, size: int) -> Latency:
    """Time two sides that alternate who begins; the first calls, which prepare, are not counted."""
    longest_s = 0.0
    for side in (before, after):
        side(inputs)
        longest_s = max(longest_s, _seconds(side, inputs, 2))
    calls = max(1, min(50, math.ceil(ROUND_S / max(longest_s, 1e-6))))
    round_s = 2 * calls * longest_s
    rounds = max(LEAST_ROUNDS, min(ROUNDS, int(MOST_S / max(round_s, 1e-6))))
    taken: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds):
        for which in (0, 1) if number % 2 == 0 else (1, 0):
            taken[which].append(_seconds((before, after)[which], inputs, calls))
    return Latency(
        batch_size=size,
        rounds=rounds,
        calls=calls,
        original_s=_interval(taken[0]),
        exported_s=_interval(taken[1]),
        speedup_ratio=_interval([a / b for a, b in zip(*taken, strict=True)]),
    )


def _seconds(run: Run, inputs: Arrays, calls: int) -> float:
    began_s = time.perf_counter()
    for _ in range(calls):
        run(inputs)
    return (time.perf_counter() - began_s) / calls


def _interval(samples: list[float]) -> Interval:
    middle = median(samples)
    low, high = bootstrap_median([[one] for one in samples], confidence_ratio=_CONFIDENCE_RATIO)
    return Interval(low=min(low, middle), best=middle, high=max(high, middle))
