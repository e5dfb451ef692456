"""Step time of TensorFlow's graph without XLA: the kernels of ``kernels/unfused/per_primitive``.

No kernel is faster than the loads that its threads have under way allow (Little's law): a thread
waits ``load_latency`` for what it asked for. Where each thread takes one element at a time, or few
blocks add up many rows, this and not the bandwidth decides. How many threads TensorFlow's kernels
start, and that their loops over rows hold one load at a time, was read from its source
(``reduction_gpu_kernels.cu.h``) and from the machine code of its 2.21 wheel for compute capability
9.0. One thread of the host launches all of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tfdyno.model.time import kernel_law
from tfdyno.model.time.kernel_table import LIBRARY_KINDS, kept_by_kernels
from tfdyno.model.time.kernel_time import peak_unit
from tfdyno.model.time.products import product_card
from tfdyno.model.time.step import StepTime

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tfdyno.core.choose.hardware import Gpu
    from tfdyno.core.choose.product_rates import ProductRates
    from tfdyno.core.choose.program import Kernel, Program
    from tfdyno.core.choose.time_model import Constants

    Booleans = NDArray[np.bool_]
    Floats = NDArray[np.float64]

WARP = 32
BLOCK = 1024
"""Threads of a block that adds up columns: 32 columns by 32 rows."""
COLUMNS_AT_ONCE = 16
"""Up to so many columns a warp holds several rows."""
ENOUGH_BLOCKS = 16
"""So many blocks of columns and TensorFlow no longer splits the rows among blocks."""
MOST_COLUMNS = 4096
"""The most columns: of more, each has one thread that walks down all rows."""
LONG_ROW = 1024
"""Rows this long get a block of threads each instead of a warp."""
PLANE_ROWS = 16
"""Between two axes that stay: a thread adds up so many, all loads under way at once, and further
passes add up what those left; where there are fewer for each result, it has one thread."""
UNROLL_ROW, ROW_BLOCK = 4, 256
"""Loads under way, and threads, where a block adds up one row (cub's segmented reduction)."""
SCATTERED_LOADS = 16
"""Loads under way in a thread of cub's, where it has to look up where each of them lies."""
INDEX_WAITS = 3.0
"""How much longer than the wait for such loads the arithmetic of their places takes, with a
multiprocessor to each block. Judgement: three divisions a load; no measured step has shown it."""
TRANSPOSE_WAITS = 2.3
"""The same of a transpose, whose threads work out one place each. An H200 moved 33.5 M elements
between two axes in 154 us in float16 and 158 in float32 (``catalog/data/sweeps``): 124 rounds."""
SOFTMAX_SUMS = 2.0
"""A softmax along rows looks for the largest and adds up, row by row each, before it divides. Of
98,304 rows of 512 an H200 needed 321 us in float16 and 346 in float32 (a sweep of 2026-11-27)."""
MULTIPROCESSOR = 2048
NUMBER = 4096
"""Sums of up to so many numbers to one are a block's work."""
AXES = ("outer", "summed", "inner")
"""Axes before those that a kernel adds up, those, and the axes behind them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GraphWork:
    """What the kernels of one program ask of one card; each array has one value per kernel."""

    law: kernel_law.Work
    """Seconds of one launch's arithmetic and traffic at the full rate."""
    waits: Floats
    """Loads one after the other in one launch, times the rounds of threads."""
    passes: Booleans
    """Softmaxes: what moves all of it comes after the sums."""
    chained: Booleans
    """Time steps of a recurrent layer: the library launches them without the executor."""
    library: Booleans
    update: Booleans
    drains: bool
    """Whether the host looks at the gradients before it updates, so that the device runs empty:
    loss scaling does."""


def work_of(
    program: Program, batch_size: float, gpu: Gpu, *, tf32_allowed: bool, rates: ProductRates,
    clock_ratio: float = 1.0, drains: bool = False,
) -> GraphWork:  # fmt: skip
    """Arrange the kernels of a step of primitive operations for one card.

    Args:
        program: Kernels of ``per_primitive``.
        batch_size: Samples of the step.
        gpu: The card.
        tf32_allowed: Whether float32 products may run in TF32.
        rates: What measured products reach.
        clock_ratio: Share of its boost clock that the card holds under load.
        drains: As ``GraphWork.drains``.
    """
    kernels = program.kernels
    marks = _marks(kernels)
    chained = marks.chained
    law = kernel_law.work_of(
        program, batch_size, gpu, tf32_allowed=tf32_allowed, rates=rates, clock_ratio=clock_ratio
    )
    compute = law.compute_s.copy()
    for index in np.flatnonzero(chained):
        one = kernels[index]
        card = product_card(
            gpu, peak_unit(gpu, one.dtype, tf32_allowed=tf32_allowed), rates,
            clock_ratio=clock_ratio,
        )  # fmt: skip
        full = card.peak_flops_per_s * card.rate.peak_ratio
        compute[index] = one.flops.at(batch_size) / max(1, one.count) / full
    resident = float(gpu.sm_count * gpu.rates.max_threads)
    passes = _softmaxes(kernels, batch_size)
    return GraphWork(
        law=replace(law, compute_s=compute),
        waits=_waits(kernels, batch_size / program.batch_size, resident)
        * np.where(passes, SOFTMAX_SUMS, 1.0),
        passes=passes,
        chained=chained,
        library=marks.library,
        update=marks.update,
        drains=drains,
    )  # fmt: skip


class _Marks(NamedTuple):
    """What kernels are on every card, and at every batch."""

    chained: Booleans
    library: Booleans
    update: Booleans


@kept_by_kernels
def _marks(kernels: tuple[Kernel, ...]) -> _Marks:
    return _Marks(
        chained=np.array([kernel.kind == "recurrent" for kernel in kernels], dtype=bool),
        library=np.array([kernel.kind in LIBRARY_KINDS for kernel in kernels], dtype=bool),
        update=np.array([kernel.phase == "update" for kernel in kernels], dtype=bool),
    )


def seconds(work: GraphWork, constants: Constants) -> kernel_law.Seconds:
    """Price every kernel.

        library = start + (arithmetic^p + traffic^p)^(1/p), as under XLA
        others  = start + max(bytes / (bandwidth * e_primitive), waits * load_latency)
        softmax = start + bytes / (bandwidth * e_primitive) + waits * load_latency

    Of a time step in a recurrent layer the cache holds all: it takes ``t_recurrent`` a launch, and
    its product what large products take.
    """
    law = work.law
    found = kernel_law.seconds(law, constants)
    moved = (law.memory_s + law.extra_s) / constants["e_primitive"]
    waited = work.waits * constants["load_latency"]
    moved = np.where(work.passes, moved + waited, np.maximum(moved, waited))
    start = np.where(work.chained, constants["t_recurrent"], constants["t_primitive"])
    chain = np.where(work.chained, law.launches * law.compute_s, 0.0)
    return kernel_law.Seconds(
        compute_s=np.where(work.library, found.compute_s, chain),
        memory_s=np.where(
            work.library, found.memory_s, np.where(work.chained, 0.0, law.launches * moved)
        ),
        floor_s=law.launches * start,
    )


def step_of(work: GraphWork, found: kernel_law.Seconds, constants: Constants) -> StepTime:
    """Sum the kernels of a step.

        host = kernels * host_primitive
        step = max(device, host), of forward and backward pass and of the update apart if the
               device runs empty in between (``drains``); and t_step

    Arrays have one value: the card.
    """
    device = found.total_s
    host = np.where(work.chained, 0.0, work.law.launches * constants["host_primitive"])
    apart = work.update & work.drains
    slower = (max(float(device[part].sum()), float(host[part].sum())) for part in (~apart, apart))
    step_s = sum(slower) + constants["t_step"]
    compute, memory = float(found.compute_s.sum()), float(found.memory_s.sum())
    return StepTime(
        compute_s=np.array([compute]),
        memory_s=np.array([memory]),
        step_s=np.array([step_s]),
        device_s=np.array([float(device.sum())]),
        host_s=np.array([float(host.sum())]),
    )


@kept_by_kernels
def _waits(kernels: tuple[Kernel, ...], grown: float, resident: float) -> Floats:
    """Count loads one after the other in the thread with most, times the rounds."""
    shape = _shape(kernels)
    elements = shape.extents["elements"].at(grown)
    waits = np.where(shape.single, shape.places * elements / resident, 0.0)
    axes = np.stack([shape.extents[name].at(grown) for name in AXES], axis=-1)
    sums = np.where(shape.scattered, _waits_of_pieces(axes, resident), waits_of_sum(axes, resident))
    return np.asarray(waits + np.where(shape.summing, sums, 0.0))


class _Extents(NamedTuple):
    """One of ``dims`` of each kernel, multiplied out, at the batch of the program."""

    made: Floats
    grows: Booleans

    def at(self, grown: float) -> Floats:
        """Return it at a batch ``grown`` so much."""
        return self.made * np.where(self.grows, grown, 1.0)


class _Shape(NamedTuple):
    """What decides how the elements of each kernel are split among threads, at any batch."""

    single: Booleans
    places: Floats
    summing: Booleans
    scattered: Booleans
    extents: dict[str, _Extents]
    reducing: Booleans
    written_bytes: Floats
    read_bytes: Floats


@kept_by_kernels
def _shape(kernels: tuple[Kernel, ...]) -> _Shape:
    def extents(name: str) -> _Extents:
        grows = np.array([name in one.dims_scaled for one in kernels], dtype=bool)
        return _Extents(np.array([one.size(name) for one in kernels]), grows)

    def scaled(name: str) -> Floats:
        found = [getattr(one, name) for one in kernels]
        return np.array([(one.fixed, one.per_sample) for one in found]).reshape(-1, 2)

    return _Shape(
        single=np.array([one.dims.get("per_thread") == (1,) for one in kernels], dtype=bool),
        places=np.where([one.kind == "transpose" for one in kernels], TRANSPOSE_WAITS, 1.0),
        summing=np.array(["summed" in one.dims for one in kernels], dtype=bool),
        scattered=np.array(["scattered" in one.dims for one in kernels], dtype=bool),
        extents={name: extents(name) for name in ("elements", *AXES)},
        reducing=np.array([one.kind == "reduce" for one in kernels], dtype=bool),
        written_bytes=scaled("write_bytes"),
        read_bytes=scaled("read_bytes"),
    )


@kept_by_kernels
def _softmaxes(kernels: tuple[Kernel, ...], batch_size: float) -> Booleans:
    """Mark sums that come with a result for each element; sums of two have one in two."""
    shape = _shape(kernels)
    written, read = (
        held[:, 0] + held[:, 1] * batch_size for held in (shape.written_bytes, shape.read_bytes)
    )
    return np.asarray(shape.reducing & (written > 0.5 * read) & (0.5 * read > 0.0))


def waits_of_sum(axes: Floats, resident: float) -> Floats:
    """Return loads one after the other in sums, as TensorFlow's kernels split them among threads.

    Args:
        axes: Extents of the axes before those added up, of those and of the axes behind them, in
            the last dimension.
        resident: Threads that the card holds at a time.
    """
    outer, summed, inner = np.moveaxis(axes, -1, 0)
    by_warp = _rounds(outer * WARP, resident) * np.ceil(summed / WARP)
    by_block = _rounds(outer * ROW_BLOCK, resident) * summed / (ROW_BLOCK * UNROLL_ROW)
    by_thread = _rounds(outer * inner, resident) * summed
    by_passes = _rounds(outer * inner * summed / PLANE_ROWS, resident)
    by_passes += np.log(summed) / np.log(PLANE_ROWS)
    rows = summed / np.maximum(1.0, WARP // np.minimum(inner, WARP))
    few = rows / (WARP * _power_of_two(rows / WARP))
    columns = np.ceil(inner / WARP)
    split = np.where(columns < ENOUGH_BLOCKS, _power_of_two(summed / WARP), 1.0)
    by_columns = _rounds(columns * split * BLOCK, resident) * summed / (WARP * split)
    return np.select(
        [
            outer * inner <= 1.0,  # to one number
            (inner <= 1.0) & (summed >= LONG_ROW),
            inner <= 1.0,
            (outer > 1.0) & (summed >= PLANE_ROWS * outer * inner),
            (outer > 1.0) | (inner > MOST_COLUMNS),
            inner <= COLUMNS_AT_ONCE,
        ],
        [
            np.where(summed <= NUMBER, summed / BLOCK, 0.0),
            by_block,
            by_warp,
            by_passes,
            by_thread,
            few,
        ],
        by_columns,
    )


def _waits_of_pieces(axes: Floats, resident: float) -> Floats:
    """Return the same of what lies in pieces: a block for each result."""
    _, summed, results = np.moveaxis(axes, -1, 0)
    rounds = _rounds(results * MULTIPROCESSOR, resident)
    return np.asarray(INDEX_WAITS * rounds * summed / (ROW_BLOCK * SCATTERED_LOADS))


def _rounds(threads: Floats, resident: float) -> Floats:
    return np.maximum(1.0, threads / resident)


def _power_of_two(blocks: Floats) -> Floats:
    """Return blocks among which rows are split: 32 at most, rounded down to such a number."""
    return np.asarray(2.0 ** np.floor(np.log2(np.clip(blocks, 1.0, WARP))))
