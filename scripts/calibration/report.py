"""The accuracy page and its summary: worst first, all figures from one fit."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from calibration import judge
from tfdyno.catalog.time_model import time_model

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

    from calibration.judge import Score
    from calibration.run import Fitted

HEAD = "| stratum | rows | groups | mean | median | 90 % below | bias | interval holds |"
RULE = "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
WORST = 25


def summary(fitted: Fitted) -> str:
    """A few lines for the terminal."""
    lines = [f"{len(fitted.design.rows)} rows, {fitted.seconds_s:.0f} s"]
    for name in fitted.by_name:
        found = _score(fitted, fitted.main, name)
        pairs, good = judge.pairs_in_order(fitted.design, fitted.main, fitted.by_name[name])
        lines.append(
            f"{name:16} {found.groups} groups: mean {found.mean:.1%}, median {found.median:.1%}, "
            f"p90 {found.p90:.1%}, bias {found.bias:.2f}, interval holds {found.coverage:.1%}; "
            f"{good:.1%} of {pairs} pairs in order"
        )
    for name in ("card left out", "model left out"):
        lines += ["", name, *_strata(fitted, name)]
    return "\n".join(lines)


def page(fitted: Fitted) -> str:
    """The page ``docs/accuracy.md``."""
    parts = [INTRODUCTION.format(rows=len(fitted.design.rows), groups=_groups(fitted))]
    parts.append("## All rows\n\n" + "\n".join(_overall(fitted)))
    parts.append("## Worst rows (card left out)\n\n" + "\n".join(_worst(fitted)))
    for name in ("card left out", "model left out"):
        parts.append(f"## By stratum, {name}\n\n" + "\n".join([HEAD, RULE, *_strata(fitted, name)]))
    for title, key in (("card", "chip"), ("kind of model", "architecture")):
        name = "card left out" if key == "chip" else "model left out"
        parts.append(f"## By {title}, left out\n\n" + "\n".join(_by(fitted, key, name)))
    parts.append("## Constants\n\n" + "\n".join(_constants(fitted)))
    return "\n\n".join(parts) + "\n"


INTRODUCTION = """# Accuracy

Written by `scripts/fit`; do not edit. Predicted step time against {rows} published measurements
({groups} groups of model, card, precision and mode) from `truth/published/measurements.csv`.

Error is |predicted − measured| / measured, averaged inside a group first, then over groups.
*Card left out*: the constants were fitted without any row of that chip. *Model left out*: without
any row of that kind of model, whatever its size. Interval widths were learned without the rows that
they are judged on. Rows that contradict others, listed by rule in `truth/README.md`, are judged but
not learned from. Steps bound by launches (CNN batch below 16) and fused attention have lines of
their own and are not part of "all". Predictions are those of the quick route. The choice of terms
was made on these rows too: expect errors up to 1.3 times as large on new models and cards."""


def scaling_section(errors: Floats, constants: Mapping[str, float]) -> str:
    """Efficiency on several GPUs against the same run on one, as a section of the page."""
    found = ", ".join(f"{name} {value:.3g}" for name, value in constants.items())
    return (
        "## Several GPUs\n\n"
        f"Weak-scaling efficiency, 2–8 GPUs over the card's own link, {len(errors)} groups: error "
        f"mean {errors.mean():.1%}, median {np.median(errors):.1%}, "
        f"90 % below {np.quantile(errors, 0.9):.1%}. All rows were seen by the fit ({found}).\n"
    )


def _overall(fitted: Fitted) -> Iterable[str]:
    yield HEAD.replace("stratum", "how") + " pairs in order |"
    yield RULE + " ---: |"
    for name in fitted.by_name:
        pairs, good = judge.pairs_in_order(fitted.design, fitted.main, fitted.by_name[name])
        line = _line(name, _score(fitted, fitted.main, name))
        yield f"{line} {good:.1%} of {pairs:,} |"


def _strata(fitted: Fitted, name: str) -> list[str]:
    design = fitted.design
    labels: defaultdict[str, list[int]] = defaultdict(list)
    for index, row in enumerate(design.rows):
        if row.launch_bound or row.fused_attention:
            labels["launch-bound" if row.launch_bound else "fused attention"].append(index)
            continue
        stratum = f"{design.families[index]}, {row.mode}, {row.execution}, {row.framework}"
        labels[stratum].append(index)
    found = [(label, _score(fitted, _mask(fitted, index), name)) for label, index in labels.items()]
    return [_line(label, each) for label, each in sorted(found, key=lambda f: -f[1].mean)]


def _by(fitted: Fitted, key: str, name: str) -> Iterable[str]:
    labels: defaultdict[str, list[int]] = defaultdict(list)
    for index in np.flatnonzero(fitted.main):
        labels[getattr(fitted.design.rows[index], key)].append(int(index))
    found = [(label, _score(fitted, _mask(fitted, index), name)) for label, index in labels.items()]
    yield HEAD.replace("stratum", "left out")
    yield RULE
    yield from (_line(label, each) for label, each in sorted(found, key=lambda f: -f[1].mean))


def _worst(fitted: Fitted) -> Iterable[str]:
    predicted = fitted.by_name["card left out"]
    error = np.where(fitted.main, np.abs(np.log(predicted) - fitted.design.log_step), 0.0)
    yield "| predicted / measured | model | batch | precision | mode | execution | card | source |"
    yield "| ---: | --- | ---: | --- | --- | --- | --- | --- |"
    for index in np.argsort(-error)[:WORST]:
        row = fitted.design.rows[index]
        ratio = predicted[index] / row.step_s
        yield (
            f"| {ratio:.2f} | {row.function} | {row.batch_size} | {row.precision} | {row.mode} "
            f"| {row.execution} | {row.gpu} | {row.source} |"
        )


def _constants(fitted: Fitted) -> Iterable[str]:
    yield "| constant | value | unit | allowed | |"
    yield "| --- | ---: | --- | --- | --- |"
    for name, parameter in time_model().parameters.items():
        if not parameter.fitted:
            continue
        value = fitted.constants[name]
        bound = min(abs(value / parameter.high - 1), abs(value / (parameter.low or 1e-9) - 1))
        remark = "at its bound: not identified" if bound < 0.01 else ""
        allowed = f"{parameter.low:g}–{parameter.high:g}"
        yield f"| {name} | {value:.3g} | {parameter.unit} | {allowed} | {remark} |"


def _line(label: str, found: Score) -> str:
    return (
        f"| {label} | {found.rows:,} | {found.groups} | {found.mean:.1%} | {found.median:.1%} "
        f"| {found.p90:.1%} | {found.bias:.2f} | {found.coverage:.0%} |"
    )


def _score(fitted: Fitted, chosen: NDArray[np.bool_], name: str) -> Score:
    width = fitted.row_widths[name]
    found = judge.score(fitted.design, chosen, fitted.by_name[name], width)
    if found is None:
        raise ValueError(f"no rows to judge for {name}")
    return found


def _mask(fitted: Fitted, index: list[int]) -> NDArray[np.bool_]:
    mask = np.zeros(len(fitted.design.rows), dtype=bool)
    mask[index] = True
    return mask


def _groups(fitted: Fitted) -> int:
    return len({row.group for row in fitted.design.rows})
