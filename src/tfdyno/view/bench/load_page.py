"""The page of a load test: the answer or the failure, latency over the rate, spread, batches."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from tfdyno.core.base.units import significant
from tfdyno.view.base.template import page
from tfdyno.view.bench.figure_load import batches_figure, rate_figure, spread_figure, stages_table
from tfdyno.view.bench.load_text import facts, load_document
from tfdyno.view.choose.sections import Section, section
from tfdyno.view.choose.sentences import Finding
from tfdyno.words.base.language import joined, say
from tfdyno.words.bench.load import (
    headline,
    machine_words,
    main_stage,
    ms,
    ms_range,
    plan_words,
    rows_words,
)
from tfdyno.words.bench.measurement import seconds_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.measure.load import LoadResult


def load_page(result: LoadResult) -> str:
    """Make the page; it loads nothing from anywhere and reads without JavaScript."""
    plan = main_stage(result).run.plan
    return page(
        "load",
        load_document(result, every=False),
        reference=result.server.model,
        setup=(result.url, plan_words(plan)),
        date=result.made_at[:10],
        headline=headline(result, name=result.server.model).rstrip(".。"),
        answer=_answer(result),
        failed=result.failed,
        faults=result.faults,
        warnings=result.warnings,
        sections=tuple(_sections(result)),
        facts=[(name, text) for name, text in facts(result) if text],
        commands=_commands(result),
        version=result.tfdyno,
    )


def _answer(result: LoadResult) -> str:
    """Return what stands under the headline."""
    if result.failed:
        return say(
            "The figures below tell what went wrong, not how fast the server is: a test with an "
            "error, or of another server than at the start, counts for nothing."
        )
    stage = main_stage(result)
    p99 = stage.figures.p99_s
    return joined([
        say("The p99 is {bounds} ms (95 %).", bounds=ms_range(p99)) if p99 else "",
        say(
            "Latency counts from when a request was meant to start to the last byte of its "
            "answer. Measured from {machine}.",
            machine=machine_words(result),
        ),
    ])  # fmt: skip


def _sections(result: LoadResult) -> Iterator[Section]:
    rate, stage = rate_figure(result), main_stage(result)
    spread, batches = spread_figure(stage), batches_figure(stage)
    over = Finding(heading=_rate_heading(result), lead=_rate_lead(result))
    table = None if rate else stages_table(result)
    yield section("rate", say("Latency and rate"), over, rate, table=table)
    if result.failed:
        return
    if spread:
        p50, p99 = stage.figures.p50_s, stage.figures.p99_s
        heading = say(
            "Half of the requests took {p50} ms at most, 99 in 100 {p99} ms",
            p50=ms(p50),
            p99=ms(p99),
        )
        lead = say("Each bar is a range of latency; the ranges grow by the same factor.")
        yield section("spread", say("Spread"), Finding(heading=heading, lead=lead), spread)
    if batches:
        mean = rows_words(stage.figures.mean_batch_rows)
        finding = Finding(
            heading=say("A batch had {rows} on average", rows=mean),
            lead=say("The server's own count between the start and the end."),
        )
        yield section("batches", say("Batches"), finding, batches)


def _rate_heading(result: LoadResult) -> str:
    if result.knee_rate_per_s is not None and not result.failed:
        return say(
            "p99 stays within {limit} up to {rate} requests/s",
            limit=seconds_words(result.p99_limit_s),
            rate=significant(result.knee_rate_per_s),
        )
    return say("What each load got") if len(result.stages) > 1 else say("What the load got")


def _rate_lead(result: LoadResult) -> str:
    if not result.p99_limit_s:
        return say("Answers counted after the warm-up; refused requests have no latency.")
    return say(
        "A closed loop shows what the server can do; from there the rate climbs until the promise "
        "breaks, and the gap is halved until it is small. A rate holds with its p99 within the "
        "promise, no refusal and no error. What that finds is repeated in a longer stretch, which "
        "decides: the whole interval of its p99 has to be within the promise."
    )


def _commands(result: LoadResult) -> list[tuple[str, str]]:
    url = shlex.quote(result.url)
    rate = result.knee_rate_per_s or main_stage(result).figures.accepted_per_s
    found = [
        (f"tfdyno bench --serve {url} --p99-ms 50", say("The largest rate with p99 within 50 ms"))
    ]
    if rate and not result.failed:
        more = f"tfdyno bench --serve {url} --rate {rate * 10:.0f} --expect-refusals"
        found.append((more, say("Ten times as much: what is accepted must still be fast")))
    return found
