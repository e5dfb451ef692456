"""How fast models are served, as a Markdown page: the promises first, the worst of them on top."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench_serving_overload import Kill, Overload
from bench_serving_servers import BASELINE, KINDS, NATIVE, ROUTE, UNBATCHED
from tfdyno.core.base.units import format_bytes, significant
from tfdyno.core.measure.load import ACCEPTED, REFUSALS
from tfdyno.model.measure.statistics import median, paired
from tfdyno.words.bench.measurement import seconds_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench_serving_servers import Kind

CONFIDENCE_RATIO = 0.95
MOST_GROWTH_RATIO = 1.05
MOST_RECOVERY_S, MOST_RESTART_S = 5.0, 10.0
_ANSWERED = {str(ACCEPTED), *map(str, REFUSALS)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One load of one server."""

    number: int
    kind: str
    answers_per_s: float
    p50_s: float
    p99_s: float
    mean_batch_rows: float
    """0: the server does not tell."""
    requests: int
    client_cpu_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """All that was measured."""

    rounds: tuple[Round, ...]
    seconds_s: float
    clients: int
    overload: Overload
    kill: Kill
    machine: str
    made_on: str
    revision: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What is promised of a figure, and what it is."""

    words: str
    wanted: float
    found: float
    shown: str
    at_most: bool = False
    is_aim: bool = False
    """Hoped for, not promised."""

    @property
    def margin_ratio(self) -> float:
        """Above 1: better than wanted."""
        if self.at_most:
            return self.wanted / self.found if self.found > 0.0 else math.inf
        return self.found / self.wanted

    @property
    def is_kept(self) -> bool:
        """Whether the figure is as wanted."""
        return self.found >= 0.0 and self.margin_ratio >= 1.0

    @property
    def holds(self) -> bool:
        """Whether no promise is broken by it."""
        return self.is_aim or self.is_kept


def claims(study: Study) -> list[Claim]:
    """Every promise with its figure, the worst first."""
    found = [*_speed_claims(study), *_fault_claims(study)]
    return sorted(found, key=lambda one: (one.is_aim, one.margin_ratio if one.found >= 0 else 0.0))


def _speed_claims(study: Study) -> list[Claim]:
    if not study.rounds:
        return []
    wanted = [
        ("batching over the same server without", NATIVE, UNBATCHED, 4.0, False),
        ("Triton's own route over FastAPI", NATIVE, BASELINE, 4.0, False),
        ("`tfdyno serve` over FastAPI", ROUTE, BASELINE, 2.0, False),
        ("`tfdyno serve` over FastAPI", ROUTE, BASELINE, 4.0, True),
        ("`tfdyno serve` over Triton's own route", ROUTE, NATIVE, 0.8, True),
    ]
    found = []
    for words, one, other, least, is_aim in wanted:
        best, low, high = ratio(study.rounds, one, other)
        shown = f"{significant(best)}× ({significant(low)}–{significant(high)})"
        found.append(Claim(words=f"{words}: at least {least:g}×", wanted=least, found=best,
                           shown=shown, is_aim=is_aim))  # fmt: skip
    return found


def _fault_claims(study: Study) -> list[Claim]:
    flood, killed = study.overload, study.kill
    lost = sum(count for code, count in flood.codes.items() if code not in _ANSWERED)
    return [
        Claim(words="10× too much load: p99 of what is accepted at most 2× the promise",
              wanted=2 * flood.slo_s, found=flood.p99_s, at_most=True,
              shown=f"{seconds_words(flood.p99_s)} of {seconds_words(2 * flood.slo_s)}"),
        Claim(words="the rest is refused with 429 or 503, nothing else", wanted=0.5,
              found=float(lost), at_most=True, shown=_codes(flood.codes)),
        Claim(words="memory stays flat meanwhile", wanted=MOST_GROWTH_RATIO,
              found=flood.growth_ratio, at_most=True, shown=f"× {flood.growth_ratio:.3f}"),
        Claim(words="it recovers within 5 s", wanted=MOST_RECOVERY_S,
              found=flood.recovery_s, at_most=True, shown=_time(flood.recovery_s)),
        Claim(words="a killed worker is back within 10 s", wanted=MOST_RESTART_S,
              found=killed.gap_s, at_most=True, shown=_time(killed.gap_s)),
        Claim(words="nothing hangs meanwhile", wanted=0.5,
              found=float(killed.codes.get("timed out", 0)), at_most=True,
              shown=f"slowest answer {seconds_words(killed.slowest_s)}"),
    ]  # fmt: skip


def ratio(rounds: Sequence[Round], one: Kind, other: Kind) -> tuple[float, float, float]:
    """Answers a second of one server over those of another: best, low and high (95 %).

    Paired: each round gives one ratio; the interval is Student's, of their logarithms.
    """
    mine, its = (_rates(rounds, kind) for kind in (one, other))
    found = paired(its, mine)
    half = found.half_width(CONFIDENCE_RATIO)
    low, high = math.exp(found.log_ratio - half), math.exp(found.log_ratio + half)
    return math.exp(found.log_ratio), low, high


def _rates(rounds: Sequence[Round], kind: Kind) -> list[float]:
    return [one.answers_per_s for one in sorted(rounds, key=lambda r: r.number)
            if one.kind == kind.id]  # fmt: skip


def page(study: Study) -> str:
    """The whole page."""
    blocks = [
        "# How fast models are served",
        "Written by `scripts/bench_serving`; do not edit. Measured on "
        f"{study.made_on} with tfdyno {study.revision}, server and client together on "
        f"{study.machine}: the client takes CPU from the server, so what a server can do alone is "
        "more. Ratios between servers are what counts here; how much a machine of yours answers, "
        "[a load test](how-to/load-test.md) says.",
        _claims_block(study),
        *_speed_blocks(study),
        _overload_block(study.overload),
        _kill_block(study.kill),
        "## How to repeat it\n\n```bash\ntfdyno serve --setup    # once: the serving environment\n"
        "scripts/bench_serving\n```\n\nIt takes about 8 minutes on two CPUs, goes on where it "
        "stopped with `--folder`, and ends with 1 where a promise is broken. A load with any "
        "error, or whose server changed midway, ends it.",
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _claims_block(study: Study) -> str:
    rows = [
        [one.words + (" (an aim)" if one.is_aim else ""), one.shown,
         "yes" if one.is_kept else "**no**"]
        for one in claims(study)
    ]  # fmt: skip
    body = _table(["promise", "measured", "kept"], rows)
    return f"## What is promised\n\nThe worst first.\n\n{body}"


def _speed_blocks(study: Study) -> list[str]:
    if not study.rounds:
        return []
    rows = []
    for kind in sorted(KINDS, key=lambda k: median(_rates(study.rounds, k))):
        mine = [one for one in study.rounds if one.kind == kind.id]
        best, low, high = (
            (1.0, 1.0, 1.0) if kind is BASELINE else ratio(study.rounds, kind, BASELINE)
        )
        times = f"{significant(best)} ({significant(low)}–{significant(high)})"
        batch = median([one.mean_batch_rows for one in mine])
        rows.append([
            kind.title,
            significant(median([one.answers_per_s for one in mine])),
            f"{significant(median([one.p50_s for one in mine]) * 1e3)} ms",
            f"{significant(median([one.p99_s for one in mine]) * 1e3)} ms",
            significant(batch) if batch else "–",
            "1" if kind is BASELINE else times,
        ])  # fmt: skip
    count = max(one.number for one in study.rounds) + 1
    head = ["server", "answers/s", "p50", "p99", "rows a batch", "× FastAPI"]
    numbers = sorted({one.number for one in study.rounds})
    each = [
        [kind.title, *(significant(value) for value in _rates(study.rounds, kind))]
        for kind in KINDS
    ]
    return [
        "## Four servers, one model\n\nThe same small convolutional network (28 × 28 × 1 pictures, "
        f"SavedModel, seeded weights), {study.clients} clients that each send one picture and "
        f"wait for its answer, all over HTTP and JSON. {count} rounds of {study.seconds_s:g} s, "
        "order drawn anew in each; medians over the rounds; ratios are paired by round, with 95 % "
        f"intervals.\n\n{_table(head, rows)}",
        "Answers a second in every round:\n\n"
        + _table(["server", *(f"round {n + 1}" for n in numbers)], each),
    ]


def _overload_block(found: Overload) -> str:
    memory = found.memory_bytes
    rows = [
        ["promised p99", seconds_words(found.slo_s)],
        ["options of `tfdyno serve`", f"`{' '.join(found.options)}`"],
        ["capacity", f"{significant(found.capacity_per_s)} answers/s"],
        ["offered", f"{significant(found.offered_per_s)} requests/s for {found.seconds_s:g} s, "
         "Poisson arrivals"],
        ["accepted", f"{significant(found.accepted_per_s)} answers/s"],
        ["p99 of the accepted", seconds_words(found.p99_s)],
        ["answers by code", _codes(found.codes)],
        ["client", f"{found.client_cpu_ratio:.0%} of a CPU, late by at most "
         f"{seconds_words(found.client_late_s)} 99 times in 100, which latencies hold"],
        ["memory of all its processes", f"{format_bytes(memory[0])} at the start, at most "
         f"{format_bytes(max(memory))}, {format_bytes(memory[-1])} at the end" if memory else "–"],
        ["good again after", _time(found.recovery_s)],
    ]  # fmt: skip
    return ("## Ten times too much load\n\nA slow model (so that the client can offer ten times "
            f"what the server can do).\n\n{_table(['', 'measured'], rows)}")  # fmt: skip


def _kill_block(found: Kill) -> str:
    rows = [
        ["answers/s before", significant(found.before_per_s)],
        ["good answers again after", _time(found.gap_s)],
        ["answers by code", _codes(found.codes)],
        ["slowest answer", seconds_words(found.slowest_s)],
        ["answers/s at the end", significant(found.after_per_s)],
    ]
    head = (
        "## A killed worker\n\nThe process that holds the model gets SIGKILL at "
        f"{significant(found.offered_per_s)} requests/s, Poisson arrivals, 30 % of what the server "
        "can do."
    )
    return f"{head}\n\n{_table(['', 'measured'], rows)}"


def _codes(codes: dict[str, int]) -> str:
    return ", ".join(f"{code}: {count:,}" for code, count in codes.items()) or "none"


def _time(seconds: float) -> str:
    return seconds_words(seconds) if seconds >= 0.0 else "never"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
