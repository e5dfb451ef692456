"""An export in words: what came of it, its cells in a table, and what to do next."""

from __future__ import annotations

import math
import shlex
from typing import TYPE_CHECKING

from tfdyno.core.base.units import format_bytes, significant
from tfdyno.words.base.amounts import listed
from tfdyno.words.bench.measurement import seconds_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.deploy.export import Artefact, ExportResult, Latency, TensorInfo

HEADINGS = ("format", "size", "max diff", "mean diff", "same top-1", "accuracy", "batch 1",
            "against it", "batch 32", "against it")  # fmt: skip
ALIGN = "<>>>>>>>>>"
SPARE = (3, 9, 8, 4, 7, 6, 1)
NOTHING = "–"


def headline(found: ExportResult) -> str:
    """Return what was kept, and what was not."""
    kept: list[str] = [one.format for one in found.artefacts if one.kept]
    failed: list[str] = [one.format for one in found.artefacts if not one.kept]
    title = found.source.title
    if not failed:
        return f"{title} is exported to {listed(kept)}"
    lost = f"did not pass and {'are' if len(failed) > 1 else 'is'} not kept"
    if not kept:
        return f"{title}: {listed(failed)} {lost}"
    return f"{title} is exported to {listed(kept)}; {listed(failed)} {lost}"


def answer(found: ExportResult) -> str:
    """Say on what it was compared, and the worst of it."""
    first = found.artefacts[0].verification
    worst = max(found.artefacts, key=lambda one: one.verification.max_abs)
    parts = [f"Compared on {first.data}"]
    largest = difference_words(worst.verification.max_abs)
    parts.append(f"the largest difference of any output is {largest} ({worst.format})")
    judged = [one for one in found.artefacts if one.verification.accuracy]
    if judged:
        lost = max(judged, key=lambda one: one.verification.accuracy.drop_ratio)  # type: ignore[union-attr]
        parts.append(accuracy_words(lost))
    return "; ".join(parts) + "."


def accuracy_lines(found: ExportResult) -> str:
    """Write a line for every judged format; one for those that came out alike."""
    told: dict[tuple[float, float], list[str]] = {}
    for one in found.artefacts:
        if one.verification.accuracy:
            accuracy = one.verification.accuracy
            key = (accuracy.before_ratio, accuracy.after_ratio)
            told.setdefault(key, []).append(one.format)
    return " ".join(
        f"Accuracy is {100 * before:.2f}\u00a0% before and {100 * after:.2f}\u00a0% after "
        f"({listed(kinds)})."
        for (before, after), kinds in told.items()
    )


def accuracy_words(one: Artefact) -> str:
    """Write ``accuracy 96.1 % before and 95.9 % after (litert-int8)``."""
    accuracy = one.verification.accuracy
    if accuracy is None:
        return ""
    before, after = (f"{100 * ratio:.2f} %" for ratio in
                     (accuracy.before_ratio, accuracy.after_ratio))  # fmt: skip
    return f"accuracy is {before} before and {after} after ({one.format})"


def cells(one: Artefact) -> list[str]:
    """Return the row of a format under ``HEADINGS``."""
    found = one.verification
    accuracy, top1 = found.accuracy, found.top1_ratio
    mean = max((each.mean_abs for each in found.differences), default=0.0)
    timed = {each.batch_size: each for each in found.latencies}
    small = timed.get(1) or next(iter(timed.values()), None)
    large = timed.get(32)
    return [
        one.format,
        format_bytes(one.size_bytes),
        difference_words(found.max_abs),
        difference_words(mean),
        NOTHING if top1 is None else percent_words(top1),
        NOTHING
        if accuracy is None
        else f"{100 * accuracy.before_ratio:.2f} → {100 * accuracy.after_ratio:.2f} %",
        *_timed(small),
        *_timed(large),
    ]


def used_columns(rows: Sequence[Sequence[str]]) -> list[int]:
    """Return places of the headings that some format has a figure under."""
    return [i for i in range(len(HEADINGS)) if i == 0 or any(row[i] != NOTHING for row in rows)]


def difference_words(value: float) -> str:
    """Write ``0`` where equal to the last bit, else two digits; ``no number``: NaN on one side."""
    if not math.isfinite(value):
        return "no number"
    return "0" if value == 0.0 else f"{value:.1e}"


def percent_words(ratio: float) -> str:
    """Write percent, never 100 % where one row differs."""
    return "100 %" if ratio == 1.0 else f"{min(100 * ratio, 99.99):.2f} %"


def ratio_words(one: Latency) -> str:
    """Write ``×1.30 (1.19–1.43)``: the model's time over that of the export."""
    ratio = one.speedup_ratio
    return (
        f"×{significant(ratio.best, 2)} ({significant(ratio.low, 2)}–{significant(ratio.high, 2)})"
    )


def _timed(one: Latency | None) -> tuple[str, str]:
    return (
        (NOTHING, NOTHING)
        if one is None
        else (seconds_words(one.exported_s.best), ratio_words(one))
    )


def fastest_words(artefacts: Sequence[Artefact]) -> str:
    """Say which format is fastest at the smallest batch; all that cannot be told apart from it."""
    timed = [one for one in artefacts if one.verification.latencies]
    best = min(timed, key=lambda one: one.verification.latencies[0].exported_s.best)
    first = best.verification.latencies[0]
    alike: list[str] = [
        one.format
        for one in timed
        if one is best or one.verification.latencies[0].exported_s.low <= first.exported_s.high
    ]
    if len(alike) > 1:
        return f"{listed(alike)} answer fastest here, and cannot be told apart"
    against = f"{ratio_words(first)} as fast as the model in TensorFlow at batch {first.batch_size}"
    return f"{best.format} answers fastest here: {against}"


def signature_words(infos: tuple[TensorInfo, ...]) -> str:
    """Write ``image float32[batch,28,28,1]``."""
    return ", ".join(f"{one.name} {one.dtype}[{_sizes(one)}]" for one in infos)


def _sizes(one: TensorInfo) -> str:
    words = ["any" if size is None else str(size) for size in one.shape]
    if words and words[0] == "any":
        words[0] = "batch"
    return ",".join(words)


def about(found: ExportResult) -> list[tuple[str, str]]:
    """Return names and values of what was exported."""
    source, first = found.source, found.artefacts[0]
    size = f"{source.parameter_count:,} parameters, " if source.parameter_count else ""
    processing = [f"{name} in front" for name in [source.preprocess] if name]
    processing += [f"{name} behind" for name in [source.postprocess] if name]
    return [
        ("model", f"{source.reference}, {size}{format_bytes(source.weights_bytes)} of weights"),
        ("takes", signature_words(first.signature.inputs)),
        ("gives", signature_words(first.signature.outputs)),
        ("part of it", ", ".join(processing)),
        ("run by", "; ".join(dict.fromkeys(one.verification.runner for one in found.artefacts))),
    ]


def detail_lines(one: Artefact) -> list[str]:
    """Return what its converter told, that a reader may act on."""
    lines = []
    floats = one.details.get("float_layers")
    if one.format == "litert-int8" and isinstance(floats, list | tuple):
        told = ", ".join(map(str, floats)) if floats else "none"
        lines.append(f"{one.format}: layers that stayed float: {told}.")
    if layers := one.details.get("merged_adapters"):
        lines.append(f"{one.format}: the adapters of {layers} layers are in their weights.")
    modes = one.details.get("made_floats")
    if isinstance(modes, list | tuple) and modes:
        told = " and ".join(map(str, modes))
        lines.append(
            f"{one.format}: weights in {told} became floats, which take more memory; a server can "
            "quantize them as it loads."
        )
    if calibration := one.details.get("calibration"):
        lines.append(f"{one.format}: calibrated on {calibration}.")
    return lines


def notes(found: ExportResult) -> list[str]:
    """Return all notes, each once."""
    told = list(found.notes)
    for one in found.artefacts:
        told += [f"{one.format}: {text}" for text in one.notes]
        told += detail_lines(one)
        told += [
            f"{100 * each.not_finite_ratio:.0f} % of the values of {each.output} are NaN or "
            "infinite in the model itself: there this comparison says nothing."
            for each in one.verification.differences
            if each.not_finite_ratio
        ]
    still = [d.output for one in found.artefacts for d in one.verification.differences
             if not d.varies and not d.not_finite_ratio and one.verification.rows > 1]  # fmt: skip
    told += [f"{name} is the same for every row: the comparison says little about it."
             for name in dict.fromkeys(still)]  # fmt: skip
    if any(one.verification.latencies for one in found.artefacts):
        told.append(
            "Times are of this machine's CPU, model and export in turns; × is the model in "
            "TensorFlow over the export, with its 95 % interval."
        )
    return list(dict.fromkeys(told))


def commands(found: ExportResult) -> list[tuple[str, str]]:
    """Return what to do with what was exported."""
    made = []
    for one in found.artefacts:
        place = shlex.quote(one.path)
        if not one.kept:
            continue
        if one.format in ("savedmodel", "keras"):
            made.append((f"tfdyno serve {place}", "Serve it"))
        if one.format == "huggingface":
            made.append((f"tfdyno serve {place} --render vllm --card NAME --output DIR",
                         "Write the files of a server for it"))  # fmt: skip
        if one.format == "tensorrt":
            made.append(
                (f"sh {place}/build_engine.sh", "Build the engine, on a machine with a GPU")
            )
    reference = shlex.quote(found.source.reference)
    if not any(one.format.startswith("litert") for one in found.artefacts):
        made.append((f"tfdyno export {reference} --to savedmodel,onnx,litert --output exports",
                     "Compare formats"))  # fmt: skip
    if found.notes and "random" in " ".join(found.notes):
        made.append((f"tfdyno export {reference} --to {found.artefacts[0].format} --output PATH "
                     "--data test.npz --max-accuracy-drop 0.01",
                     "Judge it on your own rows, and let a gate decide"))  # fmt: skip
    return made
