"""Made-up models without TensorFlow: which of them may answer several samples in one call."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tfdyno.serving.model.rows import mixes_rows
from tfdyno.serving.model.saved import Arrays, Signature, Tensor

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Value

ALONE = ""
BESIDE = "y of one sample depends on the samples beside it"
SHAPELESS = "y does not have one row per sample"
Compute = Callable[[Any], Any]
WEIGHTS = np.random.default_rng(1).normal(size=(4, 5))


def judged(
    compute: Compute,
    dtype: str = "float32",
    sizes: tuple[int, ...] = (4,),
    *,
    is_short: bool = False,
) -> str:
    def call(arrays: Arrays) -> Arrays:
        return {"y": np.asarray(compute(arrays["x"]))}

    tensors = (Tensor(name="x", dtype=dtype, shape=(None, *sizes)),)
    signature = Signature(name="s", inputs=tensors, outputs=(), call=call, is_short=is_short)
    return mixes_rows(signature, 1)


def looked_up(rows: int) -> Compute:
    """A table of so many rows, which raises for a number beyond it."""
    return lambda x: np.arange(rows)[x]


def widest(x: Value) -> Value:
    """Texts as long as the longest of the batch, as a tokenizer pads them."""
    words = [text.split() for text in x[:, 0]]
    most = max(map(len, words))
    return np.array([[*map(len, row), *[0] * (most - len(row))] for row in words])


@pytest.mark.parametrize(
    ("compute", "expected"),
    [
        (lambda x: x @ WEIGHTS, ALONE),
        (lambda x: x - x.mean(axis=0), BESIDE),
        (lambda x: (x - x.mean(axis=0)) * 1e9 + 5e9, BESIDE),
        (lambda x: x / np.abs(x).max(initial=1e-9), BESIDE),
        (lambda x: np.arange(len(x))[:, None], BESIDE),
        (lambda x: x[::-1], BESIDE),
        (lambda x: x[x[:, 0] >= 0], SHAPELESS),
        (lambda x: x.sum(), SHAPELESS),
        (lambda x: np.repeat(x, np.maximum(x[:, 0], 1).round().astype(int), axis=0), SHAPELESS),
        (lambda x: np.log(x + 1e-9 * len(x)), ALONE),
        (lambda x: (x * (1 + 2e-3 * len(x))).astype(np.float32), ALONE),  # other kernels
    ],
)
def test_samples_may_go_together_where_each_gets_the_answer_it_would_get_alone(
    compute: Compute, expected: str
) -> None:
    assert judged(compute) == expected


def test_floats_of_16_bits_may_be_further_off() -> None:
    def rounded(x: Value) -> Value:
        return x * (1 + 1e-2 * len(x))

    assert judged(rounded) == BESIDE
    assert judged(rounded, is_short=True) == ALONE


def test_a_model_that_answers_the_same_sample_differently_is_judged_by_its_shapes() -> None:
    random = np.random.default_rng(1)
    assert judged(lambda x: x + random.normal(size=x.shape)) == ALONE
    assert judged(lambda x: (x + random.normal(size=x.shape)).sum()) == SHAPELESS


def positive(x: Value) -> Value:
    if (x < 0).any():
        raise ValueError("a number below 0")
    return x - x.mean(axis=0)


def numbers(x: Value) -> Value:
    values = np.array([float(text or b"0") for text in x[:, 0]])
    return values - values.mean()


@pytest.mark.parametrize(
    ("compute", "dtype", "sizes", "expected"),
    [
        (looked_up(2), "int64", (4,), ALONE),
        (lambda x: looked_up(2)(x) - looked_up(2)(x).max(axis=0), "int32", (1,), BESIDE),
        (lambda x: x ^ x.any(axis=0), "bool", (8,), BESIDE),
        (lambda x: x // 2, "uint8", (2, 2), ALONE),
        (widest, "bytes", (1,), BESIDE),
        (numbers, "bytes", (1,), BESIDE),
        (positive, "float32", (4,), BESIDE),
    ],
)
def test_values_are_tried_that_the_model_takes(
    compute: Compute, dtype: str, sizes: tuple[int, ...], expected: str
) -> None:
    assert judged(compute, dtype, sizes) == expected


def test_a_model_that_takes_no_made_up_value_is_judged_by_its_shapes() -> None:
    def only_zeros(x: Value) -> Value:
        if x.any():
            raise ValueError("not a picture")
        return x

    assert judged(only_zeros) == ALONE


def test_samples_that_fail_only_together_are_not_put_together() -> None:
    def jealous(x: Value) -> Value:
        if len(x) > 1 and x.any():
            raise ValueError("one at a time")
        return x

    with pytest.raises(ValueError, match="one at a time"):
        judged(jealous)
