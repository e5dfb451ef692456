from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tfdyno.serving.front.table import Refused, TensorSpec
from tfdyno.serving.front.tensor import read_flat, read_tensor

DTYPES = ["float16", "float32", "float64", "int8", "int32", "int64", "uint8", "uint64"]


def face(dtype: str, *shape: int | None) -> TensorSpec:
    return TensorSpec(name="x", dtype=dtype, shape=shape)


def refused(text: bytes, wanted: TensorSpec) -> str:
    with pytest.raises(Refused) as error:
        read_tensor(text, wanted)
    assert error.value.code == 400
    return error.value.text


@given(
    st.sampled_from(DTYPES).flatmap(
        lambda dtype: hnp.arrays(
            dtype,
            hnp.array_shapes(max_dims=4, max_side=4),
            elements={"allow_nan": False, "allow_infinity": False} if "float" in dtype else None,
        )
    ),
    st.sampled_from([None, 1, (",\n ", ": ")]),
    st.data(),
)
def test_what_json_holds_is_read_exactly(
    array: np.ndarray[Any, Any], layout: object, data: st.DataObject
) -> None:
    separators = layout if isinstance(layout, tuple) else None
    text = json.dumps(array.tolist(), separators=separators).encode()
    shape = tuple(data.draw(st.sampled_from([None, size])) for size in array.shape)
    read = read_tensor(text, face(str(array.dtype), *shape))
    np.testing.assert_array_equal(read, array)
    assert read.dtype == array.dtype


VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
)


@given(VALUE, st.sampled_from([*DTYPES, "bool", "string"]), st.integers(0, 3))
def test_any_json_gives_an_array_of_the_signature_or_a_refusal(
    value: object, dtype: str, rank: int
) -> None:
    text = json.dumps(value).encode()
    if "Infinity" in text.decode():
        return  # no JSON; refused with the body
    wanted = face(dtype, *[None] * rank)
    try:
        array = read_tensor(text, wanted)
    except Refused as error:
        code = error.code
    else:
        code = 200
    if code != 200:
        assert code == 400
        return
    assert array.ndim == rank
    assert array.dtype == wanted.numpy
    if dtype not in ("string", "float16", "float32"):
        np.testing.assert_array_equal(array, np.array(value, dtype=wanted.numpy))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"[[1,2],[3]]", "x[1] is a list of 1 where its neighbours have 2"),
        (b"[[1,2],3]", "x[1] is no list where its neighbours have 2"),
        (b"[[1,true]]", "x[0][1] is true; the signature says float32"),
        (b'[["a",1]]', 'x[0][0] is "a"; the signature says float32'),
        (b"[[1,null]]", "x[0][1] is null"),
        (b"[[1,[2]]]", "x[0][1] is a list"),
        (b"[[1,2,3]]", "x has the shape [1, 3]; the signature says [any, 2]"),
        (b"[]", "x has the shape [0]"),
        (b"[[]]", "x has the shape [1, 0]"),
        (b"7", "x has the shape []"),
        (b"[[1e39,0]]", "too large for float32"),
        (b"[[1" + b"0" * 400 + b",0]]", "too large for float32"),
    ],
)
def test_what_does_not_fit_is_named_with_its_place(text: bytes, words: str) -> None:
    assert words in refused(text, face("float32", None, 2))


def test_whole_numbers_must_be_whole_and_in_range() -> None:
    wanted = face("int8", None)
    assert "outside the range of int8" in refused(b"[1,128]", wanted)
    assert "outside the range of int8" in refused(b"[-129]", wanted)
    assert "x[0] is 1.5; the signature says int8" in refused(b"[1.5]", wanted)
    assert read_tensor(b"[-128,127]", wanted).tolist() == [-128, 127]
    assert read_tensor(b"[18446744073709551615]", face("uint64", None)).tolist() == [2**64 - 1]
    assert "range" in refused(b"[18446744073709551616]", face("uint64", None))


def test_an_empty_innermost_list_of_one_is_not_taken_for_a_number() -> None:
    wanted = face("float32", None, 1)
    assert "empty" in refused(b"[[],[]]", wanted) or "shape" in refused(b"[[],[]]", wanted)
    assert "x[1] is a list of 0" in refused(b"[[1],[]]", wanted)


def test_strings_come_as_text_or_base64() -> None:
    wanted = face("string", None)
    read = read_tensor('["\u00e9",{"b64":"AAH/"}]'.encode(), wanted)
    assert read.tolist() == ["\u00e9".encode(), b"\x00\x01\xff"]
    assert "no base64" in refused(b'[{"b64":"A"}]', wanted)
    assert "neither a string" in refused(b'[{"b64":"AA==","more":1}]', wanted)


def test_truth_values_are_read_and_numbers_are_none() -> None:
    assert read_tensor(b"[[true],[false]]", face("bool", None, 1)).tolist() == [[True], [False]]
    assert "x[0] is 1" in refused(b"[1]", face("bool", None))


def test_a_flat_list_takes_its_shape_from_elsewhere() -> None:
    wanted = face("float32", None, 2)
    flat = read_flat(b"[1,2,3,4]", wanted, (2, 2))
    assert flat is not None
    assert flat.tolist() == [[1, 2], [3, 4]]
    assert read_flat(b"[1,2,3]", wanted, (2, 2)) is None
    assert read_flat(b"[[1,2],[3,4]]", wanted, (2, 2)) is None
    assert math.isclose(float(flat[1][1]), 4)
