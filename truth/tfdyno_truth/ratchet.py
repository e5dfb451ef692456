"""The stored scores, which may only improve: what is kept, what got worse, and who accepted it."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tfdyno.core.base.codec import from_builtins, read_toml, to_json, write_atomic
from tfdyno_truth.scaling import LEFT_OUT, Spread
from tfdyno_truth.sheet import ALL, FRAMEWORKS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from tfdyno.core.choose.time_model import TimeModel
    from tfdyno_truth.scaling import ScalingScores
    from tfdyno_truth.sheet import Line, Sheet

BIG_STRATUM = 20
"""Groups from which on a stratum has scores of its own; smaller ones move by chance."""
WHOLES = (ALL, *FRAMEWORKS.values())
COVERAGE_BAND = (0.88, 0.92)
"""Coverage that the 90 % intervals aim at; inside the band no value is better than another."""
SLACK_WHOLE = {"mean": 0.0005, "p90": 0.002, "coverage": 0.005, "half_width": 0.005,
               "in_order": 0.001, "close_in_order": 0.005}  # fmt: skip
"""How much worse still counts as equal: the solver's noise and the rounding of what is stored."""
SLACK_STRATUM = {"mean": 0.01, "p90": 0.03}
"""A stratum may lose a little when the whole does not; how far its intervals hold is not judged."""
SLACK_SCALING = {"mean": 0.002, "median": 0.002, "p90": 0.005, "coverage": 0.01,
                 "interval_score": 0.005}  # fmt: skip
SLACK_SCALING_PART = {"mean": 0.01, "median": 0.01, "p90": 0.03}
"""Of efficiencies on several GPUs: of wholes, and of nodes and bridges, which have few rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Scores of one set of rows as they are stored, rounded to 0.01 %."""

    groups: int
    mean: float
    median: float
    p90: float
    coverage: float
    half_width: float
    in_order: float | None = None
    close_in_order: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """Scores that got worse on purpose."""

    on: str
    reason: str
    worse: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """What ``truth/scores.toml`` holds."""

    constants: str
    """Fingerprint of the shipped constants that the scores belong to."""
    rows: int
    ways: dict[str, dict[str, Entry]]
    """``shipped``, ``gpu``, ``model``, ``pair`` -> set of rows -> scores."""
    accepted: tuple[Accepted, ...] = ()
    scaling: dict[str, dict[str, Spread]] = field(default_factory=dict)
    """``model``, ``gpu`` -> set of runs on several GPUs -> errors of the efficiency."""


def fingerprint(model: TimeModel) -> str:
    """A short hash of all constants and widths: other numbers have another."""
    told = {
        "values": dict(sorted(model.values.items())),
        "widths": dict(sorted(model.intervals.items())),
        "clocks": dict(sorted(model.sustained_clock.items())),
    }
    return hashlib.sha256(to_json(told)).hexdigest()[:16]


def scores_of(
    sheets: Mapping[str, Sheet],
    model: TimeModel,
    rows: int,
    accepted: tuple[Accepted, ...] = (),
    scaling: ScalingScores | None = None,
) -> Scores:
    """What is to be stored of the sheets of all ways, and of the runs on several GPUs."""
    spreads = scaling.spreads if scaling else {}
    return Scores(
        constants=fingerprint(model),
        rows=rows,
        ways={way: dict(_entries(sheet)) for way, sheet in sheets.items()},
        accepted=accepted,
        scaling={way: spreads[way] for way in LEFT_OUT if way in spreads},
    )


def _entries(sheet: Sheet) -> Iterator[tuple[str, Entry]]:
    for line in sheet.whole:
        yield line.label, _entry(line)
    for framework, lines in sheet.strata.items():
        for line in lines:
            if line.score.groups >= BIG_STRATUM:
                yield f"{framework}, {line.label}", _entry(line)


def _entry(line: Line) -> Entry:
    score, order = line.score, line.order

    def share(value: float) -> float | None:
        return None if math.isnan(value) else round(value, 6)

    return Entry(
        groups=score.groups,
        mean=round(score.mean, 6),
        median=round(score.median, 6),
        p90=round(score.p90, 6),
        coverage=round(score.coverage, 6),
        half_width=round(score.half_width, 6),
        in_order=share(order.in_order) if order else None,
        close_in_order=share(order.close_in_order) if order else None,
    )


def worsened(before: Scores | None, after: Scores) -> tuple[str, ...]:
    """What got worse, in words; the shipped constants' own scores are no matter of the ratchet.

    What a fit says of rows that it has seen can always be improved by more constants, so only the
    scores with something left out count.
    """
    if before is None:
        return ()
    found = []
    for way in before.ways:
        if way == "shipped":
            continue
        for label, old in before.ways[way].items():
            new = after.ways.get(way, {}).get(label)
            if new is None:
                found.append(f"{way} left out, {label}: no longer scored")
                continue
            slack = SLACK_WHOLE if label in WHOLES else SLACK_STRATUM
            found += [f"{way} left out, {label}: {words}" for words in _worse(old, new, slack)]
    for way, spreads in before.scaling.items():
        for label, known in spreads.items():
            again = after.scaling.get(way, {}).get(label)
            if again is None:
                found.append(f"several GPUs, {way} left out, {label}: no longer scored")
                continue
            slack = SLACK_SCALING if label in WHOLES else SLACK_SCALING_PART
            found += [f"several GPUs, {way} left out, {label}: {words}"
                      for words in _worse(known, again, slack)]  # fmt: skip
    return tuple(found)


def _worse(old: Entry | Spread, new: Entry | Spread, slack: Mapping[str, float]) -> Iterator[str]:
    for metric, allowed in slack.items():
        a, b = getattr(old, metric), getattr(new, metric)
        if a is None or b is None:
            continue
        if _badness(metric, b) > _badness(metric, a) + allowed:
            yield f"{metric.replace('_', ' ')} {a:.2%} -> {b:.2%}"


def _badness(metric: str, value: float) -> float:
    """A number that is smaller for a better score."""
    if metric == "coverage":
        low, high = COVERAGE_BAND
        return max(low - value, value - high, 0.0)
    return -value if metric.endswith("in_order") else value


def read_scores(path: Path) -> Scores | None:
    """The stored scores; None when there is no file yet, ``UsageError`` when it is not whole."""
    if not path.exists():
        return None
    return from_builtins(read_toml(path), Scores, where=str(path))


def write_scores(path: Path, scores: Scores) -> None:
    """Store the scores, atomically."""
    write_atomic(path, "\n".join(_lines(scores)).encode())


def _lines(scores: Scores) -> Iterable[str]:
    yield "# Written by `tfdyno-truth fit`: scores as shipped, and with rows left out;"
    yield "# the latter may only improve; what got worse on purpose stands below with its reason."
    yield f'constants = "{scores.constants}"'
    yield f"rows = {scores.rows}"
    for way, entries in scores.ways.items():
        for label, entry in entries.items():
            yield f'\n[ways.{way}."{label}"]'
            for name in Entry.__slots__:
                value = getattr(entry, name)
                if value is not None:
                    yield f"{name} = {value}"
    for way, spreads in scores.scaling.items():
        for label, spread in spreads.items():
            yield f'\n[scaling.{way}."{label}"]'
            for name in Spread.__slots__:
                if getattr(spread, name) is not None:
                    yield f"{name} = {getattr(spread, name)}"
    for one in scores.accepted:
        yield f"\n[[accepted]]\non = {_text(one.on)}\nreason = {_text(one.reason)}"
        yield "worse = [\n" + "".join(f"    {_text(words)},\n" for words in one.worse) + "]"
    yield ""


def _text(words: str) -> str:
    """A TOML string: JSON's escapes are TOML's too."""
    return to_json(words).decode()
