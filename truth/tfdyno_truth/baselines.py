"""Simpler ways to predict a step, each with one fitted factor by kind of row, on the same rows.

Not one of them knows a constant of the time model: FLOPs and bytes come from the kernel records,
peaks and bandwidth from the data sheets. The factor is the weighted median of measured over raw
time, by kind of model, mode, precision and execution, so that each baseline gets its best case.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tfdyno.catalog.gpus import find
from tfdyno.model.time.kernel_table import LIBRARY_KINDS
from tfdyno.model.time.peaks import peak_flops_per_s, unit_for
from tfdyno.model.time.precision import tf32_allowed
from tfdyno_truth.records import read_record
from tfdyno_truth.weighted import quantile

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from pathlib import Path

    from numpy.typing import NDArray

    from tfdyno.core.choose.hardware import Gpu
    from tfdyno.core.choose.program import Kernel
    from tfdyno_truth.design import Design
    from tfdyno_truth.rows import Row

    Floats = NDArray[np.float64]
    Key = tuple[str, ...]

TITLES = {
    "flops": "FLOPs over peak",
    "utilisation": "one utilisation per model",
    "program": "roofline of the program",
    "kernels": "roofline of every kernel",
}
LEAST_GROUPS = 3
"""A factor needs so many groups; with fewer the next coarser key is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What the kernels of a record ask for, as arrays over kernels of (fixed, per sample)."""

    flops: Floats
    traffic_bytes: Floats
    dtypes: tuple[str, ...]
    """Of library kernels; empty where no matrix unit is used."""


def raw_times(design: Design, folder: Path) -> dict[str, Floats]:
    """Seconds of every row by every baseline, before its factor."""
    works: dict[Hashable, Work] = {}
    found: dict[str, list[float]] = {name: [] for name in TITLES}
    for row in design.rows:
        key = (row.record, row.precision)
        if key not in works:
            works[key] = _work(folder, row)
        flops_s, program_s, kernels_s = _times(works[key], find(row.slug), row)
        found["flops"].append(flops_s)
        found["utilisation"].append(flops_s)
        found["program"].append(program_s)
        found["kernels"].append(kernels_s)
    return {name: np.array(values) for name, values in found.items()}


def _work(folder: Path, row: Row) -> Work:
    record = read_record(folder, row.record, row.precision)
    if record is None:
        raise ValueError(f"no kernel record of {row.record}")
    kernels = record.program.kernels
    library = [kernel.kind in LIBRARY_KINDS for kernel in kernels]
    pairs = zip(kernels, library, strict=True)
    return Work(
        flops=np.array([_flops(kernel) if of else (0.0, 0.0) for kernel, of in pairs]),
        traffic_bytes=np.array([_bytes(kernel) for kernel in kernels]),
        dtypes=tuple(k.dtype if of else "" for k, of in zip(kernels, library, strict=True)),
    )


def _flops(kernel: Kernel) -> tuple[float, float]:
    return kernel.flops.fixed, kernel.flops.per_sample


def _bytes(kernel: Kernel) -> tuple[float, float]:
    both = kernel.read_bytes + kernel.write_bytes
    return both.fixed, both.per_sample


def _times(work: Work, gpu: Gpu, row: Row) -> tuple[float, float, float]:
    """FLOPs over peak, roofline of the program, sum of the rooflines of the kernels; seconds."""
    at = np.array([1.0, row.batch_size])
    peak = {dtype: _peak(gpu, dtype or "f32", row.precision) for dtype in set(work.dtypes)}
    compute_s = (work.flops @ at) / np.array([peak[dtype] for dtype in work.dtypes])
    memory_s = (work.traffic_bytes @ at) / gpu.memory_bytes_per_s
    flops_s = float(compute_s.sum())
    return (
        flops_s,
        max(flops_s, float(memory_s.sum())),
        float(np.maximum(compute_s, memory_s).sum()),
    )


def _peak(gpu: Gpu, dtype: str, precision: str) -> float:
    """Dense FLOP/s; 16 bits without tensor cores are computed in float32."""
    unit = unit_for(gpu, dtype, tf32_allowed=tf32_allowed(precision))
    return peak_flops_per_s(gpu, "fp32" if unit == "fp16_vector" else unit)


def unseen_times(
    design: Design, raw: Floats, name: str, learnable: NDArray[np.bool_], by: Callable[[Row], str]
) -> Floats:
    """Seconds of every row with factors learned without the rows that share its ``by`` value."""
    labels = np.array([by(row) for row in design.rows])
    keys = [_keys(design, index, name) for index in range(len(design.rows))]
    error = design.log_step - np.log(raw)
    result = np.empty(len(raw))
    for label in np.unique(labels):
        factors = _factors(design, keys, error, np.flatnonzero(learnable & (labels != label)))
        for index in np.flatnonzero(labels == label):
            key = next(key for key in keys[index] if key in factors)
            result[index] = raw[index] * np.exp(factors[key])
    return result


def _keys(design: Design, index: int, name: str) -> tuple[Key, ...]:
    """Keys of a row's factor, finest first; the last one every row has."""
    row, family = design.rows[index], design.families[index]
    keys: tuple[Key, ...] = (
        (family, row.mode, row.precision, row.execution),
        (family, row.mode, row.execution),
        (family, row.execution),
        (family,),
        (),
    )
    own = ("model", row.function, row.mode, row.precision, row.execution)
    return (own, *keys) if name == "utilisation" else keys


def _factors(
    design: Design, keys: list[tuple[Key, ...]], error: Floats, seen: NDArray[np.intp]
) -> dict[Key, float]:
    """Log of the factor by key, for the keys with enough groups behind them."""
    sizes = Counter(design.rows[i].group for i in seen)
    values: defaultdict[Key, list[tuple[float, float]]] = defaultdict(list)
    groups: defaultdict[Key, set[Hashable]] = defaultdict(set)
    for i in seen:
        group = design.rows[i].group
        for key in keys[i]:
            values[key].append((float(error[i]), 1.0 / sizes[group]))
            groups[key].add(group)
    return {
        key: quantile([one for one, _ in pairs], [weight for _, weight in pairs], 0.5)
        for key, pairs in values.items()
        if len(groups[key]) >= (1 if key[:1] == ("model",) else LEAST_GROUPS) or not key
    }
