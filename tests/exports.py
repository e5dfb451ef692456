"""An export as others would find it, made by hand."""

from __future__ import annotations

from dataclasses import replace

from tfdyno.core.base.interval import Interval
from tfdyno.core.deploy.export import (
    Accuracy,
    Artefact,
    Difference,
    ExportResult,
    Format,
    Gates,
    Latency,
    Lineage,
    Signature,
    TensorInfo,
    Verification,
    failures,
)

SIGNATURE = Signature(
    inputs=(TensorInfo(name="image", dtype="float32", shape=(None, 8, 8, 1)),),
    outputs=(TensorInfo(name="digit", dtype="float32", shape=(None, 10)),),
)


def difference(max_abs: float = 1e-7, **fields: object) -> Difference:
    base = Difference(
        output="digit",
        max_abs=max_abs,
        mean_abs=max_abs / 10,
        max_relative_ratio=max_abs / 0.8,
        largest_abs=0.8,
        top1_ratio=1.0,
    )
    return replace(base, **fields)  # type: ignore[arg-type]


def verification(differs: float | Difference = 1e-7, *, after_ratio: float = 0.9) -> Verification:
    one = differs if isinstance(differs, Difference) else difference(differs)
    half = Interval(low=1.8e-5, best=2e-5, high=2.2e-5)
    latency = Latency(
        batch_size=1,
        rounds=7,
        calls=50,
        original_s=half.times(30.0),
        exported_s=half,
        speedup_ratio=Interval(low=25, best=30, high=36),
    )
    accuracy = Accuracy(output="digit", rows=400, before_ratio=0.9, after_ratio=after_ratio)
    return Verification(
        data="400 rows of test.npz",
        rows=400,
        runner="onnxruntime 1.32.0",
        differences=(one,),
        accuracy=accuracy,
        latencies=(latency, replace(latency, batch_size=32)),
    )


def artefact(kind: Format, found: Verification, gates: Gates) -> Artefact:
    told = failures(kind, gates, found, ("float32",))
    return Artefact(
        format=kind,
        path=f"exports/{kind}",
        kept=not told,
        size_bytes=14_336,
        sha256="ab" * 32,
        signature=SIGNATURE,
        verification=found,
        failures=told,
    )


def result(*made: tuple[Format, Verification], gates: Gates | None = None) -> ExportResult:
    gates = gates or Gates()
    lineage = Lineage(
        reference="train.py:cnn",
        kind="function",
        title="digits",
        sha256="cd" * 32,
        weights_sha256="ef" * 32,
        parameter_count=2794,
        weights_bytes=11_176,
        compute_dtypes=("float32",),
    )
    return ExportResult(
        source=lineage,
        artefacts=tuple(artefact(kind, found, gates) for kind, found in made),
        gates=gates,
        environment=None,
        created_at="2026-11-23T16:00:00+00:00",
        tfdyno="0.1.0",
    )


def two() -> ExportResult:
    """One that passes, and one that loses two points where one is allowed."""
    return result(
        ("onnx", verification(1.2e-7)),
        ("litert-int8", verification(6e-3, after_ratio=0.88)),
        gates=Gates(max_accuracy_drop_ratio=0.01),
    )
