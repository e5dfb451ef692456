"""What ``models … --json`` prints: the documented keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import to_builtins

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.deploy.model_version import Collected, ModelVersion, Promotion


def version_document(version: ModelVersion, faults: Sequence[str] = ()) -> dict[str, Any]:
    """Return a version with its lineage and files."""
    artefact = version.artefact
    return {
        **_brief(version),
        "path": str(version.path),
        "digest": artefact.digest,
        "files": to_builtins(artefact.files),
        "lineage": to_builtins(version.lineage),
        "faults": list(faults),
    }


def list_document(folder: str, versions: Sequence[ModelVersion], disk_bytes: int) -> dict[str, Any]:
    """Return all models with their versions, the oldest first."""
    names = dict.fromkeys(one.name for one in versions)
    return {
        "store": folder,
        "disk_bytes": disk_bytes,
        "models": [
            {
                "name": name,
                "production": next(
                    (v.version for v in versions if v.name == name and v.promoted), None
                ),
                "versions": [_brief(v) for v in versions if v.name == name],
            }
            for name in names
        ],
    }


def history_document(history: Sequence[Promotion]) -> list[dict[str, Any]]:
    """Return promotions and roll-backs, the oldest first."""
    return [to_builtins(one) for one in history]


def collected_document(found: Collected, *, removed: bool) -> dict[str, Any]:
    """Return what a removal takes away."""
    return {
        "removed": removed,
        "versions": [_brief(one) for one in found.versions],
        "freed_bytes": found.freed_bytes,
    }


def _brief(version: ModelVersion) -> dict[str, Any]:
    return {
        "id": version.id,
        "name": version.name,
        "version": version.version,
        "kind": version.artefact.kind,
        "size_bytes": version.artefact.size_bytes,
        "label": version.label,
        "promoted": version.promoted,
        "added_at": version.added_at,
        "metrics": version.lineage.metrics,
    }
