"""The body of TensorFlow Serving's ``:predict`` -> arrays, and arrays -> its reply."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from tfdyno.serving.front.table import Refused, Signature, TensorSpec
from tfdyno.serving.front.tensor import Array, read_tensor

if TYPE_CHECKING:
    from collections.abc import Mapping

Arrays = dict[str, Array]
_SHORTEST = (7, 8, 9)
"""Digits that a float32 needs: 9 always tell it apart, 7 or 8 mostly."""


class Body(msgspec.Struct):
    """The keys of a request; what else it has is passed over, as TensorFlow Serving does."""

    instances: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    inputs: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    signature_name: str | None = None


_BODY = msgspec.json.Decoder(Body)
_NAMED = msgspec.json.Decoder(dict[str, msgspec.Raw])
_NAMED_ROWS = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])


def read_body(text: bytes) -> Body:
    """Read the outer object; its tensors stay text.

    Raises:
        Refused: 400 for what is no JSON object, and for both or neither form of tensors.
    """
    try:
        body = _BODY.decode(text)
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"JSON Parse error: {_told(error)}") from None
    if (body.instances is msgspec.UNSET) == (body.inputs is msgspec.UNSET):
        raise Refused(400, "Give either 'instances' (row format) or 'inputs' (column format)")
    return body


def read_inputs(body: Body, signature: Signature) -> Arrays:
    """Return the array of every input of the signature.

    Raises:
        Refused: 400 for names, types, shapes and numbers of rows that do not fit.
    """
    try:
        if isinstance(body.instances, msgspec.Raw):
            texts = _rows(bytes(body.instances), signature)
        else:
            assert isinstance(body.inputs, msgspec.Raw)
            texts = _columns(bytes(body.inputs), signature)
        arrays = {face.name: read_tensor(texts[face.name], face) for face in signature.inputs}
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"JSON Parse error: {_told(error)}") from None
    check_rows(arrays, signature)
    return arrays


def check_rows(arrays: Mapping[str, Array], signature: Signature) -> None:
    """Refuse inputs whose first dimensions differ."""
    counts = {len(array) for array in arrays.values()} if signature.rows else set()
    if len(counts) > 1:
        told = ", ".join(f"{name} {len(array)}" for name, array in arrays.items())
        raise Refused(400, f"The inputs have different numbers of rows: {told}")


def _rows(text: bytes, signature: Signature) -> dict[str, bytes]:
    text = text.strip()
    if not text.startswith(b"["):
        raise Refused(400, "'instances' is no list")
    inner = text[1:].lstrip()
    if inner.startswith(b"]"):
        raise Refused(400, "'instances' is empty")
    if inner.startswith(b"{"):
        rows = _NAMED_ROWS.decode(text)
        if not all(set(row) == {"b64"} for row in rows):
            return _joined(rows, signature)
    return _only(text, signature, "every instance must be an object with the keys")


def _joined(rows: list[dict[str, msgspec.Raw]], signature: Signature) -> dict[str, bytes]:
    for index, row in enumerate(rows):
        _check_names(row, signature, f"instances[{index}]")
    names = [face.name for face in signature.inputs]
    return {name: b"[" + b",".join(row[name] for row in rows) + b"]" for name in names}


def _columns(text: bytes, signature: Signature) -> dict[str, bytes]:
    text = text.strip()
    if text.startswith(b"{"):
        named = _NAMED.decode(text)
        if set(named) != {"b64"}:
            _check_names(named, signature, "inputs")
            return {name: bytes(value) for name, value in named.items()}
    return _only(text, signature, "'inputs' must be an object with the keys")


def _only(text: bytes, signature: Signature, otherwise: str) -> dict[str, bytes]:
    if len(signature.inputs) != 1:
        names = ", ".join(face.name for face in signature.inputs)
        raise Refused(400, f"The model has several inputs: {otherwise} {names}")
    return {signature.inputs[0].name: text}


def _check_names(given: Mapping[str, object], signature: Signature, place: str) -> None:
    names = {face.name for face in signature.inputs}
    if set(given) != names:
        missing, unknown = sorted(names - set(given)), sorted(set(given) - names)
        told = [f"misses {', '.join(missing)}"] * bool(missing)
        told += [f"has unknown {', '.join(unknown)[:200]}"] * bool(unknown)
        raise Refused(400, f"{place} {' and '.join(told)}; the inputs are {', '.join(names)}")


def _told(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return str(error).split("\n", 1)[0][:300]


def listed(array: Array, face: TensorSpec) -> list[Any]:
    """Write an array as nested lists for JSON, floats with digits enough to tell them apart."""
    if face.dtype == "string":
        as_bytes = face.name.endswith("_bytes")
        texts = [_text_of(item, as_bytes=as_bytes) for item in array.ravel().tolist()]
        named = np.empty(len(texts), dtype=object)
        named[:] = texts
        return named.reshape(array.shape).tolist()
    if array.dtype.kind == "f" and array.dtype.itemsize < 8:
        return short_decimals(array.astype(np.float32)).tolist()
    return array.tolist()


def short_decimals(array: Array) -> Array:
    """Return the float64 values that are written shortly and are read back as the same float32."""
    exact = array.astype(np.float64)
    result, open_ = exact.copy(), np.isfinite(exact) & (exact != 0)
    if not open_.any():
        return result
    values, single = exact[open_], array[open_]
    exponents = np.floor(np.log10(np.abs(values)))
    found = values.copy()
    for digits in reversed(_SHORTEST):
        places = digits - 1 - exponents
        scale = 10.0 ** np.abs(places)
        with np.errstate(over="ignore", invalid="ignore"):
            short = np.where(places >= 0, np.rint(values * scale) / scale, 0)
            short = np.where(places < 0, np.rint(values / scale) * scale, short)
            found = np.where(short.astype(np.float32) == single, short, found)
    result[open_] = found
    return result


def _text_of(item: bytes | str, *, as_bytes: bool) -> str | dict[str, str]:
    data = item.encode() if isinstance(item, str) else item
    if not as_bytes:
        try:
            return data.decode()
        except UnicodeDecodeError:
            pass
    return {"b64": base64.b64encode(data).decode()}


def reply(lists: Mapping[str, list[Any]], *, rows: bool, finite: bool = True) -> bytes:
    """Write a reply's JSON: ``predictions`` in the row format, ``outputs`` in the column format.

    One output stands without its name, as TensorFlow Serving has it. Values that are not finite
    are written as it writes them: NaN, Infinity, -Infinity.

    Raises:
        Refused: 400 for the row format where the outputs do not have as many rows each.
    """
    only = next(iter(lists.values())) if len(lists) == 1 else None
    answer: dict[str, Any]
    if not rows:
        answer = {"outputs": lists if only is None else only}
    elif only is not None:
        answer = {"predictions": only}
    else:
        if len({len(each) if isinstance(each, list) else name for name, each in lists.items()}) > 1:
            told = (
                "The outputs have different numbers of rows: ask with 'inputs', the column format"
            )
            raise Refused(400, told)
        names = list(lists)
        answer = {
            "predictions": [
                dict(zip(names, values, strict=True))
                for values in zip(*lists.values(), strict=True)
            ]
        }
    return msgspec.json.encode(answer) if finite else json.dumps(answer).encode()
