"""Whether samples that go into one call get the answers that each would get alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tfdyno.serving.model.saved import made_up

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.serving.model.saved import Arrays, Signature

ROWS = 3
"""So many different samples are put together."""
SEED = 7
NOISE_RATIO = 1e-2
"""How far a float may be off, of the largest: other kernels for another batch, TF32 on a card."""
SHORT_NOISE_RATIO = 5e-2
"""The same where the model computes with floats of 16 bits."""
APART = 3.0
"""Between the means of the samples' floats: a threshold leaves some of them out."""
WORDS = (b"a", b"b c", b"d e f")
NUMBERS = (b"1", b"20", b"300")


def mixes_rows(signature: Signature, free: int) -> str:
    """Return why the answers of samples put together are not those of each alone; empty: they are.

    Shapes are compared on zeros, then values on random samples: one call on all against a call on
    each. A model that answers the same sample differently, or that takes none of the made-up
    values, is judged by its shapes alone.
    """
    for batch in (2, ROWS):  # two, as an output may happen to have as many rows
        for name, value in signature.call(made_up(signature.inputs, batch, free)).items():
            if value.ndim == 0 or value.shape[0] != batch:
                return _shapeless(name)
    for samples in _samples(signature, free):
        try:
            alone = [signature.call(_row(samples, at)) for at in range(ROWS)]
            again = signature.call(_row(samples, 0))
        except Exception:
            continue
        ratio = SHORT_NOISE_RATIO if signature.is_short else NOISE_RATIO
        if not all(_same(value, again[name], ratio) for name, value in alone[0].items()):
            return ""
        if why := _differs(signature.call(samples), alone, ratio):
            return why
    return ""


def _shapeless(name: str) -> str:
    return f"{name} does not have one row per sample"


def _differs(together: Arrays, alone: list[Arrays], ratio: float) -> str:
    """Return which output has another row in the call on all samples than in that on one."""
    for name, value in together.items():
        if any(len(one[name]) != 1 for one in alone) or len(value) != len(alone):
            return _shapeless(name)
        for at, one in enumerate(alone):
            if not _same(value[at : at + 1], one[name], ratio):
                return f"{name} of one sample depends on the samples beside it"
    return ""


def _same(one: np.ndarray, other: np.ndarray, ratio: float) -> bool:
    if one.shape != other.shape:
        return False
    if one.dtype.kind != "f" or not one.size:
        return bool(np.array_equal(one, other))
    finite = np.abs(one[np.isfinite(one)].astype(np.float64))
    noise = ratio * float(finite.max(initial=0.0))
    return bool(np.allclose(one.astype(np.float64), other, rtol=0, atol=noise, equal_nan=True))


def _row(samples: Arrays, at: int) -> Arrays:
    return {name: array[at : at + 1] for name, array in samples.items()}


def _samples(signature: Signature, free: int) -> Iterator[Arrays]:
    """Give different samples, one kind of values after another: a model may not take the first."""
    for fill in (_wide, _narrow):
        random = np.random.default_rng(SEED)
        zeros = made_up(signature.inputs, ROWS, free)
        yield {one.name: fill(random, one.dtype, zeros[one.name].shape) for one in signature.inputs}


def _wide(random: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return floats below, at and above zero, whole numbers as of an image, more and more words."""
    if dtype == "bytes":
        return _by_row(WORDS, shape)
    if dtype == "bool":
        return random.integers(0, 2, shape).astype(bool)
    if np.dtype(dtype).kind == "f":
        means = APART * (np.arange(ROWS) - ROWS // 2)
        return random.normal(means, size=shape[::-1]).T.astype(dtype)
    return random.integers(0, 100, shape).astype(dtype)


def _narrow(random: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return what a logarithm, a table of a few rows and a text read as a number take as well."""
    if dtype == "bytes":
        return _by_row(NUMBERS, shape)
    if np.dtype(dtype).kind == "f":
        return random.uniform(0.1, 0.9, shape).astype(dtype)
    bits = random.integers(0, 2, shape)
    bits[0], bits[1] = 0, 1  # a single one may else be the same in every sample
    return bits.astype(dtype)


def _by_row(texts: tuple[bytes, ...], shape: tuple[int, ...]) -> np.ndarray:
    array = np.empty(shape, object)
    for at in range(shape[0]):
        array[at] = texts[at]
    return array
