"""A load test as terminal text (the answer or the failure first, every stretch) and as JSON."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import to_builtins
from tfdyno.core.base.units import significant
from tfdyno.core.measure.load import LOAD_FORMAT
from tfdyno.view.base.text import WIDTH, paint, pairs, table, wrapped
from tfdyno.words.bench.load import (
    batch_rows,
    headline,
    load_words,
    main_stage,
    mark_of,
    ms,
    ms_range,
    rows_words,
    usd_words,
    wrong_words,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.measure.load import LoadResult, LoadStage, ServerFacts

_HEADERS = ("load", "answers/s", "p50 ms", "p95 ms", "p99 ms", "p99.9 ms", "refused", "errors")
_BAR = 30
RAW = ("start_s", "latency_s", "codes")
"""What a stretch of a load test has of each request: one number."""


def load_text(
    result: LoadResult, *, written: Sequence[str] = (), width: int = WIDTH, colour: bool = False
) -> str:
    """Return the whole answer.

    Args:
        result: The test.
        written: Files with it.
        width: Columns of the screen.
        colour: Whether to print bold and dim.
    """
    lines = wrapped(headline(result), width=width).split("\n")
    first = "\n".join(paint(line, "bold", colour=colour) for line in lines)
    mark = f"{paint('!', 'yellow', colour=colour)} "
    doubts = [*result.faults[1:], *_examples(result), *result.warnings]
    if result.stopped:
        doubts.insert(0, "Ctrl-C ended it: this is what was measured until then")
    blocks = [
        first,
        "\n".join(wrapped(f"{doubt}.", width=width, first=mark, rest="  ") for doubt in doubts),
        _stages(result, width, colour),
        pairs(facts(result), width=width),
        _histogram(main_stage(result), colour),
        "\n".join(f"Wrote {name}." for name in written),
    ]
    return "\n\n".join(block for block in blocks if block)


def _examples(result: LoadResult) -> list[str]:
    """Return what the server said with the first answer of every kind that failed the test."""
    if not result.failed:
        return []
    found = {code: said for one in result.stages for code, said in one.run.examples.items()}
    return [f"a {code if code > 0 else 'failed'} answer said: {' '.join(said.split())}".rstrip(".")
            for code, said in found.items() if said.strip()]  # fmt: skip


def _stages(result: LoadResult, width: int, colour: bool) -> str:
    rows = [
        [mark_of(result, one) + load_words(one.run.plan), *_cells(one)] for one in result.stages
    ]
    return table(list(_HEADERS), rows, align="<>>>>>><", width=width, spare=(5, 3), colour=colour)


def _cells(one: LoadStage) -> list[str]:
    figures = one.figures
    return [
        significant(figures.accepted_per_s),
        ms(figures.p50_s),
        ms(figures.p95_s),
        ms(figures.p99_s),
        ms(figures.p999_s),
        f"{figures.refused_ratio:.1%}" if figures.refused else "–",
        wrong_words(one),
    ]


def facts(result: LoadResult) -> list[tuple[str, str]]:
    """List what the numbers rest on, as name and words; empty words: nothing is known."""
    stage = main_stage(result)
    figures, run = stage.figures, stage.run
    server = result.server
    return [
        ("p99", f"{ms_range(figures.p99_s)} ms (95 %), worst "
         f"{significant(figures.worst_s * 1e3, 4)} ms" if figures.p99_s else ""),
        ("requests", _counted(stage)),
        ("batches", f"{rows_words(figures.mean_batch_rows)} on average, in "
         f"{run.batch_count:,} batches" if run.batch_count else "the server does not tell them"),
        ("cost", cost_words(result)),
        ("model", model_words(server)),
        ("server", ", ".join(filter(None, [
            server.platform,
            *(f"process {name.partition('@')[0]}" for name in server.processes),
        ]))),
        ("client", f"{figures.client_cpu_ratio:.0%} of a CPU, its loop at most "
         f"{run.lag_p99_s * 1e3:.1f} ms late 99 times in 100, on {result.machine}"),
    ]  # fmt: skip


def _counted(stage: LoadStage) -> str:
    run, figures = stage.run, stage.figures
    rows = f", {run.rows_per_request} rows each" if run.rows_per_request > 1 else ""
    how = "Poisson arrivals" if run.plan.kind == "open" else "each waits for its answer"
    refused = f", {figures.refused:,} refused" if figures.refused else ""
    return (
        f"{figures.requests:,} after {run.plan.warmup_s:g} s of warm-up{rows}, "
        f"{figures.accepted:,} accepted{refused}; {how}"
    )


def model_words(server: ServerFacts) -> str:
    """Name, version and inputs, as far as the server tells them."""
    version = f"version {server.version}" if server.version else ""
    return " ".join(filter(None, [server.model, version, *server.inputs]))


def cost_words(result: LoadResult) -> str:
    """Return dollars per million requests; empty without a price."""
    usd = main_stage(result).figures.usd_per_million
    if result.usd_per_h is None or usd is None or result.failed:
        return ""
    of = f" ({result.offer})" if result.offer else ""
    return f"{usd_words(usd)} per million requests at {usd_words(result.usd_per_h)}/h{of}"


def _histogram(stage: LoadStage, colour: bool) -> str:
    rows = batch_rows(stage)
    if not rows:
        return ""
    most = max(share for _, _, share in rows)
    least = sorted((share for _, _, share in rows), reverse=True)[:_BAR][-1]
    wide = max(len(name) for name, _, _ in rows)
    lines = [
        f"  {name:>{wide}}  {'█' * round(_BAR * share / most)} {share:.0%}"
        for name, _, share in rows
        if share >= least
    ]
    return "\n".join([paint("Rows in a batch", "bold", colour=colour), *lines])


def load_document(result: LoadResult, *, every: bool = True) -> dict[str, Any]:
    """Return all of a load test.

    ``verdict`` (``good`` or ``failed``), ``faults``, the figures of the stretch that counts (as
    ``StageFigures``), ``knee_rate_per_s``, and all ``stages``. In a failed test the figures of the
    whole are null: those of its stretches tell what went wrong, not how fast the server is. The
    ``high`` of an interval is null where too few requests bound it.

    Args:
        result: The test.
        every: Whether every latency stands in it.
    """
    raw = to_builtins(result)
    figures = _bounded(to_builtins(main_stage(result).figures))
    for stage in raw["stages"]:
        _bounded(stage["figures"])
    if result.failed:
        figures = dict.fromkeys(figures)
        raw["knee_rate_per_s"] = None
    for stage in () if every else raw["stages"]:
        for name in RAW:
            del stage["run"][name]
    return {
        "format": LOAD_FORMAT,
        "verdict": "failed" if result.failed else "good",
        "faults": raw.pop("faults"),
        **figures,
        **raw,
    }


def _bounded(figures: dict[str, Any]) -> dict[str, Any]:
    """Return the same figures; an end that is infinite, which JSON cannot say, is null."""
    for one in figures.values():
        if isinstance(one, dict) and one.get("high") == math.inf:
            one["high"] = None
    return figures
