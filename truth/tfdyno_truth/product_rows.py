"""Measured matrix products, and what of their times is the benchmark's own."""

from __future__ import annotations

import csv
import functools
import gzip
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import numpy as np

from tfdyno.catalog.gpus import find
from tfdyno.core.choose.hardware import Gpu
from tfdyno.model.time.attention import Attentions
from tfdyno.model.time.products import Products
from tfdyno_truth.rows import TRUTH

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Keys = tuple[str, str]

FOLDER = TRUTH / "published"
AICONFIGURATOR, XLA, ATTENTION = "products.csv.gz", "products_xla.csv.gz", "attention.csv.gz"
GB300 = "gb300"
"""Of the measured cards the one that is not in the catalogue: a GB200 with B300's chips."""
COPIES = 6
"""Of the weights that the benchmark takes in turn, so that they fall out of the L2 cache."""
L2_BYTES_PER_CLOCK = 6.4
"""Of one SM from the L2 cache, as these products show it: a tenth of what the unit can load."""
ELEMENT_BYTES = {"bf16": 2.0, "fp8": 1.0, "f32": 4.0}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SizedProducts(Products):
    """Products whose factors and results move."""

    in_bytes: Floats
    """Bytes of one element of a factor."""
    out_bytes: Floats
    """Bytes of one element of the result."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeasuredProducts:
    """The products of one type on one card."""

    gpu: Gpu
    dtype: str
    products: SizedProducts
    seconds: Floats

    @property
    def flops(self) -> Floats:
        """Of each product, two per multiply-add."""
        return 2.0 * self.products.batch * self.products.m * self.products.n * self.products.k

    def take(self, chosen: NDArray[np.intp]) -> MeasuredProducts:
        """Some of the products."""
        old = self.products
        columns = {field.name: getattr(old, field.name)[chosen] for field in fields(old)}
        return replace(self, products=SizedProducts(**columns), seconds=self.seconds[chosen])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeasuredAttention:
    """Causal attention of whole sequences in bf16 on one card."""

    gpu: Gpu
    attentions: Attentions
    seconds: Floats

    @property
    def flops(self) -> Floats:
        """Of each attention."""
        return self.attentions.flops

    def take(self, chosen: NDArray[np.intp]) -> MeasuredAttention:
        """Some of the attentions."""
        old = self.attentions
        columns = {field.name: getattr(old, field.name)[chosen] for field in fields(old)}
        return replace(self, attentions=Attentions(**columns), seconds=self.seconds[chosen])


@functools.cache
def read_products(name: str = AICONFIGURATOR) -> dict[Keys, MeasuredProducts]:
    """Slug and type -> products, sorted by both."""
    found: dict[Keys, list[tuple[float, ...]]] = {}
    with gzip.open(FOLDER / name, "rt", newline="") as file:
        for row in csv.DictReader(file):
            cells = (row["m"], row["n"], row["k"], row.get("batch", "1"), row["time_us"])
            found.setdefault((row["gpu"], row["dtype"]), []).append(tuple(map(float, cells)))
    # Sorted by shape: the same index is then the same shape on every card.
    return {key: _measured(*key, np.array(sorted(found[key]))) for key in sorted(found)}


@functools.cache
def read_attention() -> dict[str, MeasuredAttention]:
    """Slug -> attentions, sorted by shape."""
    found: dict[str, list[tuple[float, ...]]] = {}
    names = ("batch", "heads", "kv_heads", "head_dim", "seq", "time_us")
    with gzip.open(FOLDER / ATTENTION, "rt", newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["gpu"], []).append(tuple(float(row[name]) for name in names))
    return {slug: _attention(slug, np.array(sorted(found[slug]))) for slug in sorted(found)}


def card(slug: str) -> Gpu:
    """The measured card."""
    if slug != GB300:
        return find(slug)
    return replace(find("gb200"), slug=GB300, compute_capability="10.3")


def bench_memory_s(measured: MeasuredProducts, bandwidth_ratio: float) -> Floats:
    """Seconds that the benchmark moves bytes: what stays in the L2 cache comes from there.

    The factor x and the result are the same in every repetition, the weights take turns. Training
    has no such turns, so nothing of this is in the model.
    """
    products, gpu = measured.products, measured.gpu
    x = products.batch * products.in_bytes * products.m * products.k
    weights = products.batch * products.in_bytes * products.n * products.k
    y = products.batch * products.out_bytes * products.m * products.n
    cold = bandwidth_ratio * gpu.memory_bytes_per_s
    warm = max(L2_BYTES_PER_CLOCK * gpu.sm_count * gpu.tensor_clock_hz, cold)
    weights_rate = np.where(x + COPIES * weights + y < gpu.l2_bytes, warm, cold)
    rest_rate = np.where(x + weights + y < gpu.l2_bytes, warm, cold)
    return np.asarray(weights / weights_rate + (x + y) / rest_rate)


def _measured(slug: str, dtype: str, rows: Floats) -> MeasuredProducts:
    m, n, k, batch, time_us = rows.T
    in_bytes = ELEMENT_BYTES[dtype]
    out_bytes = max(in_bytes, 2.0)
    return MeasuredProducts(
        gpu=card(slug),
        dtype=dtype,
        products=SizedProducts(
            m=m,
            n=n,
            k=k,
            batch=batch,
            in_bytes=np.full_like(m, in_bytes),
            out_bytes=np.full_like(m, out_bytes),
        ),
        seconds=time_us * 1e-6,
    )


def _attention(slug: str, rows: Floats) -> MeasuredAttention:
    batch, heads, key_heads, head_dim, length, time_us = rows.T
    attentions = Attentions(
        batch=batch,
        heads=heads,
        key_heads=key_heads,
        head_dim=head_dim,
        queries=length,
        keys=length,
        causal=np.ones(len(batch), dtype=bool),
        element_bytes=np.full(len(batch), 2.0),
    )
    return MeasuredAttention(gpu=card(slug), attentions=attentions, seconds=time_us * 1e-6)
