"""The quick route against the compiled one in words: a section of the accuracy pages."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from tfdyno_truth import cells
from tfdyno_truth.both import SERVING, Prices
from tfdyno_truth.compared import FOLDER, compared
from tfdyno_truth.make_records import FOLDER as QUICK
from tfdyno_truth.plan import SECONDS, plan
from tfdyno_truth.sections import Section, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tfdyno.core.choose.time_model import BucketWidth
    from tfdyno_truth.both import Line
    from tfdyno_truth.compared import Compared, Shared, Sizes, Step

TITLE = "Without a compile"
NOT_MEASURED = "Not measured yet: run `tfdyno-truth routes`."
METHOD = """\
Both routes start from the same traced step and are priced by the same shipped constants, fitted to
the quick route's kernels. *Refitted* is free of that advantage: each route has constants of its
own, fitted to these rows alone with the card left out. Every card is judged by the program compiled
for its family, where there is none by that for {serving}. Seconds are from the traced step to
kernels and buffers, without imports; the wait includes tracing and all imports. All were made on
one machine with 2 shared cores."""
STEPS = """\
Batch: median of the measured ones. Kernels, FLOPs, bytes, peak of memory and predicted time are
the quick route's over the compiled one's."""
SHARED = """\
The program compiled for {serving} in place of the one for the card's own family: kernels, FLOPs,
bytes and peak of memory of the two, predicted time on the card, and the mean error of both on
measured rows of the family. The last column is the quick route's time over the own program's."""


def sections(prices: Prices | None = None) -> tuple[Section, ...]:
    """The sections of ``docs/accuracy.md``, from what is stored now; nothing is compiled.

    Args:
        prices: Constants to judge with; the shipped ones by default.
    """
    chosen = prices or Prices.shipped()
    return _sections(tuple(chosen.constants.items()), tuple(chosen.widths.items()))


@lru_cache(maxsize=1)  # the same for the page and for the page with figures
def _sections(
    constants: tuple[tuple[str, float], ...], widths: tuple[tuple[str, BucketWidth], ...]
) -> tuple[Section, ...]:
    prices = Prices(constants=dict(constants), widths=dict(widths))
    return tuple(sections_of(compared(plan(), FOLDER, QUICK, SECONDS, prices=prices)))


def sections_of(found: Compared) -> Iterator[Section]:
    """The answer with the strata, then the steps, then what cards may share."""
    if found.whole is None:
        yield Section(title=TITLE, prose=NOT_MEASURED)
        return
    prose = [answer(found), METHOD.format(serving=SERVING)]
    if found.missing:
        prose.append(f"Not compiled yet: {', '.join(' '.join(key) for key in found.missing)}.")
    yield Section(title=TITLE, prose="\n\n".join(prose), table=strata_table(found))
    yield Section(title="Both routes by step", prose=STEPS, table=steps_table(found), below=True)
    if found.shared:
        prose_of_shared = SHARED.format(serving=SERVING)
        table = shared_table(found.shared)
        title = "One program for several families"
        yield Section(title=title, prose=prose_of_shared, table=table, below=True)


def answer(found: Compared) -> str:
    """How far apart the routes are, and how much faster the quick one is."""
    if found.whole is None:
        return NOT_MEASURED
    line = found.whole
    timed = [step.timed for step in found.steps]
    count_s, compile_s = (sum(getattr(t, n) for t in timed) for n in ("count_s", "compile_s"))
    refitted = ""
    if found.refitted:
        own = found.refitted
        refitted = (
            f" With constants refitted to each route and the card left out: "
            f"{cells.share(own.quick.mean)} and {cells.share(own.compiled.mean)}."
        )
    return (
        f"The quick route's mean error is {cells.share(line.quick.mean)}, the compiled program's "
        f"{cells.share(line.compiled.mean)} on the same {line.quick.rows:,} rows: "
        f"{line.points:+.1f} points.{refitted} It takes {count_s / len(timed):.2f} s a step "
        f"against {compile_s / len(timed):.1f} s, {found.work_ratio:.0f} times less; with imports "
        f"and the trace, which both need, the first answer comes {found.wait_ratio:.1f} times "
        f"sooner ({len(timed)} steps)."
    )


def strata_table(found: Compared) -> Table:
    """The whole, then every stratum, those first that are furthest apart."""
    lines = [*filter(None, (found.whole, found.refitted)), *found.strata]
    return Table(
        headings=("rows", "number", "groups", "quick: mean", "median", "90 % below",
                  "compiled: mean", "median", "90 % below", "points"),
        rows=tuple((line.label, *_scored(line)) for line in lines),
    )  # fmt: skip


def _scored(line: Line) -> tuple[str, ...]:
    numbers = [cells.shares(s.mean, s.median, s.p90) for s in (line.quick, line.compiled)]
    counts = (f"{line.quick.rows:,}", f"{line.quick.groups:,}")
    return (*counts, *numbers[0], *numbers[1], f"{line.points:+.1f}")


def steps_table(found: Compared) -> Table:
    """Every step by both routes."""
    return Table(
        headings=("step", "rows", "batch", "quick: mean", "compiled: mean", "points", "kernels",
                  "FLOPs", "bytes", "peak", "time", "trace s", "quick s", "compile s"),
        rows=tuple(map(_step, found.steps)),
    )  # fmt: skip


def _step(step: Step) -> tuple[str, ...]:
    line, timed = step.line, step.timed
    return (
        line.label,
        f"{line.quick.rows:,}",
        f"{step.batch_size:,}",
        *cells.shares(line.quick.mean, line.compiled.mean),
        f"{line.points:+.1f}",
        *_ratios(step.quick, step.compiled),
        f"{step.time_ratio:.2f}",
        f"{timed.trace_s:.1f}",
        f"{timed.count_s:.2f}",
        f"{timed.compile_s:.1f}",
    )


def _ratios(one: Sizes, other: Sizes) -> tuple[str, ...]:
    """Numbers of kernels, and the ratios of all else."""
    ratios = ("flops", "traffic_bytes", "peak_bytes")
    return (
        f"{one.kernels:,} / {other.kernels:,}",
        *(f"{getattr(one, name) / max(1.0, getattr(other, name)):.2f}" for name in ratios),
    )


def shared_table(found: Sequence[Shared]) -> Table:
    """What changes where cards share a program."""
    return Table(
        headings=("step", "card", "family", "batch", "kernels", "FLOPs", "bytes", "peak", "time",
                  "error, shared", "error, own", "quick time"),
        rows=tuple(
            (
                " ".join(one.key),
                one.card,
                one.family,
                f"{one.batch_size:,}",
                *_ratios(one.serving, one.own),
                f"{one.time_ratio:.2f}",
                *cells.shares(one.serving_error, one.own_error),
                f"{one.quick_time_ratio:.2f}",
            )
            for one in found
        ),
        words=3,
    )  # fmt: skip
