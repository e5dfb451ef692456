"""What ``export --json`` prints: the record that stands with the export, and figures by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import to_builtins

if TYPE_CHECKING:
    from tfdyno.core.deploy.export import Artefact, ExportResult


def export_document(found: ExportResult) -> dict[str, Any]:
    """Write the documented keys; ``formats`` has an entry per format, in the order asked for."""
    return {
        "passed": found.passed,
        "source": to_builtins(found.source),
        "formats": [_format(one) for one in found.artefacts],
        "gates": to_builtins(found.gates),
        "environment": to_builtins(found.environment),
        "created_at": found.created_at,
        "tfdyno": found.tfdyno,
        "notes": list(found.notes),
    }


def _format(one: Artefact) -> dict[str, Any]:
    verification = one.verification
    accuracy = verification.accuracy
    return {
        "format": one.format,
        "path": one.path,
        "kept": one.kept,
        "failures": list(one.failures),
        "size_bytes": one.size_bytes,
        "sha256": one.sha256,
        "max_difference": verification.max_abs,
        "mean_difference": max((d.mean_abs for d in verification.differences), default=0.0),
        "max_relative_difference": max(
            (d.max_relative_ratio for d in verification.differences), default=0.0
        ),
        "top1_agreement": verification.top1_ratio,
        "accuracy_before": accuracy.before_ratio if accuracy else None,
        "accuracy_after": accuracy.after_ratio if accuracy else None,
        "accuracy_drop": accuracy.drop_ratio if accuracy else None,
        "latency": [to_builtins(each) for each in verification.latencies],
        "verification": to_builtins(verification),
        "signature": to_builtins(one.signature),
        "seconds_s": one.seconds_s,
        "details": one.details,
        "notes": list(one.notes),
    }
