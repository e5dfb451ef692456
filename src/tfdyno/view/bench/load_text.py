"""A load test as terminal text (the answer or the failure first, every stretch) and as JSON."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import to_builtins
from tfdyno.core.base.units import significant
from tfdyno.core.measure.load import LOAD_FORMAT
from tfdyno.view.base.text import WIDTH, padded, paint, pairs, shown_width, table, wrapped
from tfdyno.words.base.language import say, say_later
from tfdyno.words.bench.load import (
    batch_rows,
    headline,
    load_words,
    machine_words,
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

_HEADERS = (say_later("load"), say_later("answers/s"), "p50 ms", "p95 ms", "p99 ms", "p99.9 ms",
            say_later("refused"), say_later("errors"))  # fmt: skip
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
        doubts.insert(0, say("Ctrl-C ended it: this is what was measured until then"))
    blocks = [
        first,
        "\n".join(
            wrapped(doubt + say("."), width=width, first=mark, rest="  ") for doubt in doubts
        ),
        _stages(result, width, colour),
        pairs(facts(result), width=width),
        _histogram(main_stage(result), colour),
        "\n".join(say("Wrote {name}.", name=name) for name in written),
    ]
    return "\n\n".join(block for block in blocks if block)


def _examples(result: LoadResult) -> list[str]:
    """Return what the server said with the first answer of every kind that failed the test."""
    if not result.failed:
        return []
    found = {code: said for one in result.stages for code, said in one.run.examples.items()}
    return [
        say(
            "a {code} answer said: {text}" if code > 0 else "a failed answer said: {text}",
            code=code,
            text=" ".join(said.split()).rstrip("."),
        )
        for code, said in found.items()
        if said.strip()
    ]


def _stages(result: LoadResult, width: int, colour: bool) -> str:
    rows = [
        [mark_of(result, one) + load_words(one.run.plan), *_cells(one)] for one in result.stages
    ]
    headers = [say(one) for one in _HEADERS]
    return table(headers, rows, align="<>>>>>><", width=width, spare=(5, 3), colour=colour)


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
        ("p99", _p99(stage)),
        (say("requests"), _counted(stage)),
        (say("batches"), _batched(stage)),
        (say("cost"), cost_words(result)),
        (say("model"), model_words(server)),
        (say("server"), say(", ").join(filter(None, [
            server.platform,
            *(say("process {number}", number=name.partition("@")[0]) for name in server.processes),
        ]))),
        (say("client"), say(
            "{share:.0%} of a CPU, its loop at most {late:.1f} ms late 99 times in 100, on "
            "{machine}",
            share=figures.client_cpu_ratio, late=run.lag_p99_s * 1e3, machine=machine_words(result),
        )),
    ]  # fmt: skip


def _p99(stage: LoadStage) -> str:
    if not stage.figures.p99_s:
        return ""
    return say(
        "{bounds} ms (95 %), worst {worst} ms",
        bounds=ms_range(stage.figures.p99_s),
        worst=significant(stage.figures.worst_s * 1e3, 4),
    )


def _batched(stage: LoadStage) -> str:
    if not stage.run.batch_count:
        return say("the server does not tell them")
    return say(
        "{rows} on average, in {count:,} batches",
        rows=rows_words(stage.figures.mean_batch_rows),
        count=stage.run.batch_count,
    )


def _counted(stage: LoadStage) -> str:
    run, figures = stage.run, stage.figures
    several = run.rows_per_request > 1
    return say(
        "{requests:,} after {warmup:g} s of warm-up{rows}, {accepted:,} accepted{refused}; "
        "Poisson arrivals"
        if run.plan.kind == "open"
        else "{requests:,} after {warmup:g} s of warm-up{rows}, {accepted:,} accepted{refused}; "
        "each waits for its answer",
        requests=figures.requests,
        warmup=run.plan.warmup_s,
        rows=say(", {count} rows each", count=run.rows_per_request) if several else "",
        accepted=figures.accepted,
        refused=say(", {count:,} refused", count=figures.refused) if figures.refused else "",
    )


def model_words(server: ServerFacts) -> str:
    """Name, version and inputs, as far as the server tells them."""
    version = say("version {version}", version=server.version) if server.version else ""
    return " ".join(filter(None, [server.model, version, *server.inputs]))


def cost_words(result: LoadResult) -> str:
    """Return dollars per million requests; empty without a price."""
    usd = main_stage(result).figures.usd_per_million
    if result.usd_per_h is None or usd is None or result.failed:
        return ""
    return say(
        "{usd} per million requests at {price}/h{offer}",
        usd=usd_words(usd),
        price=usd_words(result.usd_per_h),
        offer=say(" ({offer})", offer=result.offer) if result.offer else "",
    )


def _histogram(stage: LoadStage, colour: bool) -> str:
    rows = batch_rows(stage)
    if not rows:
        return ""
    most = max(share for _, _, share in rows)
    least = sorted((share for _, _, share in rows), reverse=True)[:_BAR][-1]
    wide = max(shown_width(name) for name, _, _ in rows)
    lines = [
        f"  {padded(name, wide, '>')}  {'█' * round(_BAR * share / most)} {share:.0%}"
        for name, _, share in rows
        if share >= least
    ]
    return "\n".join([paint(say("Rows in a batch"), "bold", colour=colour), *lines])


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
