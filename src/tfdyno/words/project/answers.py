"""What each step of a project found, in a sentence or two, out of its document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.units import significant
from tfdyno.words.base.amounts import listed, lower, plural
from tfdyno.words.project.key_figures import NOT_KEPT, each, number, part, picked
from tfdyno.words.project.report import basis_words, figure_words, stopped, value_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from tfdyno.core.project.report import KeyFigure, RunTold, StepTold

    Raw = Mapping[str, Any]

_UNREADABLE = (KeyError, IndexError, TypeError, ValueError, AttributeError)


def head(told: RunTold) -> list[tuple[str, str]]:
    """Return the project's answer: a step and what it found, for each that found something.

    Of a kind that several steps have, each stands for itself.
    """
    return [
        (one.run.step, text)
        for one in told.steps
        if (text := answer(one)) and (one.document or one.state == "whole")
    ]


def answer(step: StepTold) -> str:
    """Say what a step found, in a sentence or two; its headline where its kind says nothing."""
    tell = _ANSWERS.get(step.kind)
    try:
        said = " ".join(filter(None, tell(step))) if tell and step.document else ""
    except _UNREADABLE:  # a document of another version: what its run said of it stands
        said = ""
    return said or stopped(step.run.headline)


def figure_of(step: StepTold, name: str) -> KeyFigure | None:
    """Return the first figure of a name; None: the step has none."""
    return next((one for one in step.figures if one.name == name), None)


def _advise(step: StepTold) -> Iterator[str]:
    pick = picked(step.document)
    if not pick:
        yield "No GPU meets what was asked."
        return
    ranking = each(step.document, "ranking")
    row = next((one for one in ranking if same_offer(one, pick)), {})
    count = number(pick, "count") or 1
    name = str(row.get("gpu_name") or pick.get("gpu", ""))
    name = f"{count:g} x {name}" if count > 1 else name
    offer = " ".join(str(row[key]) for key in ("provider", "instance", "region") if row.get(key))
    where = f" ({offer}{', spot' if pick.get('spot') else ''})" if offer else ""
    cost, hours = figure_of(step, "cost"), figure_of(step, "hours")
    price = f" for {figure_words(cost)}" if cost else ", of which no price is known"
    time = f", in {figure_words(hours)}" if hours else ""
    yield f"Advised: {name}{where}{price}{time}; estimated."


def same_offer(one: Raw, pick: Raw) -> bool:
    """Return whether a row of a ranking is what was picked."""
    return all(one.get(name) == pick.get(name) for name in ("gpu", "count", "offer", "spot"))


def _size(step: StepTold) -> Iterator[str]:
    pick = picked(step.document)
    if not pick:
        yield "No machine keeps the promise."
        return
    machines = number(pick, "machines") or 1
    month, p99 = figure_of(step, "usd_per_month"), figure_of(step, "p99")
    goal = part(step.document, "goal")
    asked = number(goal, "requests_per_day")
    yield (
        f"{plural(round(machines), 'machine')} with {pick.get('gpu')}"
        + (f" for {significant(asked)} requests a day" if asked else "")
        + (f": {value_words(month)} a month" if month else "")
        + (f", p99 {value_words(p99)} at the peak" if p99 else "")
        + "; estimated."
    )


def _estimate(step: StepTold) -> Iterator[str]:
    names = [one.of for one in step.figures if one.name == "step"]
    for one in step.figures:
        if one.name == "step" and one.of in names[:2]:
            yield f"On {one.of} a step takes {figure_words(one)}; estimated."


def _bench(step: StepTold) -> Iterator[str]:
    rate, time, against = (
        figure_of(step, "throughput"),
        figure_of(step, "step"),
        figure_of(step, "against"),
    )
    if rate:
        a_step = f", {value_words(time)} a step" if time else ""
        verb = "runs" if part(step.document, "task").get("mode") == "infer" else "trains"
        yield f"It {verb} {figure_words(rate)}{a_step}, {basis_words(rate)}."
    if against and against.low is not None:
        yield f"B is {figure_words(against)} as fast as A."


def _train(step: StepTold) -> Iterator[str]:
    shown = [one for one in step.figures if one.name.startswith("val_")] or list(step.figures)
    epochs = max((len(one) for one in part(step.document, "history").values()
                  if isinstance(one, list)), default=0)  # fmt: skip
    if epochs:
        ends = listed([f"{lower(one.title)} {value_words(one)}" for one in shown[:2]])
        yield f"Trained for {plural(epochs, 'epoch')}" + (f": {ends} at the end." if ends else ".")


def _diagnose(step: StepTold) -> Iterator[str]:
    primary = str(part(step.document, "primary").get("summary", ""))
    if primary:
        yield stopped(primary)
    proofs = list(each(step.document, "proofs"))
    kept = [one for one in proofs if one.get("kept")]
    for one in kept:
        ratio = next((f for f in step.figures
                      if f.name == "proof" and f.of == one.get("cause")), None)  # fmt: skip
        if ratio:
            yield f"The fix is proven: {figure_words(ratio)} as fast."
    if proofs and not kept:
        reason = stopped(str(proofs[0].get("reason", "")))
        yield f"The fix was measured and is not kept: {lower(reason)}"
    fixes = [one for one in each(step.document, "findings") if one.get("steps")]
    if not proofs and fixes and part(step.document, "primary").get("class") not in _NO_FIX:
        yield "No fix was tried."


_NO_FIX = ("healthy", "unknown")
"""Classes of a diagnosis that ask for no change."""


def _tune(step: StepTold) -> Iterator[str]:
    proof, best = figure_of(step, "proof"), part(step.document, "best")
    if proof and proof.low is not None:
        changes = settings_words(best.get("changes"))
        trials = _trials(step.document)
        settings = f" with {changes}" if changes else ""
        tried = f" out of {trials}" if trials else ""
        yield f"Tuning gained {figure_words(proof)}{settings}{tried}."
        reason = str(part(step.document, "proof").get("reason", ""))
        yield stopped(reason.partition(". ")[2])  # what it does not prove
        return
    yield stopped(str(step.document.get("headline") or ""))
    if measured := figure_of(step, NOT_KEPT):
        reason = stopped(str(part(step.document, "proof").get("reason", "")))
        yield f"Measured: {figure_words(measured)}, and not kept. {reason}"
    if trials := _trials(step.document):
        yield f"It made {trials}."


def _trials(document: Raw) -> str:
    """Write ``8 trials, 2 of which failed``, of those that ran; empty where none did."""
    ran = [one for one in each(document, "trials") if one.get("ran")]
    failed = sum(one.get("status") == "failed" for one in ran)
    lost = f", {failed} of which failed" if failed else ""
    return plural(len(ran), "trial") + lost if ran else ""


def settings_words(found: object) -> str:
    """Return settings as ``precision=mixed_float16, execution=xla``, however they are written."""
    if isinstance(found, dict):
        return ", ".join(f"{name}={value}" for name, value in found.items())
    if isinstance(found, list | tuple):
        return ", ".join(map(str, found))
    return str(found) if found else ""


def _export(step: StepTold) -> Iterator[str]:
    formats = list(each(step.document, "formats"))
    passed = [str(one.get("format")) for one in formats if not one.get("failures")]
    lost = [str(one.get("format")) for one in formats if one.get("failures")]
    if passed:
        yield f"{listed(passed)} passed {'their' if passed[1:] else 'its'} gates."
        yield _accuracy(formats)
    if lost:
        reasons = [str(one["failures"][0]) for one in formats if one.get("failures")]
        gates = "their gates" if lost[1:] else "its gates"
        yield f"{listed(lost)} did not pass {gates}: {listed(reasons)}."


def _accuracy(formats: Sequence[Raw]) -> str:
    """Return how accuracy changed, in points, where it was looked at."""
    said = []
    for one in formats:
        before, after = number(one, "accuracy_before"), number(one, "accuracy_after")
        if before is None or after is None or one.get("failures"):
            continue
        points = 100 * (after - before)
        change = "unchanged" if not points else f"{points:+.2f} points".replace("-", "−")
        rows = number(part(part(one, "verification"), "accuracy"), "rows")
        of = f" of {plural(round(rows), 'row')}" if rows else ""
        said.append(f"{one.get('format')} {100 * after:.4g} %{of} ({change})")
    return f"Accuracy: {listed(said)}." if said else "Accuracy was not looked at."


def _edge(step: StepTold) -> Iterator[str]:
    devices = list(each(step.document, "devices"))
    fits = [one for one in devices if one.get("fits")]
    yield f"It fits on {len(fits)} of {plural(len(devices), 'device')}."
    call = figure_of(step, "call")
    if call:
        yield f"A call takes {figure_words(call)} on this CPU with {call.of}."


def _models(step: StepTold) -> Iterator[str]:
    found = step.document
    if found.get("id"):
        promoted = ", in production" if found.get("promoted") else ""
        yield f"Kept as {found['id']}{promoted}."


def limit_words(seconds: float) -> str:
    """Return a promise, as it was given."""
    return f"{1e3 * seconds:,.6g} ms"


def _load(step: StepTold) -> Iterator[str]:
    if step.document.get("verdict") == "failed":
        faults = [str(one) for one in step.document.get("faults") or []]
        yield stopped(f"The load test failed: {lower(faults[0])}" if faults else
                       "The load test failed")  # fmt: skip
        return
    knee, rate, p99 = (figure_of(step, name) for name in ("knee", "accepted", "p99"))
    limit = number(step.document, "p99_limit_s")
    if knee and limit:
        yield f"It answers up to {value_words(knee)} with p99 within {limit_words(limit)}."
    if rate and p99:
        yield f"At {value_words(rate)} its p99 was {figure_words(p99)}, measured."


_ANSWERS: dict[str, Callable[[StepTold], Iterator[str]]] = {
    "advise": _advise, "size": _size, "estimate": _estimate, "bench": _bench, "train": _train,
    "diagnose": _diagnose, "tune": _tune, "export": _export, "edge": _edge, "models": _models,
    "load": _load,
}  # fmt: skip
