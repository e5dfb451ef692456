"""A measurement as a JSON document: the raw samples with what follows from them, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import from_builtins, to_builtins
from tfdyno.core.base.errors import UsageError
from tfdyno.core.measure.measurement import Measurement, Summary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.measure.measurement import Comparison

FORMAT = "tfdyno bench 1"
"""First key of every document; another number is another meaning of its keys."""
_RAW = tuple(field.name for field in fields(Measurement))


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementReport:
    """One measurement with what follows from it."""

    measurement: Measurement
    summary: Summary
    medians_s: tuple[float, ...]
    """The median step of each run."""
    price_performance: tuple[Mapping[str, Any], ...] = ()
    """What it costs on offers, as ``model.choose.price_performance`` has it; empty on a CPU."""
    costs: tuple[str, ...] = ()
    """The same, one sentence an offer."""


def document_of(
    told: Sequence[MeasurementReport], comparison: Comparison | None = None
) -> dict[str, Any]:
    """Return the document of one measurement, or of A with that of B under ``against``.

    Beside the keys of ``bench_document`` each has ``price_performance``, and A ``comparison``.
    """
    a, *rest = [
        {**bench_document(one.measurement, one.summary), "price_performance": one.price_performance}
        for one in told
    ]
    return {**a, "comparison": to_builtins(comparison), "against": rest[0]} if comparison else a


def bench_document(one: Measurement, summary: Summary) -> dict[str, Any]:
    """Return all of a measurement and its summary; ``measurement_of`` reads it back.

    Keys are the fields of ``Summary`` (computed: ``median_s``, ``interval_s``,
    ``throughput_per_s``, ...), ``samples_s`` (seconds per step, the steady samples of all runs in
    order), ``memory_kind``, ``metrics`` (of trained epochs of real data, one value per run), and
    the fields of ``Measurement``, raw.
    """
    told = to_builtins(summary)
    raw = to_builtins(one)
    told["steady_sample_count"] = told.pop("sample_count")
    document = {
        "format": FORMAT,
        **told,
        "memory_kind": one.runs[0].memory_kind if one.runs else "",
        **({"metrics": metrics} if (metrics := metrics_of(one)) else {}),
        "samples_s": [sample for run in one.runs for sample in run.steady_s],
    }
    return document | {name: raw[name] for name in _RAW}


def measurement_of(document: object, *, where: str = "the file") -> Measurement:
    """Return the measurement that a document was made of; what was computed is left out.

    Args:
        document: As ``bench_document`` made it, after a way through JSON.
        where: Names the file in messages.

    Raises:
        UsageError: It is no document of a bench, of another version, or has a wrong value.
    """
    if not isinstance(document, Mapping) or "format" not in document:
        remedy = "give a file that tfdyno bench wrote with --json or --export FILE.json"
        raise UsageError(f"{where} is not a result of tfdyno bench", remedy=remedy)
    if document["format"] != FORMAT:
        what = f"{where} is of another version: {document['format']!r} instead of {FORMAT!r}"
        raise UsageError(what, remedy="measure again")
    missing = [name for name in ("id", "protocol", "task", "runs") if name not in document]
    if missing:
        raise UsageError(f"{where} is not a whole result of tfdyno bench",
                         why=f"it lacks {', '.join(missing)}")  # fmt: skip
    raw = {name: document[name] for name in _RAW if name in document}
    return from_builtins(raw, Measurement, where=where)


def metrics_of(one: Measurement) -> dict[str, list[float]]:
    """Return accuracy, loss, ... at the end of every run; empty where the data was made up."""
    if one.protocol.data.startswith("synthetic"):
        return {}
    names = dict.fromkeys(name for run in one.runs for name in run.metrics)
    return {name: [run.metrics[name] for run in one.runs if name in run.metrics] for name in names}
