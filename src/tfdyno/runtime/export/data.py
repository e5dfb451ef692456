"""The inputs (and classes) that an export is compared on: the user's own, or seeded random ones."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from tfdyno.core.base.errors import UsageError
from tfdyno.process.failure import first_line, user_code
from tfdyno.runtime.workload.workloads import called

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Tensor, Value

RANDOM_ROWS = 64
TEXT_ROWS = 4
"""The same of a language model: each token of a row has a score for every word it knows."""
MASK = "padding_mask"
"""KerasHub's name of the input that tells which tokens are no padding."""
OPEN_SIZE = 16
"""The size that stands for one that the signature leaves open, in random inputs."""
CALIBRATION_ROWS = 256
MOST_ROWS = 100_000
"""The most rows of a data set: a stream without an end is not read to it."""
_INPUTS, _CLASSES, _TRAINING = ("x_test", "x", "x_val"), ("y_test", "y", "y_val"), "x_train"

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True, kw_only=True)
class Data:
    """Rows by the name of the input, and their classes by the name of the output."""

    inputs: Arrays
    classes: Arrays
    """The classes, under the empty name where there is one array, for the first output."""
    words: str
    calibration: Arrays
    """Rows of the training data where the file has some; else of ``inputs``."""
    calibration_words: str

    @property
    def rows(self) -> int:
        """How many there are."""
        return len(next(iter(self.inputs.values())))

    def first(self, rows: int) -> Data:
        """Take at most so many rows from the front."""
        return replace(self, inputs={name: array[:rows] for name, array in self.inputs.items()})

    def first_words(self, rows: int) -> str:
        """Return what ``first`` is, in words."""
        return self.words if self.rows <= rows else f"the first {rows:,} of {self.words}"

    def batches(self, size: int) -> Iterator[tuple[int, Arrays]]:
        """Give rows in order, at most ``size`` at once, each with the place of its first."""
        for first in range(0, self.rows, size):
            yield first, {name: array[first : first + size] for name, array in self.inputs.items()}


def read(text: str) -> tuple[Any, Any, Any]:
    """Read what ``--data`` names: inputs, classes or None, inputs of the training or None.

    Raises:
        UsageError: There is no such file or function, or it holds no inputs.
    """
    if text.endswith(".npz"):
        return _of_file(Path(text))
    x, y = _of_returned(called(text), text)
    return x, y, None


def example(x: Tensor) -> Arrays:
    """Return the first row by name, to build a model that was never called."""
    if isinstance(x, Mapping):
        return {str(name): np.asarray(value)[:1] for name, value in x.items()}
    if isinstance(x, tuple | list):
        return {f"input_{i}": np.asarray(value)[:1] for i, value in enumerate(x)}
    return {"": np.asarray(x)[:1]}


def fitted(
    given: tuple[Any, Any, Any], specs: tuple[tf.TensorSpec, ...], outputs: tuple[str, ...],
    text: str,
) -> Data:  # fmt: skip
    """Return the rows as the signature wants them.

    Raises:
        UsageError: A name, type or shape does not fit, or the numbers of rows differ.
    """
    x, y, training = given
    inputs = _named(x, specs, text)
    classes = _classes(y, outputs, text)
    rows = {len(array) for array in (*inputs.values(), *classes.values())}
    if len(rows) != 1 or 0 in rows:
        why = "inputs and classes have " + " and ".join(f"{n:,}" for n in sorted(rows)) + " rows"
        raise UsageError(f"the data of {text} does not fit together", why=why)
    seen = _named(training, specs, text) if training is not None else inputs
    held = {name: array[_spread(len(array))] for name, array in seen.items()}
    count = len(next(iter(held.values())))
    origin = "x_train" if training is not None else "the rows that it is judged on"
    return Data(
        inputs=inputs,
        classes=classes,
        words=f"{rows.pop():,} rows of {text}",
        calibration=held,
        calibration_words=f"{count:,} of {origin}",
    )


def _spread(rows: int) -> np.ndarray:
    """Take at most ``CALIBRATION_ROWS`` rows of the whole: data sorted by class has all."""
    return np.linspace(0, rows - 1, min(rows, CALIBRATION_ROWS)).round().astype(int)


def random(specs: tuple[tf.TensorSpec, ...], most: Mapping[str, int]) -> Data:
    """Draw seeded random rows of a signature.

    Args:
        specs: What is served takes.
        most: Where an input holds numbers of words: how many words there are.
    """
    draw = np.random.default_rng(0)
    fixed = {int(spec.shape[0]) for spec in specs if spec.shape.rank and spec.shape[0]}
    is_text = any(spec.name == MASK for spec in specs)
    rows = max(fixed, default=TEXT_ROWS if is_text else RANDOM_ROWS)
    inputs = {spec.name: _drawn(draw, spec, rows, most.get(spec.name, 2)) for spec in specs}
    words = f"{rows} random rows, seed 0"
    return Data(inputs=inputs, classes={}, words=words, calibration=inputs, calibration_words=words)


def _drawn(draw: np.random.Generator, spec: tf.TensorSpec, rows: int, most: int) -> np.ndarray:
    shape = (rows, *(OPEN_SIZE if size is None else size for size in spec.shape[1:]))
    if spec.name == MASK:
        return np.ones(shape, spec.dtype.as_numpy_dtype)
    if spec.dtype == tf.string:
        words = np.array(["a", "film", "good", "not", "the", "was"])
        return draw.choice(words, size=shape).astype(object)
    if spec.dtype == tf.bool:
        return draw.integers(0, 2, shape).astype(bool)
    if spec.dtype.is_integer:
        high = 256 if spec.dtype == tf.uint8 else most
        return draw.integers(0, high, shape).astype(spec.dtype.as_numpy_dtype)
    return draw.standard_normal(shape).astype(spec.dtype.as_numpy_dtype)


def _of_file(path: Path) -> tuple[Any, Any, Any]:
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise UsageError(f"there is no file {path}") from None
    except (OSError, ValueError, zipfile.BadZipFile, EOFError) as error:
        why = first_line(error)
        if "allow_pickle" in why:
            why = "it holds Python objects, which are not loaded"
        raise UsageError(f"cannot read {path}", why=why) from None
    x = next((arrays[name] for name in _INPUTS if name in arrays), None)
    y = next((arrays[name] for name in _CLASSES if name in arrays), None)
    classes = {n.removeprefix("y_"): a for n, a in arrays.items() if n.startswith("y_")}
    classes = {n: a for n, a in classes.items() if n not in ("test", "train", "val")}
    if x is None:
        others = {
            n: a for n, a in arrays.items() if n not in ("y", _TRAINING) and not n.startswith("y_")
        }
        x = {name.removeprefix("x_"): array for name, array in others.items()}
    if isinstance(x, dict) and not x:
        raise UsageError(f"{path} holds no inputs", why=f"it has {', '.join(arrays) or 'nothing'}",
                         remedy="name the arrays x and y, or x_NAME for each input")  # fmt: skip
    return x, y if y is not None else (classes or None), arrays.get(_TRAINING)


def _of_returned(found: Value, text: str) -> tuple[Any, Any]:
    if isinstance(found, tf.data.Dataset):
        return _of_dataset(found, text)
    if isinstance(found, Mapping) and {"x", "y"} >= set(found):
        return found.get("x"), found.get("y")
    if isinstance(found, tuple) and len(found) in (2, 3):
        return found[0], found[1]
    if found is None:
        raise UsageError(f"{text} returned nothing",
                         remedy="return x, (x, y) or a batched tf.data.Dataset")  # fmt: skip
    return found, None


def _of_dataset(dataset: tf.data.Dataset, text: str) -> tuple[Any, Any]:
    """Return all batches joined, at most ``MOST_ROWS`` rows."""
    parts, rows = [], 0
    with user_code(text):
        for element in dataset.as_numpy_iterator():
            pair = element if isinstance(element, tuple) else (element, None)
            parts.append(pair[:2])
            rows += len(tf.nest.flatten(pair[0])[0])
            if rows >= MOST_ROWS:
                break
    if not parts:
        raise UsageError(f"{text} gave no batch")
    joined = [_joined([part[i] for part in parts]) for i in range(2)]
    return joined[0], joined[1]


def _joined(parts: list[Any]) -> Value:
    if parts[0] is None:
        return None
    return tf.nest.map_structure(lambda *arrays: np.concatenate(arrays), *parts)


def _named(x: Tensor, specs: tuple[tf.TensorSpec, ...], text: str) -> Arrays:
    names = [spec.name for spec in specs]
    if isinstance(x, Mapping):
        given = {str(name): value for name, value in x.items()}
    elif isinstance(x, tuple | list) and len(specs) > 1:
        given = dict(zip(names, x, strict=False))
    else:
        given = {names[0]: x}
    missing = [name for name in names if name not in given]
    if missing:
        raise UsageError(f"{text} has no input '{missing[0]}'",
                         why=f"it has {', '.join(given) or 'none'}",
                         remedy=f"the model takes {', '.join(names)}")  # fmt: skip
    return {spec.name: _cast(np.asarray(given[spec.name]), spec, text) for spec in specs}


def _cast(array: np.ndarray, spec: tf.TensorSpec, text: str) -> np.ndarray:
    """Return the array in the type of the input where nothing is lost; raises ``UsageError``."""
    sizes = ",".join("any" if size is None else str(size) for size in spec.shape)
    wanted = f"{spec.dtype.name}[{sizes}]"
    got = f"{array.dtype.name}[{','.join(map(str, array.shape))}]"
    kinds = {"b": "b", "i": "iu", "u": "iu", "f": "fiu"}
    is_text = array.dtype.kind in "SUO"
    if spec.dtype == tf.string:
        fits = is_text
    else:
        kind = "f" if spec.dtype.is_floating else np.dtype(spec.dtype.as_numpy_dtype).kind
        fits = array.dtype.kind in kinds.get(kind, kind)
    open_batch = tf.TensorShape([None, *spec.shape[1:]]) if spec.shape.rank else spec.shape
    if not fits or not open_batch.is_compatible_with(array.shape):
        raise UsageError(f"{text} does not fit the input '{spec.name}'",
                         why=f"it has {got}, the model takes {wanted}")  # fmt: skip
    return array.astype(object) if is_text else array.astype(spec.dtype.as_numpy_dtype)


def _classes(y: Tensor, outputs: tuple[str, ...], text: str) -> Arrays:
    if y is None:
        return {}
    if isinstance(y, Mapping):
        found = {str(name): np.asarray(value) for name, value in y.items()}
        if unknown := set(found) - set(outputs):
            raise UsageError(f"{text} has classes for '{sorted(unknown)[0]}'",
                             remedy=f"the model's outputs are {', '.join(outputs)}")  # fmt: skip
        return found
    return {"": np.asarray(y)}
