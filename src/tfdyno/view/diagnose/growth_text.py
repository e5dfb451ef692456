"""The answer of a look at memory alone: growth per step, when memory is full, what keeps it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import to_builtins
from tfdyno.core.base.interval import Interval
from tfdyno.core.base.units import HOUR_S, format_bytes, significant
from tfdyno.view.base.text import WIDTH
from tfdyno.view.diagnose.document import diagnose_document
from tfdyno.view.diagnose.text import Layout
from tfdyno.words.base.amounts import plural, short_hours
from tfdyno.words.base.language import say, say_later

if TYPE_CHECKING:
    from tfdyno.core.measure.memory_outlook import MemoryOutlook
    from tfdyno.view.diagnose.document import DiagnoseReport

TENSORS = "CPU:0"
"""TensorFlow's account of the tensors that its own allocator holds in the host's memory: those of
256 KiB and more (measured with TensorFlow 2.21)."""
_ACCOUNTS = {
    "kernel": say_later("by the pages of the process"),
    "allocator": say_later("by what the allocators have in use"),
    "objects": say_later("by the objects that become more"),
}
_NO_ACCOUNT = {
    "cpu": say_later(
        "no card, and TensorFlow keeps no account of a CPU's tensors here: they are "
        "a part of the host's"
    ),
    "gpu": say_later(
        "how the card's memory moves is not known: too few steps ran, or TensorFlow "
        "keeps no account of it"
    ),
}


def growth_text(told: DiagnoseReport, *, width: int = WIDTH, colour: bool = False) -> str:
    """Return the whole answer.

    Args:
        told: What came out, with its ``growth``.
        width: Columns of the screen.
        colour: Whether to print colours; they only repeat what words say.
    """
    lay = Layout(told, width, colour)
    diagnosis = told.proven.diagnosis
    lines = []
    for one in told.growth:
        lines.append(
            lay.block(say("host") if one.where == "host" else one.where, growth_words(one))
        )
        if one.where != TENSORS:  # a part of the host's, which is told
            lines.append(lay.block(say("full"), full_words(one)))
            lines.append(lay.block("", end_words(one)))
    lines.append(lay.block(say("fits||calls of fit"), fits_words(told)))
    lines.append(lay.block(say("device"), no_account_words(told)))
    blocks = [
        lay.headline(diagnosis.primary),
        "\n".join(filter(None, lines)),
        *(lay.finding(one, first=at == 0) for at, one in enumerate(diagnosis.findings)),
        lay.notes(),
    ]
    return "\n\n".join(block for block in blocks if block)


def no_account_words(told: DiagnoseReport) -> str:
    """Return why no device is told; empty where one is."""
    if not told.growth or any(one.where != "host" for one in told.growth):
        return ""
    return say(_NO_ACCOUNT[told.facts.device])


def leak_document(told: DiagnoseReport) -> dict[str, Any]:
    """Write any diagnosis' document, with ``growth``."""
    return {**diagnose_document(told), "growth": growth_document(told)}


def growth_document(told: DiagnoseReport) -> dict[str, Any]:
    """Write ``{"grows", "step_s", "host": {…}, "devices": {"GPU:0": {…}}}``; bytes, steps, s."""
    rows = {one.where: to_builtins(one) for one in told.growth}
    return {
        "grows": any(one.grows for one in told.growth) or _fits_grow(told),
        "step_s": told.proven.diagnosis.step_s,
        "host": rows.pop("host", None),
        "devices": rows,
    }


def _fits_grow(told: DiagnoseReport) -> bool:
    causes = {one.cause for one in told.proven.diagnosis.findings}
    return bool(causes & {"leak.each_fit", "leak.kept_models"})


def growth_words(one: MemoryOutlook) -> str:
    """Write ``grows by 1.1 MiB a step (1 MiB to 1.2 MiB), seen in 180 steps, by …; 2 GiB``."""
    rate = one.bytes_per_step
    seen = say(
        "seen in {steps}, {account}",
        steps=plural(one.steps, "step"),
        account=say(_ACCOUNTS[one.counted_by]),
    )
    used = say("; {used} in use", used=format_bytes(one.used_bytes)) if one.used_bytes else ""
    if one.where == TENSORS:
        seen = say("tensors of 256 KiB and more, a part of the host's")
    if one.grows:
        return say(
            "grows by {best} a step ({bounds}), {seen}{used}",
            best=format_bytes(rate.best),
            bounds=bytes_range(rate),
            seen=seen,
            used=used,
        )
    return say(
        "no growth above {most} a step, {seen}{used}",
        most=format_bytes(max(0.0, rate.high)),
        seen=seen,
        used=used,
    )


def fits_words(told: DiagnoseReport) -> str:
    """Write ``grows by 8.6 MiB from fit to fit (8.5 MiB to 8.7 MiB), seen in 9 fits, by …``."""
    fits = told.facts.fits
    if fits is None or not fits.is_told:
        return ""
    seen = say(
        "seen in {fits}, {account}",
        fits=plural(fits.fits, "fit"),
        account=say(_ACCOUNTS[fits.counted_by]),
    )
    if not _fits_grow(told):
        most = format_bytes(max(0.0, fits.high_bytes_per_fit))
        return say("no growth above {most} from fit to fit, {seen}", most=most, seen=seen)
    rate = Interval(low=fits.low_bytes_per_fit, best=fits.bytes_per_fit,
                    high=fits.high_bytes_per_fit)  # fmt: skip
    return say(
        "grows by {best} from fit to fit ({bounds}), {seen}",
        best=format_bytes(rate.best),
        bounds=bytes_range(rate),
        seen=seen,
    )


def full_words(one: MemoryOutlook) -> str:
    """Write ``in about 3 h at this rate (2.8 h to 3.3 h; 9,200 steps), on the 15 GiB free``."""
    if one.full_in_s is None or one.full_in_steps is None:
        return say("when it is full cannot be said: what is free is not known") if one.grows else ""
    hours = one.full_in_s.times(1 / HOUR_S)
    steps = significant(one.full_in_steps.best, 2)
    return say(
        "in about {best} at this rate ({hours}; {steps} steps), on the {free} that are free",
        best=short_hours(hours.best),
        hours=hours_words(hours),
        steps=steps,
        free=format_bytes(one.free_bytes, 2),
    )


def hours_words(hours: Interval) -> str:
    """Return a wide range, each bound in its own unit; one time where both read the same."""
    low, high = short_hours(hours.low), short_hours(hours.high)
    return low if low == high else say("{low} to {high}", low=low, high=high)


def end_words(one: MemoryOutlook) -> str:
    """Write ``the 300 steps of this training take 3 GiB (2 GiB to 4 GiB)``, or if too much."""
    if one.until_end_bytes is None:
        return ""
    bounds = bytes_range(one.bytes_per_step.times(one.training_steps))
    is_short = 0 < one.free_bytes <= one.until_end_bytes
    fits = say(", more than is free") if is_short else ""
    steps, taken = plural(one.training_steps, "step"), format_bytes(one.until_end_bytes)
    return say(
        "the {steps} of this training take {taken} ({bounds}){fits}",
        steps=steps,
        taken=taken,
        bounds=bounds,
        fits=fits,
    )


def bytes_range(bounds: Interval) -> str:
    """Write ``1.12 MiB to 1.14 MiB``; one amount where they read the same."""
    low, high = format_bytes(bounds.low), format_bytes(bounds.high)
    return low if low == high else say("{low} to {high}", low=low, high=high)
