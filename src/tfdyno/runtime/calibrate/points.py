"""What a sweep times: one kernel of a kind and of a size at a point, in order of what tells most.

The rows stand in ``runtime/tables/sweep_points.csv``: an operation with its sizes, and on which
kind of card and in which types it is timed. A point becomes a ``Kernel`` as a traced step would
have it, so the law that prices steps prices points as well.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, replace
from itertools import product
from math import ceil, prod
from pathlib import Path
from typing import TYPE_CHECKING, cast

from tfdyno.core.base.interval import Scaled
from tfdyno.core.choose.program import Direction, Kernel, KernelKind

if TYPE_CHECKING:
    from collections.abc import Iterator

DATA = Path(__file__).resolve().parents[1] / "tables" / "sweep_points.csv"
BYTES = {"f32": 4, "tf32": 4, "f16": 2, "bf16": 2}
"""Bytes of an element; ``tf32`` is float32 whose products tensor cores multiply."""
Sizes = dict[str, int]
BINARY = frozenset(("add", "subtract", "multiply", "divide", "maximum", "select"))
"""Operations of two tensors."""
SAME, ROW, SPREAD = "same", "row", "spread"


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One kernel to time."""

    operation: str
    dtype: str
    """``f32``, ``tf32``, ``f16`` or ``bf16``."""
    sizes: Sizes
    form: str = ""
    """What a row of the table says beside sizes: a direction, or how operands have their shapes."""

    @property
    def name(self) -> str:
        """The name that tells it from all others."""
        sizes = " ".join(f"{key}={value}" for key, value in self.sizes.items())
        return " ".join(filter(None, (self.operation, self.form, self.dtype, sizes)))

    @property
    def beside(self) -> Point | None:
        """What has to run too, and is taken off: a gradient whose forward pass hands it more."""
        if self.operation != "pool_gradient":
            return None
        return replace(self, operation="pool")

    @property
    def held_bytes(self) -> float:
        """What its operands and its result take."""
        one = kernel_of(self)
        return one.read_bytes.fixed + one.write_bytes.fixed


def points(where: str) -> tuple[Point, ...]:
    """Return the points of one kind of card, those that tell most first.

    Args:
        where: ``cpu`` or ``gpu``.
    """
    with DATA.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if where in row["cards"].split()]
    rows.sort(key=lambda row: int(row["rank"]))
    return tuple(point for row in rows for point in _points_of(row, where))


def _points_of(row: dict[str, str], where: str) -> Iterator[Point]:
    lists = [[int(one) for one in value.split("|")] for value in row["values"].split()]
    dtypes = row["dtypes"].split() if where == "gpu" else ["f32"]
    for values in product(*lists):
        for form, dtype in product(row["forms"].split() or [""], dtypes):
            sizes = dict(zip(row["sizes"].split(), values, strict=True))
            yield Point(operation=row["operation"], dtype=dtype, sizes=sizes, form=form)


def kernel_of(point: Point) -> Kernel:
    """Return the kernel that a traced step would have in its place, in FLOPs, bytes and sizes."""
    one, width = point.sizes, BYTES[point.dtype]
    if point.operation == "gemm":
        return _product(point, one, width)
    if point.operation == "convolution":
        return _convolution(point, one, width)
    if point.operation in ("sum", "softmax", "loss"):
        return _sum(point, one, width)
    if point.operation in ("pool", "pool_gradient"):
        return _pool(point, one, width)
    return _elements(point, one, width)


def _dtype(point: Point) -> str:
    return "f32" if point.dtype == "tf32" else point.dtype


def _product(point: Point, one: Sizes, width: int) -> Kernel:
    m, n, k, batch = one["m"], one["n"], one["k"], one.get("batch", 1)
    return _kernel(
        point, "gemm", flops=2 * m * n * k * batch, read=(m + n) * k * batch * width,
        write=m * n * batch * width, dims={"m": (m,), "n": (n,), "k": (k,), "batch": (batch,)},
    )  # fmt: skip


def convolution_shapes(one: Sizes) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return a convolution's input, weight and result, channels last; depthwise has groups."""
    height, wide, stride = one["h"], one["w"], one["stride"]
    window = (one["kh"], one["kw"])
    image = (one["n"], height, wide, one["cin"])
    result = (one["n"], ceil(height / stride), ceil(wide / stride), one["cout"])
    depthwise = one["groups"] > 1
    weight = (*window, one["cin"], 1) if depthwise else (*window, one["cin"], one["cout"])
    return image, weight, result


def _convolution(point: Point, one: Sizes, width: int) -> Kernel:
    image, weight, result = convolution_shapes(one)
    parts = {"forward": (image, weight, result), "input_gradient": (result, weight, image)}
    first, second, made = parts.get(point.form, (image, result, weight))
    window = (one["kh"], one["kw"])
    return _kernel(
        point, "convolution",
        flops=2 * prod(result) * prod(window) * one["cin"] // one["groups"],
        read=(prod(first) + prod(second)) * width, write=prod(made) * width,
        dims={
            "n": (one["n"],), "cin": (one["cin"],), "cout": (one["cout"],),
            "groups": (one["groups"],), "window": window, "stride": (one["stride"],) * 2,
            "input": image[1:3], "output": result[1:3],
        },
    )  # fmt: skip


def _sum(point: Point, one: Sizes, width: int) -> Kernel:
    outer, summed, inner = one["outer"], one["summed"], one.get("inner", 1)
    every, results = outer * summed * inner, outer * inner
    written = results if point.operation == "sum" else every
    return _kernel(
        point, "reduce", flops=every, read=every * width, write=written * width,
        dims={"outer": (outer,), "summed": (summed,), "inner": (inner,)},
    )  # fmt: skip


def _pool(point: Point, one: Sizes, width: int) -> Kernel:
    image = one["n"] * one["h"] * one["w"] * one["c"]
    kind: KernelKind = "window" if point.operation == "pool" else "scatter"
    read, write = (image, image // 4) if kind == "window" else (image + image // 4, 2 * image)
    dims = {"window": (1, 2, 2, 1), "stride": (1, 2, 2, 1)} if kind == "window" else {}
    return _kernel(point, kind, flops=image, read=read * width, write=write * width,
                   dims={**dims, "elements": (image,)})  # fmt: skip


def _elements(point: Point, one: Sizes, width: int) -> Kernel:
    count, columns = one["elements"], one.get("columns", 0)
    kinds: dict[str, KernelKind] = {
        "transpose": "transpose", "copy": "copy", "gather": "gather", "scatter": "scatter",
        "random": "random",
    }  # fmt: skip
    kind = kinds.get(point.operation, "loop")
    read = {SPREAD: columns, ROW: count + columns}.get(point.form, count)
    if point.form == SAME and point.operation in BINARY:
        read = 2 * count
    if kind == "random":
        read = 0
    return _kernel(
        point, kind, flops=count, read=read * width, write=count * width,
        dims={"elements": (count,), "per_thread": (1 if point.form in (ROW, SPREAD) else 4,)},
    )  # fmt: skip


def _kernel(
    point: Point, kind: KernelKind, *, flops: int, read: int, write: int,
    dims: dict[str, tuple[int, ...]],
) -> Kernel:  # fmt: skip
    names = {"gemm": "dot_general", "softmax": "group", "sum": "reduce", "pool": "reduce_window",
             "pool_gradient": "select_and_scatter"}  # fmt: skip
    library = kind in ("gemm", "convolution")
    direction = cast("Direction", point.form) if library else ""
    return Kernel(
        kind=kind, dtype=_dtype(point), flops=Scaled(fixed=float(flops)),
        read_bytes=Scaled(fixed=float(read)), write_bytes=Scaled(fixed=float(write)),
        direction=direction, dims=dims, name=names.get(point.operation, point.operation),
    )  # fmt: skip
