"""A project in one line, and what heads the section of each step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.words.base.amounts import capital, plural, roughly_usd
from tfdyno.words.project.answers import figure_of, limit_words, same_offer
from tfdyno.words.project.key_figures import each, number, part, picked
from tfdyno.words.project.report import figure_words, value_words

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.project.report import KeyFigure, RunTold, StepTold


def headline(told: RunTold) -> str:
    """Say the project in one line: where to train, how fast, what it serves; else how far it is.

    Where the run failed or was stopped that comes first.
    """
    lost = [one for one in told.steps if one.run.status in ("failed", "stopped") and one.reached]
    if lost:
        verb = "failed" if lost[0].run.status == "failed" else "was stopped"
        return f"{told.run.project}: {lost[0].run.step} {verb}"
    said = [text for kind, tell in _BRIEF if (text := _first(told, kind, tell))]
    if not said:
        return f"{told.run.project}: {plural(len(told.steps), 'step')}"
    return capital("; ".join(said))


def _first(told: RunTold, kind: str, tell: Callable[[StepTold], str]) -> str:
    return next((text for one in told.steps if one.kind == kind and (text := tell(one))), "")


def _brief_advise(step: StepTold) -> str:
    cost, pick = figure_of(step, "cost"), picked(step.document)
    if not cost:
        return ""
    row = next((one for one in each(step.document, "ranking") if same_offer(one, pick)), {})
    name = row.get("gpu_name") or pick.get("gpu", "")
    return f"train on {name} for {roughly_usd(cost.value)}"


def _brief_bench(step: StepTold) -> str:
    rate, environment = figure_of(step, "throughput"), part(step.document, "environment")
    card = next((str(one.get("name", "")) for one in each(environment, "cards")), "")
    # What was measured is seldom the card that is advised.
    device = card if environment.get("device") == "gpu" else "a CPU"
    return f"{value_words(rate)} measured on {device or 'a GPU'}" if rate else ""


def _brief_tune(step: StepTold) -> str:
    proof = _proven(step)
    return f"{value_words(proof)} by tuning" if proof else ""


def _brief_load(step: StepTold) -> str:
    knee, p99 = figure_of(step, "knee"), number(step.document, "p99_limit_s")
    if knee and p99:
        return f"serves {value_words(knee)} within {limit_words(p99)}"
    rate = figure_of(step, "accepted")
    return f"serves {value_words(rate)}" if rate else ""


_BRIEF: tuple[tuple[str, Callable[[StepTold], str]], ...] = (
    ("advise", _brief_advise), ("bench", _brief_bench), ("tune", _brief_tune),
    ("load", _brief_load),
)  # fmt: skip


def heading(step: StepTold) -> str:
    """Return what a step found, in few words; empty: the first sentence of its answer will do."""
    tell = _HEADINGS.get(step.kind)
    return tell(step).rstrip(".") if tell and step.document else ""


def _own_headline(step: StepTold) -> str:
    return str(step.document.get("headline") or "")


def _heading_bench(step: StepTold) -> str:
    rate, time = figure_of(step, "throughput"), figure_of(step, "step")
    return f"{value_words(rate)}, {value_words(time)} a step" if rate and time else ""


def _heading_estimate(step: StepTold) -> str:
    time = figure_of(step, "step")
    return f"A step takes about {value_words(time)} on {time.of}" if time else ""


def _heading_train(step: StepTold) -> str:
    best = step.figures[0] if step.figures else None
    return f"{best.title} is {value_words(best)} at the end" if best else ""


def _heading_tune(step: StepTold) -> str:
    proof = _proven(step)
    return f"Tuning gained {figure_words(proof)}" if proof else _own_headline(step)


_HEADINGS: dict[str, Callable[[StepTold], str]] = {
    "advise": _own_headline, "size": _own_headline, "bench": _heading_bench,
    "estimate": _heading_estimate, "train": _heading_train, "tune": _heading_tune,
}  # fmt: skip


def _proven(step: StepTold) -> KeyFigure | None:
    """Return the gain of a tuning that was kept, where it is surely above 1."""
    proof = figure_of(step, "proof")
    return proof if proof and proof.low is not None and proof.low > 1 else None
