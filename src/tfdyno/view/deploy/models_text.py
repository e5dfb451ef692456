"""The model store as terminal text (the list, one version, what goes) and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import to_builtins
from tfdyno.core.base.units import format_bytes, significant
from tfdyno.view.base.text import WIDTH, paint, pairs, table, wrapped
from tfdyno.words.base.amounts import plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfdyno.core.deploy.model_version import Collected, Lineage, ModelVersion, Promotion

_HEADERS = ("version", "", "kind", "size", "metrics", "label", "added")
_MOST_METRICS = 3
_DIGITS = 4
_METRIC_DATA = {
    "export": "data of the export",
    "validation": "validation, last epoch",
    "training": "training data, last epoch",
    "given": "as given",
}
"""What a metric was counted on, by origin."""
_SHA = 12
"""Characters of a digest that are shown."""


def models_text(
    folder: str,
    versions: Sequence[ModelVersion],
    disk_bytes: int,
    *,
    width: int = WIDTH,
    colour: bool = False,
) -> str:
    """Return a line per version, the newest of each model first."""
    if not versions:
        return f"{folder} holds no models; tfdyno models add PATH keeps one."
    newest = sorted(versions, key=lambda one: (one.name, -one.version))
    rows = [
        (
            one.id,
            paint("production", "green", colour=colour) if one.promoted else "",
            one.artefact.kind,
            format_bytes(one.artefact.size_bytes),
            metrics_words(one.lineage.metrics, most=_MOST_METRICS),
            one.label,
            one.added_at[:10],
        )
        for one in newest
    ]
    # The columns of which nobody has anything are left out.
    used = [c for c in range(len(_HEADERS)) if c in {0, 2, 3, 6} or any(row[c] for row in rows)]
    body = table(
        [_HEADERS[c] for c in used],
        [[row[c] for c in used] for row in rows],
        align="".join(">" if c == 3 else "<" for c in used),
        width=width,
        spare=[used.index(c) for c in (6, 2, 5, 4) if c in used],
        colour=colour,
    )
    names = len({one.name for one in versions})
    note = (
        f"{plural(len(versions), 'version')} of {plural(names, 'model')} in {folder}, "
        f"{format_bytes(disk_bytes)} on disk (equal files once)."
    )
    return f"{body}\n\n{wrapped(note, width=width)}"


def version_text(
    version: ModelVersion,
    history: Sequence[Promotion],
    faults: Sequence[str] = (),
    *,
    width: int = WIDTH,
    colour: bool = False,
) -> str:
    """Return one version: its files, where it came from, and when it was in use."""
    artefact = version.artefact
    mark = f" ({paint('production', 'green', colour=colour)})" if version.promoted else ""
    head = f"{paint(version.id, 'bold', colour=colour)}{mark}"
    files = plural(len(artefact.files), "file")
    own = [
        ("kind", f"{artefact.kind}, {files}, {format_bytes(artefact.size_bytes)}"),
        ("path", str(version.path)),
        ("label", version.label),
        ("added", version.added_at),
        ("damaged", "; ".join(faults)),
        *_lineage_pairs(version.lineage),
        ("in use", "; ".join(_used(version, history))),
    ]
    return f"{head}\n{pairs(own, width=width)}"


def collected_text(found: Collected, *, removed: bool, width: int = WIDTH) -> str:
    """Return what goes, or went, and how many bytes that gives back."""
    if not found.versions and not found.freed_bytes:
        return "There is nothing to remove."
    verb = "Removed" if removed else "Would remove"
    what = plural(len(found.versions), "version") if found.versions else "leftovers"
    lines = [
        f"  {one.id}  {one.artefact.kind}, {format_bytes(one.artefact.size_bytes)}, "
        f"added {one.added_at[:10]}"
        for one in found.versions
    ]
    note = f"{verb} {what}; {format_bytes(found.freed_bytes)} on disk."
    return "\n".join([wrapped(note, width=width), *lines])


def metrics_words(metrics: Mapping[str, float], *, most: int = 0) -> str:
    """Write ``accuracy 0.914, loss 0.31``; the validation's first where only some are shown."""
    names = sorted(metrics, key=lambda name: (not name.startswith("val_"), "loss" in name))
    shown = names[:most] if most else names
    more = ", …" if len(shown) < len(names) else ""
    return ", ".join(f"{one} {significant(metrics[one], _DIGITS)}" for one in shown) + more


def metrics_by_data(lineage: Lineage) -> str:
    """Return all metrics, with the data that each is of where that is known."""
    groups: dict[str, dict[str, float]] = {}
    for name, value in lineage.metrics.items():
        groups.setdefault(_metric_data(name, lineage), {})[name] = value
    order = sorted(groups, key=[*_METRIC_DATA.values(), ""].index)
    return "; ".join(f"{metrics_words(groups[one])}{one and f' ({one})'}" for one in order)


def _metric_data(name: str, lineage: Lineage) -> str:
    origin = lineage.metric_origins.get(name, "")
    if origin == "training" and name.startswith("val_"):
        origin = "validation"
    return _METRIC_DATA.get(origin, "")


def _lineage_pairs(lineage: Lineage) -> list[tuple[str, str]]:
    data = f"{lineage.data} ({lineage.data_sha256[:_SHA]})" if lineage.data_sha256 else lineage.data
    return [
        ("parent", lineage.parent),
        ("workload", lineage.workload),
        ("run", _run_words(lineage)),
        ("recipe", _recipe_words(lineage)),
        ("seed", "" if lineage.seed is None else str(lineage.seed)),
        ("data", data),
        ("metrics", metrics_by_data(lineage)),
        ("trained on", _environment_words(lineage.environment)),
        ("verified", _verified_words(lineage.verification)),
        ("estimate", "kept (see --json)" if lineage.estimate else ""),
        ("sources", ", ".join(f"{k} {v[:_SHA]}" for k, v in lineage.sources.items())),
    ]


def _run_words(lineage: Lineage) -> str:
    """Return the run, and whether it is known to be the model's."""
    if not lineage.run:
        return ""
    doubt = "" if lineage.run_verified else ", not verified that the model is of it"
    return f"{lineage.run} ({lineage.run_status}{doubt})"


def _recipe_words(lineage: Lineage) -> str:
    if not lineage.recipe_id:
        return ""
    told = ("precision", "execution", "batch_size", "strategy")
    kept = [f"{key} {lineage.recipe[key]}" for key in told if lineage.recipe.get(key)]
    return f"{lineage.recipe_id}{': ' if kept else ''}{', '.join(kept)}"


def _environment_words(environment: Mapping[str, Any]) -> str:
    if not environment:
        return ""
    cards = [str(one.get("name", "")) for one in environment.get("cards") or []]
    parts = [
        ", ".join(cards) or str(environment.get("cpu", "")),
        f"TensorFlow {environment['tensorflow']}" if environment.get("tensorflow") else "",
        f"Keras {environment['keras']}" if environment.get("keras") else "",
    ]
    return ", ".join(filter(None, parts))


def _verified_words(verification: Mapping[str, Any]) -> str:
    """Return what the export's comparison with the model found, in few words."""
    if not verification:
        return ""
    found = verification.get("verification") or {}
    known = [one.get("max_abs", 0.0) for one in found.get("differences") or []]
    most = max((one for one in known if one is not None), default=None)  # null: it is no number
    accuracy = found.get("accuracy") or {}
    parts = [str(verification.get("format", ""))]
    if most is not None:
        parts.append(f"differs by at most {most:.2g} over {found.get('rows')} rows")
    if accuracy:
        before, after = accuracy.get("before_ratio", 0.0), accuracy.get("after_ratio", 0.0)
        parts.append(f"accuracy {before:.4f} before, {after:.4f} after")
    return ", ".join(filter(None, parts))


def _used(version: ModelVersion, history: Sequence[Promotion]) -> list[str]:
    words = {"promote": "promoted", "rollback": "gone back to"}
    return [f"{words[one.action]} {one.at}" for one in history if one.version == version.version]


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
