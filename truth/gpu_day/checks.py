"""From what a command printed as JSON to checks: arithmetic on documents, nothing is run here."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from gpu_day.verdict import Check

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.base.untyped import Value

Document = dict[str, Any]
LOSS_RATIO = 0.01
"""How far losses of two trainings in float16 may part that round alike only by chance."""
ONNX_DIFFERENCE = 2e-3
"""In outputs of a network with float16 inside, about one: four units in the last place."""
ANSWER_DIFFERENCE = 2e-3
"""The same, for a model that is served."""
LEAST_KERNELS = 10
"""Of a card that is calibrated in half a minute."""
GIB = 1 << 30


def of_doctor(told: Document, *, cpu: bool) -> list[Check]:
    """The machine's card is found and TensorFlow computes on it; no error is named."""
    child = told.get("machine", {}).get("child", {})
    errors = [one["cause"] for one in told.get("findings", ()) if one["severity"] == "error"]
    ran = len(child.get("checks") or ())
    checks = [
        Check(what="errors named", found=", ".join(errors) or "none", wanted="none",
              ok=not errors),
        Check(what="operations that TensorFlow computed", found=str(ran), wanted="1 or more",
              ok=ran > 0),
    ]  # fmt: skip
    if not cpu:
        seen = len(child.get("gpus") or ())
        checks.append(Check(what="cards that TensorFlow sees", found=str(seen), wanted="1 or more",
                            ok=seen > 0))  # fmt: skip
    return checks


def of_estimate(told: Document, measured: Document) -> list[Check]:
    """A step as ``fit`` takes it, and its memory, lie in what was told before."""
    one = (told.get("estimates") or [{}])[0]
    pairs = (
        ("step of fit", one.get("fit_step_s"), measured.get("median_s"), _ms),
        ("peak memory", one.get("peak_memory_bytes"), _device_peak(measured), _gib),
    )
    return [_within(what, interval, value, shown) for what, interval, value, shown in pairs]


def _device_peak(measured: Document) -> float | None:
    """What the allocator of the card counted; a process' own memory is another thing."""
    return measured.get("peak_memory_bytes") if measured.get("memory_kind") != "process" else None


def _within(what: str, interval: Document | None, value: float | None, shown: Value) -> Check:
    if not interval or not value:
        return Check(what=what, found="not told", wanted="an estimate and a measurement", ok=False)
    low, best, high = (float(interval[name]) for name in ("low", "best", "high"))
    return Check(
        what=f"{what}, measured",
        found=f"{shown(value)} ({100 * (best / value - 1):+.0f} % by the estimate)",
        wanted=f"{shown(low)} to {shown(high)}",
        ok=low <= value <= high,
    )


def of_alike(told: Document) -> list[Check]:
    """Two sides that are the same are not told apart."""
    found = told.get("comparison") or {}
    verdict = str(found.get("verdict", "none"))
    return [Check(what="the same against itself", found=_compared(found), wanted="no difference",
                  ok=verdict == "no_difference")]  # fmt: skip


def of_setting(told: Document, setting: str) -> list[Check]:
    """A setting has a ratio with an interval that is ordered, whichever way it goes."""
    found = told.get("comparison") or {}
    low, high = (found.get("interval") or [math.nan, math.nan])[:2]
    ratio = found.get("ratio") or math.nan
    return [Check(what=f"with {setting}", found=_compared(found),
                  wanted="a ratio within its interval", ok=low <= ratio <= high)]  # fmt: skip


def _compared(found: Document) -> str:
    low, high = (found.get("interval") or [math.nan, math.nan])[:2]
    verdict = str(found.get("verdict", "no verdict")).replace("_", " ")
    if not found.get("ratio"):
        reason = str(found.get("reason") or "nothing was compared")
        return f"{verdict}: {reason.rstrip('.')}"
    return f"{verdict}, {found['ratio']:.3f} times as fast ({low:.3f}–{high:.3f})"


def of_diagnosis(told: Document, true_class: str, *, cpu: bool) -> list[Check]:
    """The planted cause is named, and the split of the step says where its time goes."""
    primary = told.get("primary") or {}
    split = {name: value for name, value in (told.get("split_s") or {}).items() if value > 0}
    checks = [
        Check(what="cause", found=str(primary.get("cause", "none")), wanted=f"{true_class}.*",
              ok=primary.get("class") == true_class),
        Check(what="split of the step", found=_split(split), wanted="not empty", ok=bool(split)),
    ]  # fmt: skip
    if not cpu:
        kinds = {name: value for name, value in (told.get("compute_s") or {}).items() if value > 0}
        checks.append(Check(what="split of what the card computes", found=_split(kinds),
                            wanted="not empty", ok=bool(kinds)))  # fmt: skip
    return checks


def _split(parts: dict[str, float]) -> str:
    largest = sorted(parts.items(), key=lambda one: -one[1])[:4]
    return ", ".join(f"{name} {_ms(value)}" for name, value in largest) or "empty"


def of_recipe(told: Document, asked: dict[str, Any]) -> list[Check]:
    """What was asked for is what it was trained with."""
    recipe = told.get("recipe") or {}
    return [Check(what=name, found=str(recipe.get(name, "not told")), wanted=str(value),
                  ok=recipe.get(name) == value) for name, value in asked.items()]  # fmt: skip


def of_resume(whole: Sequence[float], resumed: Sequence[float], *, killed_at: int) -> list[Check]:
    """After a kill and a resume the losses are those of the training that was not broken."""
    alike = len(whole) == len(resumed) > 0
    apart = max(
        (abs(a - b) / abs(a) for a, b in zip(whole, resumed, strict=False)), default=math.inf
    )
    told = "equal to the last digit" if alike and whole == resumed else f"{100 * apart:.3g} % apart"
    return [
        Check(what="epochs", found=str(len(resumed)), wanted=str(len(whole)), ok=alike),
        Check(what="killed after a checkpoint", found=f"step {killed_at}", wanted="step 1 or later",
              ok=killed_at > 0),
        Check(what="losses after kill and resume", found=told,
              wanted=f"equal, or {100 * LOSS_RATIO:g} % apart at most",
              ok=alike and apart <= LOSS_RATIO),
    ]  # fmt: skip


def of_tuning(told: Document) -> list[Check]:
    """Trials were measured, and what is advised is not slower than the start."""
    measured = [one for one in told.get("trials", ()) if one.get("samples_per_s")]
    start = next((one["samples_per_s"] for one in measured if not one.get("changes")), 0.0)
    best = (told.get("best") or {}).get("samples_per_s") or 0.0
    return [
        Check(what="trials measured", found=str(len(measured)), wanted="2 or more",
              ok=len(measured) >= 2),
        Check(what="the best trial", found=f"{best:,.0f} samples/s",
              wanted=f"{start:,.0f} samples/s or more", ok=best >= start > 0),
    ]  # fmt: skip


def of_export(told: Document) -> list[Check]:
    """The exported model answers as the model does."""
    return [
        Check(
            what=f"largest difference as {one['format']}",
            found=f"{one['max_difference']:.2g}",
            wanted=f"{ONNX_DIFFERENCE:g} or less, and kept",
            ok=bool(one["kept"]) and one["max_difference"] <= ONNX_DIFFERENCE,
        )
        for one in told.get("formats", ())
    ]


def of_answers(served: Sequence[Sequence[float]], own: Sequence[Sequence[float]]) -> list[Check]:
    """A served model answers as it does when it is called."""
    alike = len(served) == len(own) > 0 and all(
        len(a) == len(b) for a, b in zip(served, own, strict=False)
    )
    apart = math.inf
    if alike:
        pairs = zip(served, own, strict=True)
        apart = max(abs(x - y) for a, b in pairs for x, y in zip(a, b, strict=True))
    return [
        Check(what="answers", found=str(len(served)), wanted=str(len(own)), ok=alike),
        Check(what="largest difference of an answer", found=f"{apart:.2g}",
              wanted=f"{ANSWER_DIFFERENCE:g} or less", ok=apart <= ANSWER_DIFFERENCE),
    ]  # fmt: skip


def of_truth(told: Document) -> list[Check]:
    """Steps of the plan were measured; none failed."""
    rows, failures = int(told.get("rows") or 0), told.get("failed") or []
    reasons = ", ".join(f"{one.get('model')}: {one.get('reason')}" for one in failures[:3])
    return [
        Check(what="rows measured", found=str(rows), wanted="1 or more", ok=rows > 0),
        Check(what="steps that failed", found=reasons or "none", wanted="none", ok=not failures),
    ]


def of_calibration(told: Document) -> list[Check]:
    """A card file was made, and kernels were timed for it."""
    kernels = (told.get("card") or {}).get("kernels") or ()
    timed = sum(0 < one.get("kernel_s", 0.0) < math.inf for one in kernels)
    return [Check(what="kernels timed", found=str(timed), wanted=f"{LEAST_KERNELS} or more",
                  ok=timed >= LEAST_KERNELS)]  # fmt: skip


def _ms(seconds: float) -> str:
    return f"{seconds * 1e6:.3g} µs" if seconds < 1e-3 else f"{seconds * 1e3:.4g} ms"


def _gib(value: float) -> str:
    return f"{value / GIB:.3g} GiB"
