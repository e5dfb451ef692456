"""Predicted memory against steps that were measured on a card: ``truth/own/steps.jsonl``."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

import msgspec

from tfdyno.catalog.gpus import find
from tfdyno.catalog.time_model import memory_model
from tfdyno.core.base.codec import write_atomic
from tfdyno.core.choose.program import Program
from tfdyno.model.time.memory import Memory, predict_memory
from tfdyno_truth import cells
from tfdyno_truth.rows import GIB, TRUTH
from tfdyno_truth.sections import Section, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

STEPS = TRUTH / "own" / "steps.jsonl"
PLANS = TRUTH / "own" / "plans"
CARDS = {"NVIDIA H200": "h200"}
"""The name that a driver gives to a card -> the catalogue's."""
ROUTES = ("quick", "exact")
PROSE = """\
What TensorFlow's allocator held at most in the timed steps, and NVML's figure of the whole
process, which has what growth and autotuning took. *Quick* plans and programs that were compiled
for the card at the very batch are stored (`truth/own/plans`); the memory model is the shipped one.
{summary}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """One measured step beside what one route says of it."""

    model: str
    precision: str
    batch_size: int
    execution: str
    route: str
    measured_bytes: float
    process_bytes: float
    held: Memory

    @property
    def error(self) -> float:
        """(Predicted - measured) / measured of the allocator's peak."""
        return self.held.peak_bytes.best / self.measured_bytes - 1.0

    @property
    def inside(self) -> bool:
        """Whether the range of the peak holds what was measured."""
        return self.held.peak_bytes.low <= self.measured_bytes <= self.held.peak_bytes.high

    @property
    def process_inside(self) -> bool:
        """Whether the range of the process does."""
        return self.held.process_bytes.low <= self.process_bytes <= self.held.process_bytes.high


def read_steps(steps: Path = STEPS) -> tuple[dict[str, Any], ...]:
    """The measured steps as they were written down."""
    return tuple(json.loads(line) for line in steps.read_text().splitlines() if line.strip())


def path_of(folder: Path, row: dict[str, Any], route: str) -> Path:
    """File of the plan that a route makes of a measured step."""
    name = f"{row['model']}.{row['precision']}.{row['batch']}.{row['execution']}.{route}.json.gz"
    return folder / name


def write_plan(folder: Path, row: dict[str, Any], route: str, program: Program) -> None:
    """Store what memory needs of a program: its buffers, and one kernel of each kind."""
    kinds = {kernel.kind: replace(kernel, name="", layer="") for kernel in program.kernels}
    buffers = replace(program.buffers, live_curve=(), largest=(), reordered=(), kept=None)
    bare = replace(
        program,
        kernels=tuple(kinds[kind] for kind in sorted(kinds)),
        buffers=buffers,
        trace_sha256="",
        versions={},
        seconds_s=0.0,
    )
    write_atomic(path_of(folder, row, route), gzip.compress(msgspec.json.encode(bare), 9, mtime=0))


def peaks(steps: Path = STEPS, folder: Path = PLANS) -> tuple[Peak, ...]:
    """All steps by all routes that have a plan of them; graph mode has the quick one only."""
    return tuple(
        _peak(row, route, path)
        for row in read_steps(steps)
        for route in ROUTES
        for path in (path_of(folder, row, route),)
        if path.exists()
    )


def _peak(row: dict[str, Any], route: str, path: Path) -> Peak:
    program = msgspec.json.decode(gzip.decompress(path.read_bytes()), type=Program)
    batch_size, execution = row["batch"], row["execution"]
    held = predict_memory(
        program,
        gpu=find(CARDS[row["gpu"]]),
        batch_size=batch_size,
        execution=execution,
        model=memory_model(),
    )
    return Peak(
        model=row["model"],
        precision=row["precision"],
        batch_size=batch_size,
        execution=execution,
        route=route,
        measured_bytes=row["peak_bytes"],
        process_bytes=row["process_bytes"],
        held=held,
    )


def section(found: Iterable[Peak]) -> Section:
    """The steps, both routes one below the other."""
    known = tuple(found)
    return Section(
        title="Memory of steps measured on an H200",
        prose=PROSE.format(summary=" ".join(summaries(known))),
        table=Table(
            headings=("step", "route", "measured GiB", "predicted GiB", "error", "process GiB",
                      "predicted range"),
            rows=tuple(map(_line, known)),
            words=2,
        ),
        below=True,
    )  # fmt: skip


def summaries(found: Iterable[Peak]) -> Iterator[str]:
    """A sentence for every route."""
    by_route: defaultdict[str, list[Peak]] = defaultdict(list)
    for peak in found:
        by_route[peak.route].append(peak)
    for route, mine in by_route.items():
        errors = [abs(peak.error) for peak in mine]
        mean, middle = cells.shares(fmean(errors), median(errors))
        inside = sum(peak.inside for peak in mine)
        yield (
            f"{route.capitalize()}: {len(mine)} steps, mean error {mean}, median {middle}, "
            f"{inside} inside their range, lowest {min(peak.error for peak in mine):+.1%}."
        )


def _line(peak: Peak) -> tuple[str, ...]:
    what = f"{peak.model}, batch {peak.batch_size:,}, {peak.precision}, {peak.execution}"
    best, process = peak.held.peak_bytes.best, peak.held.process_bytes
    return (
        what,
        peak.route,
        f"{peak.measured_bytes / GIB:.3f}",
        f"{best / GIB:.3f}",
        f"{peak.error:+.1%}",
        f"{peak.process_bytes / GIB:.1f}",
        f"{process.low / GIB:.1f}–{process.high / GIB:.1f}",
    )
