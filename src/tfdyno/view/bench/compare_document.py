"""A comparison as a JSON document: the keys of the one that was asked for, and all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import to_builtins

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.view.bench.compare_text import Column


def compare_document(columns: Sequence[Column]) -> dict[str, Any]:
    """Write ``{"ratio", "interval", "verdict", ..., "measurements": […], "comparisons": […]}``.

    The keys of the first comparison stand at the top; ``comparisons`` holds one of every later
    measurement with the first, which is there with its name, id and summary.
    """
    compared = [(one.name, one.comparison) for one in columns if one.comparison is not None]
    comparisons = [
        {"base": columns[0].name, "other": name, **to_builtins(found)} for name, found in compared
    ]
    return {
        **(to_builtins(compared[0][1]) if compared else {}),
        "measurements": [_measurement(one) for one in columns],
        "comparisons": comparisons,
    }


def _measurement(one: Column) -> dict[str, Any]:
    measured = one.measurement
    return {
        "name": one.name,
        "place": one.place,
        "id": measured.id,
        "label": measured.label,
        "title": measured.task.title,
        "batch_size": measured.task.batch_size,
        "replica_count": measured.task.replica_count,
        **to_builtins(one.summary),
    }
