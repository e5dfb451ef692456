"""Documents back into the nouns they were made of, as far as pages and figures need them."""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import from_builtins
from tfdyno.core.base.errors import UsageError
from tfdyno.core.deploy.edge import EdgeReport
from tfdyno.core.deploy.export import ExportResult
from tfdyno.core.measure.bottleneck import Bottleneck, StageSpeed, StepDiagnosis
from tfdyno.core.measure.fix_proof import FixProof, ProvenDiagnosis
from tfdyno.core.measure.load import LOAD_FORMAT, LoadResult, StageFigures
from tfdyno.core.measure.measurement import Environment
from tfdyno.core.measure.step_facts import StepFacts
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.view.diagnose.document import DiagnoseReport

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Raw = Mapping[str, Any]

_ARTEFACT = (
    "format", "path", "kept", "failures", "size_bytes", "sha256", "signature", "verification",
    "seconds_s", "details", "notes",
)  # fmt: skip
_EXPORT = ("source", "gates", "environment", "created_at", "tfdyno", "notes")
_NUMBERS = ("max_abs", "mean_abs", "max_relative_ratio")
"""The numbers of a difference: infinite where one side is NaN and the other not."""
_FINDING = ("cause", "summary", "expected_gain", "proven_gain", "settings", "place")
_DIAGNOSIS = ("title", "step_s", "split_s", "compute_s", "held_s", "batch_s", "notes")
_AFTER = ("step_s", "split_s", "compute_s", "held_s", "batch_s")
_WHERE = "the file"


@contextlib.contextmanager
def _printed_by(command: str) -> Iterator[None]:
    """Turn a key that is not there, or is of another kind, into a sentence."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        what = f"lacks {error}" if isinstance(error, KeyError) else str(error)
        raise UsageError(f"{_WHERE} is not what tfdyno {command} --json prints", why=what) from None


@_printed_by("export")
def export_of(document: Raw) -> ExportResult:
    """Return what ``export --json`` printed; raises ``UsageError`` where it is something else."""
    raw = {name: document[name] for name in _EXPORT}
    raw["artefacts"] = [
        {name: one[name] for name in _ARTEFACT} | {"verification": _differing(one["verification"])}
        for one in document["formats"]
    ]
    return from_builtins(raw, ExportResult, where=_WHERE)


@_printed_by("edge")
def edge_of(document: Raw) -> EdgeReport:
    """Return what ``edge --json`` printed; raises ``UsageError`` where it is something else."""
    raw = dict(document)
    devices = raw.pop("devices")
    raw["verdicts"] = [
        one | {"latency_s": [one["latency_s"]["low"], one["latency_s"]["high"]]} for one in devices
    ]
    return from_builtins(raw, EdgeReport, where=_WHERE)


@_printed_by("bench --serve")
def load_of(document: Raw) -> LoadResult:
    """Read what ``bench --serve --json`` printed; raises ``UsageError`` where it is not that."""
    if document["format"] != LOAD_FORMAT:
        raise UsageError(f"{_WHERE} is of another version", why=str(document["format"]))
    drop = {"format", "verdict", *StageFigures.__dataclass_fields__}
    raw = {name: value for name, value in document.items() if name not in drop}
    raw["stages"] = [
        one | {"run": _numbered(one["run"]), "figures": _unbounded(one["figures"])}
        for one in document["stages"]
    ]
    return from_builtins(raw, LoadResult, where=_WHERE)


@_printed_by("diagnose")
def diagnosis_of(document: Raw) -> DiagnoseReport:
    """Return what ``diagnose --json`` printed; raises ``UsageError`` where it is something else.

    The recipe without the fixes does not stand in it: ``base`` is the default.
    """
    findings = tuple(_bottleneck(one) for one in document["findings"])
    primary = _bottleneck(document["primary"])
    raw = {name: document[name] for name in _DIAGNOSIS}
    diagnosis = StepDiagnosis(
        **raw | {"notes": tuple(raw["notes"])},
        primary=primary,
        findings=findings,
        stages=tuple(from_builtins(one, StageSpeed) for one in document["stages"]),
    )
    environment = document["environment"]
    return DiagnoseReport(
        proven=ProvenDiagnosis(
            diagnosis=diagnosis,
            recipe=from_builtins(document["recipe"], Recipe, where=_WHERE),
            proofs=tuple(from_builtins(one, FixProof) for one in document["proofs"]),
            left=tuple(document["left"]),
            after=_after(document["after"], document["title"]),
        ),
        facts=from_builtins(document["facts"], StepFacts, where=_WHERE),
        reference=document["workload"],
        base=Recipe(),
        environment=from_builtins(environment, Environment) if environment else None,
        tried=bool(document["proofs"] or document["left"]),
        written=tuple(document["written"]),
        made_on=document["made_on"],
        look=document["look"],
    )


def _differing(verification: Raw) -> Raw:
    """Return a comparison with differences that are no number again, which JSON writes as null."""
    differences = [
        {name: math.inf if value is None and name in _NUMBERS else value
         for name, value in one.items()}
        for one in verification["differences"]
    ]  # fmt: skip
    return {**verification, "differences": differences}


def _numbered(run: Raw) -> Raw:
    """Return a stretch with numbers for keys again, which JSON writes as text."""
    return {**run, **{name: {int(key): value for key, value in run[name].items()}
                      for name in ("batches", "examples")}}  # fmt: skip


def _unbounded(figures: Raw) -> Raw:
    """Read infinite ends of figures again, which JSON writes as null."""
    return {
        name: one | {"high": math.inf} if isinstance(one, dict) and one.get("high", 0) is None
        else one for name, one in figures.items()
    }  # fmt: skip


def _bottleneck(one: Raw) -> Bottleneck:
    raw = {name: one[name] for name in _FINDING}
    pairs = [text.partition(": ") for text in one["evidence"]]
    return from_builtins(
        raw
        | {
            "bottleneck_class": one["class"],
            "evidence": [{"source": source, "text": text} for source, _, text in pairs],
            "fix": one["steps"],
        },
        Bottleneck,
    )


def _after(found: Raw | None, title: str) -> StepDiagnosis | None:
    if found is None:
        return None
    told = found["primary"]
    primary = Bottleneck(bottleneck_class=told["class"], cause=told["cause"],
                         summary=told["summary"], evidence=(), fix=())  # fmt: skip
    raw = {name: found[name] for name in _AFTER}
    return StepDiagnosis(**raw, title=title, primary=primary, findings=(primary,))
