"""Batches of steps on JAX: each is timed, and what is new of it is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tfdyno.runtime.diagnose.jax_batches import Batches, leaves

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.base.untyped import Value


def given(*lengths: int) -> Iterator[Value]:
    for length in lengths:
        yield np.zeros((4, length), np.float32), np.zeros(4, np.int64)


def test_each_batch_is_timed_also_where_there_is_none() -> None:
    ticks, waited = iter(range(100)), list[float]()
    batches = Batches(waited.append, lambda: float(next(ticks)))
    assert len(list(batches.watched(given(8, 8)))) == 2
    assert waited == [1.0, 1.0, 1.0]  # the third found the end


def test_a_batch_of_another_shape_is_told_once() -> None:
    batches = Batches(lambda _s: None, lambda: 0.0)
    told = []
    for _ in batches.watched(given(8, 8, 5, 8, 5, 6)):
        told.append(batches.differs)
    assert told[:2] == ["", ""]
    assert told[2] == "argument x: shape (4, 8) -> (4, 5)"
    assert told[3:5] == ["", ""]  # JAX has compiled for both
    assert told[5].startswith("argument x: shape (4, ")


def test_shapes_of_a_batch_are_kept_without_its_values() -> None:
    batches = Batches(lambda _s: None, lambda: 0.0)
    next(iter(batches.watched(given(8))))
    x, y = batches.last
    assert (x.shape, str(x.dtype)) == ((4, 8), "float32")
    assert str(y.dtype) == "int32"  # as JAX computes with it


def test_an_error_of_the_data_goes_on() -> None:
    def broken() -> Iterator[Value]:
        raise ValueError("planted")
        yield

    batches = Batches(lambda _s: None, lambda: 0.0)
    with pytest.raises(ValueError, match="planted"):
        batches.take(broken())


def test_a_missing_part_of_a_batch_is_no_array() -> None:
    assert len(leaves((np.zeros(3), None, {"a": np.zeros(2)}))) == 2
