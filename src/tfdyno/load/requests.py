"""The requests of a load test: bodies made from a model's own metadata, or from the user's data."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.units import MIB
from tfdyno.load.server import TensorFacts

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tfdyno.core.measure.load_url import LoadUrl

MOST_BODIES = 64
MOST_BYTES = 64 * MIB
"""The most bytes of all bodies together: big inputs get fewer different ones."""
Arrays = dict[str, np.ndarray]
_TO_KSERVE = {
    "float32": "FP32", "float64": "FP64", "float16": "FP16", "int8": "INT8", "int16": "INT16",
    "int32": "INT32", "int64": "INT64", "uint8": "UINT8", "uint16": "UINT16", "uint32": "UINT32",
    "uint64": "UINT64", "bool": "BOOL", "string": "BYTES",
}  # fmt: skip
_GIVE_DATA = "give real ones with --data FILE.npz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """One request's body and how many rows its answer must have; 0: unknown."""

    data: bytes
    rows: int


def made_bodies(
    url: LoadUrl, inputs: Sequence[TensorFacts], *, rows: int, seed: int
) -> tuple[Body, ...]:
    """Make requests with random inputs by the metadata: floats in 0–1, whole numbers 0 or 1.

    Raises:
        UsageError: An input has text, or a size that only the user knows.
    """
    if not inputs:
        raise UsageError(f"{url.model} has no inputs in its metadata", remedy=_GIVE_DATA)
    draw = np.random.default_rng(seed)
    first = _body(url, inputs, _random(inputs, rows, draw), rows)
    count = max(1, min(MOST_BODIES, MOST_BYTES // max(1, len(first.data))))
    more = (_body(url, inputs, _random(inputs, rows, draw), rows) for _ in range(count - 1))
    return (first, *more)


def given_bodies(
    url: LoadUrl, inputs: Sequence[TensorFacts], path: Path, *, rows: int
) -> tuple[Body, ...]:
    """Make requests from the user's file: arrays, or bodies as they are.

    Args:
        url: Where they go.
        inputs: Of the model, as its metadata has them; empty: it has none.
        path: ``.npz`` (an array an input, rows first) or ``.json`` (a body, or a list of bodies).
        rows: Of a request made of arrays.

    Raises:
        UsageError: The file cannot be read, or does not fit the model.
    """
    if path.suffix == ".json":
        return _json_bodies(url, path)
    arrays = _arrays(path)
    names = {one.name for one in inputs} or set(arrays)
    if set(arrays) != names:
        raise UsageError(
            f"{path} has arrays {', '.join(sorted(arrays)) or 'none'}",
            why=f"the model takes {', '.join(sorted(names))}",
            remedy="save them under these names with numpy.savez",
        )
    known = list(inputs) or [
        TensorFacts(name=name, dtype=str(value.dtype), shape=(-1, *value.shape[1:]))
        for name, value in arrays.items()
    ]
    arrays = {one.name: _fitting(one, arrays[one.name], path) for one in known}
    counts = {len(value) for value in arrays.values()}
    if len(counts) != 1 or 0 in counts:
        raise UsageError(f"the arrays of {path} have {sorted(counts)} rows",
                         remedy="give as many of each, at least one")  # fmt: skip
    return _sliced(url, known, arrays, rows)


def _sliced(
    url: LoadUrl, inputs: Sequence[TensorFacts], arrays: Arrays, rows: int
) -> tuple[Body, ...]:
    """Return rows of the arrays in order, from the start again where they end."""
    total = len(next(iter(arrays.values())))
    found: list[Body] = []
    size = 0
    while len(found) < max(1, min(MOST_BODIES, -(-total // rows))) and size < MOST_BYTES:
        at = [(len(found) * rows + row) % total for row in range(rows)]
        found.append(_body(url, inputs, {name: value[at] for name, value in arrays.items()}, rows))
        size += len(found[-1].data)
    return tuple(found)


def _arrays(path: Path) -> Arrays:
    try:
        with np.load(path, allow_pickle=False) as file:
            if isinstance(file, np.ndarray):
                raise UsageError(f"{path} holds one array without a name",
                                 remedy="save it with numpy.savez(FILE, NAME=array)")  # fmt: skip
            return {name: file[name] for name in file.files}
    except UsageError:
        raise
    except OSError as error:
        raise UsageError(f"cannot read {path}", why=error.strerror or str(error)) from None
    except Exception as error:  # zip, header or dtype: numpy has no common error
        raise UsageError(f"{path} is no .npz file of plain arrays", why=str(error)) from None


def _fitting(one: TensorFacts, value: np.ndarray, path: Path) -> np.ndarray:
    """Return the array as the input takes it; raises ``UsageError`` where it cannot."""
    wanted = one.shape[1:]
    fits = value.ndim == len(one.shape) and all(
        size in (-1, given) for size, given in zip(wanted, value.shape[1:], strict=True)
    )
    if not fits:
        raise UsageError(f"{one.name} of {path} has shape {list(value.shape)}",
                         why=f"the model takes {one.words}")  # fmt: skip
    if one.dtype == "string":
        return value.astype(str)
    if value.dtype.kind not in "biuf":
        raise UsageError(f"{one.name} of {path} is {value.dtype}",
                         why=f"the model takes {one.dtype}")  # fmt: skip
    return value.astype("float32" if one.dtype == "bfloat16" else one.dtype)


def _random(inputs: Sequence[TensorFacts], rows: int, draw: np.random.Generator) -> Arrays:
    found: Arrays = {}
    for one in inputs:
        free = [size for size in one.shape[1:] if size < 0]
        if free or not one.shape or one.dtype == "string":
            why = "it is text" if one.dtype == "string" else "its size is free"
            raise UsageError(f"no input can be made up for {one.words}", why=why, remedy=_GIVE_DATA)
        shape = (rows, *one.shape[1:])
        found[one.name] = (
            draw.random(shape, dtype=np.float32).round(4)
            if "float" in one.dtype
            else draw.integers(0, 2, shape).astype(one.dtype)
        )
    return found


def _body(url: LoadUrl, inputs: Sequence[TensorFacts], arrays: Arrays, rows: int) -> Body:
    make = _instances if url.route == "tensorflow-serving" else _tensors
    return Body(data=json.dumps(make(inputs, arrays), separators=(",", ":")).encode(), rows=rows)


def _instances(inputs: Sequence[TensorFacts], arrays: Arrays) -> dict[str, Any]:
    """Write TensorFlow Serving's row form: one input bare, several by name."""
    lists = {one.name: _plain(arrays[one.name]) for one in inputs}
    if len(lists) == 1:
        return {"instances": next(iter(lists.values()))}
    rows = zip(*lists.values(), strict=True)
    return {"instances": [dict(zip(lists, row, strict=True)) for row in rows]}


def _tensors(inputs: Sequence[TensorFacts], arrays: Arrays) -> dict[str, Any]:
    """Write KServe v2's form, flat."""
    return {
        "inputs": [
            {
                "name": one.name,
                "datatype": _TO_KSERVE.get(one.dtype, "FP32"),
                "shape": list(arrays[one.name].shape),
                "data": _plain(arrays[one.name].ravel()),
            }
            for one in inputs
        ]
    }


def _plain(value: np.ndarray) -> list[Any]:
    """Write lists with the shortest numbers that read back the same, as a client would send."""
    if value.dtype.kind == "f" and value.dtype.itemsize < 8:
        short = np.array([float(str(x)) for x in value.ravel()]).reshape(value.shape)
        return list(short.tolist())
    return list(value.tolist())


def _json_bodies(url: LoadUrl, path: Path) -> tuple[Body, ...]:
    try:
        raw = json.loads(path.read_bytes())
    except OSError as error:
        raise UsageError(f"cannot read {path}", why=error.strerror or str(error)) from None
    except ValueError as error:
        raise UsageError(f"{path} is not JSON", why=str(error)) from None
    bodies = raw if isinstance(raw, list) else [raw]
    keys = ("instances", "inputs") if url.route == "tensorflow-serving" else ("inputs",)
    if not bodies or not all(isinstance(b, dict) and any(k in b for k in keys) for b in bodies):
        raise UsageError(f"{path} holds no request", why=f"it needs the key {' or '.join(keys)}",
                         remedy="give one body, or a list of bodies")  # fmt: skip
    return tuple(Body(data=json.dumps(b, separators=(",", ":")).encode(), rows=_rows(b))
                 for b in bodies)  # fmt: skip


def _rows(body: dict[str, Any]) -> int:
    instances = body.get("instances")
    if isinstance(instances, list):
        return len(instances)
    inputs = body.get("inputs")
    if isinstance(inputs, list) and inputs and isinstance(inputs[0], dict):
        shape = inputs[0].get("shape")
        if isinstance(shape, list) and shape and isinstance(shape[0], int):
            return shape[0]
    return 0
