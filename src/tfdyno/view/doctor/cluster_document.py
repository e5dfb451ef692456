"""What ``doctor --cluster --json`` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import to_builtins
from tfdyno.view.doctor.cluster_text import answer
from tfdyno.view.doctor.document import finding_document

if TYPE_CHECKING:
    from tfdyno.core.cluster.cluster_facts import ClusterReport


def cluster_document(report: ClusterReport) -> dict[str, Any]:
    """Return the report under its documented keys, findings as ``doctor --json`` has them."""
    return {
        "answer": answer(report),
        "can_train": not report.exit_code,
        "findings": [finding_document(one) for one in report.findings],
        "bandwidths": to_builtins(report.bandwidths),
        "fine": list(report.fine),
        "facts": to_builtins(report.facts),
    }
