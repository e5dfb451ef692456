"""Anchors made by hand, for tests of recalibration."""

from __future__ import annotations

from dataclasses import replace

from tfdyno.core.choose.recalibration import Anchor, Subject

SUBJECT = Subject(
    title="convnet", parameter_count=1000, mode="train", policy="float32", strict=False,
    execution="xla",
)  # fmt: skip


def anchor(factor: float = 1.2, **changes: object) -> Anchor:
    """The SUBJECT on a T4 at batch 64: measured ``factor`` times its estimate of 0.1 s."""
    base = Anchor(
        subject=SUBJECT, card="t4", batch_size=64, replica_count=1, measured_s=0.1 * factor,
        estimated_s=0.1, protocol_version=1, measurement_id="0123456789ab",
        measured_on="2026-11-21",
    )  # fmt: skip
    return replace(base, **changes)  # type: ignore[arg-type]
