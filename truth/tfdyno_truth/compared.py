"""The quick route beside the compiled one: errors on the same rows, sizes of the same steps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tfdyno.catalog.families import family as family_named
from tfdyno.catalog.families import family_of
from tfdyno.catalog.gpus import find
from tfdyno.catalog.time_model import time_model
from tfdyno_truth import judge
from tfdyno_truth.both import SERVING, Both, Line, Prices
from tfdyno_truth.design import design_of
from tfdyno_truth.plan import Planned, Timed, read_timed
from tfdyno_truth.records import Key, path_of, read_record
from tfdyno_truth.rows import TRUTH, read_rows, single_gpu
from tfdyno_truth.sheet import ALL, stratum

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from tfdyno.core.choose.program import Program
    from tfdyno_truth.rows import Row

FOLDER = TRUTH / "kernels-exact"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """What one program asks for at a batch."""

    kernels: int
    flops: float
    traffic_bytes: float
    peak_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step by both routes."""

    key: Key
    line: Line
    batch_size: int
    """Median of the measured ones."""
    quick: Sizes
    compiled: Sizes
    time_ratio: float
    """Predicted by the quick route over the compiled one, median of the rows."""
    timed: Timed


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """One step compiled for a family of its own, beside the program that serves the others."""

    key: Key
    family: str
    card: str
    """Name of the family's representative, for which the times are."""
    batch_size: int
    own: Sizes
    serving: Sizes
    time_ratio: float
    """Predicted from the program of ``SERVING`` over that from the card's own."""
    own_error: float
    """Mean error on the measured rows of the family's cards; NaN: none was measured."""
    serving_error: float
    """The same of the program of ``SERVING``."""
    quick_time_ratio: float
    """Predicted from the quick program over that from the card's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Everything that is known of both routes."""

    whole: Line | None
    """Rows that count elsewhere too: without those bound by launches; None: there are none."""
    refitted: Line | None
    """The same rows, by constants fitted for each route with the card left out."""
    strata: tuple[Line, ...]
    """Furthest apart first."""
    steps: tuple[Step, ...]
    """Furthest apart first."""
    shared: tuple[Shared, ...]
    missing: tuple[Key, ...]
    """Planned steps that are not compiled yet."""

    @property
    def work_ratio(self) -> float:
        """Compiling over counting, each from the traced step: all steps together."""
        return _over(self.steps, lambda step: step.timed.compile_s, lambda step: step.timed.count_s)

    @property
    def wait_ratio(self) -> float:
        """Waiting for the compiled answer over waiting for the quick one, trace and imports in."""
        return _over(
            self.steps,
            lambda step: step.timed.trace_s + step.timed.compile_s,
            lambda step: step.timed.trace_s,
        )


def _over(
    steps: Sequence[Step], above: Callable[[Step], float], below: Callable[[Step], float]
) -> float:
    return sum(map(above, steps)) / sum(map(below, steps)) if steps else float("nan")


def compared(
    steps: Sequence[Planned],
    folder: Path,
    quick: Path,
    timed: Path,
    *,
    prices: Prices | None = None,
    refit: bool = True,
) -> Compared:
    """Judge both routes with the same constants on the rows whose step both have.

    Args:
        steps: What is wanted.
        folder: Compiled kernels, a folder for each family.
        quick: Kernels of the quick route.
        timed: The seconds of both, ``truth/routes.csv``.
        prices: The constants; the shipped ones by default.
        refit: Whether to fit constants for each route too: some seconds.
    """
    seconds = {(one.key, one.family): one for one in read_timed(timed)}
    known = {
        one.key
        for one in steps
        if (one.key, SERVING) in seconds
        and all(path_of(place, one.key).exists() for place in (folder / SERVING, quick))
    }
    rows = [r for r in single_gpu(read_rows()) if r.execution == "xla" and r.record in known]
    prices = prices or Prices.shipped()
    both = Both.of(rows, quick, folder, prices)
    main = np.array([not row.apart for row in rows], dtype=bool)
    both_ways = [
        _step(both, key, folder, quick, seconds[key, SERVING]) for key in {r.record for r in rows}
    ]
    return Compared(
        whole=both.line(ALL, main) if main.any() else None,
        refitted=both.refitted(main) if refit and main.any() else None,
        strata=both.lines(lambda i: stratum(both.quick, i)),
        steps=tuple(sorted(both_ways, key=lambda step: (-abs(step.line.points), step.key))),
        shared=tuple(
            _shared(rows, one.key, family, folder, quick, prices)
            for one in steps
            for family in one.families
            if family != SERVING and one.key in known
            and path_of(folder / family, one.key).exists()
        ),
        missing=tuple(one.key for one in steps if one.key not in known),
    )  # fmt: skip


def _step(both: Both, key: Key, folder: Path, quick: Path, timed: Timed) -> Step:
    rows = both.quick.rows
    chosen = both.mask(i for i, row in enumerate(rows) if row.record == key)
    batch_size = _median_batch([row for row in rows if row.record == key])
    ratio = both.predicted["quick"][chosen] / both.predicted["compiled"][chosen]
    return Step(
        key=key,
        line=both.line(" ".join(key), chosen),
        batch_size=batch_size,
        quick=sizes_of(_program(quick, key), batch_size),
        compiled=sizes_of(_program(folder / SERVING, key), batch_size),
        time_ratio=float(np.median(ratio)),
        timed=timed,
    )


def _shared(
    rows: Sequence[Row], key: Key, family: str, folder: Path, quick: Path, prices: Prices
) -> Shared:
    """The step on the representative card of the family, by three programs."""
    card = family_named(family).representative
    mine = [row for row in rows if row.record == key]
    batch_size = _median_batch(mine)
    measured = [r for r in mine if family_of(find(r.slug)).slug == family and not r.apart]
    there = replace(mine[0], slug=card.slug, precision=key[2], batch_size=batch_size)
    clocks = time_model().sustained_clock
    times: Mapping[str, float] = {
        name: float(design_of([there], place, clocks).predict(prices.constants)[0])
        for name, place in (
            ("own", folder / family), ("serving", folder / SERVING), ("quick", quick),
        )
    }  # fmt: skip
    return Shared(
        key=key,
        family=family,
        card=card.name,
        batch_size=batch_size,
        own=sizes_of(_program(folder / family, key), batch_size),
        serving=sizes_of(_program(folder / SERVING, key), batch_size),
        time_ratio=times["serving"] / times["own"],
        own_error=_error(measured, folder / family, prices),
        serving_error=_error(measured, folder / SERVING, prices),
        quick_time_ratio=times["quick"] / times["own"],
    )


def _error(rows: Sequence[Row], folder: Path, prices: Prices) -> float:
    """Mean error, every group once."""
    if not rows:
        return float("nan")
    design = design_of(rows, folder, time_model().sustained_clock)
    errors = np.abs(np.expm1(np.log(design.predict(prices.constants)) - design.log_step))
    return float(judge.by_group(design, np.arange(len(rows)), errors).mean())


def _median_batch(rows: Sequence[Row]) -> int:
    """The middle one of the measured batches, the larger of two."""
    batches = sorted(row.batch_size for row in rows)
    return batches[len(batches) // 2]


def _program(folder: Path, key: Key) -> Program:
    record = read_record(folder, key)
    if record is None:
        raise FileNotFoundError(path_of(folder, key))
    return record.program


def sizes_of(program: Program, batch_size: int) -> Sizes:
    """What a program asks for at a batch."""
    kernels = program.kernels
    return Sizes(
        kernels=sum(kernel.count for kernel in kernels),
        flops=sum(kernel.flops.at(batch_size) for kernel in kernels),
        traffic_bytes=sum((k.read_bytes + k.write_bytes).at(batch_size) for k in kernels),
        peak_bytes=program.buffers.peak_at(batch_size),
    )
