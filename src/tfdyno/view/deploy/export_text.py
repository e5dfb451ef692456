"""An export as terminal text, and as JSON: the record that stands with it, figures by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import to_builtins
from tfdyno.view.base.documents import fields_of
from tfdyno.view.base.text import WIDTH, paint, pairs, table, wrapped
from tfdyno.words.deploy.export import (
    ALIGN,
    HEADINGS,
    SPARE,
    about,
    answer,
    cells,
    headline,
    notes,
    used_columns,
)

if TYPE_CHECKING:
    from tfdyno.core.deploy.export import Artefact, ExportResult


def export_text(found: ExportResult, *, width: int = WIDTH, colour: bool = False) -> str:
    """Return the whole answer.

    Args:
        found: What was exported.
        width: Columns of the screen.
        colour: Whether to print bold, red and dim.
    """
    head = wrapped(headline(found) + ".", width=width).split("\n")
    style = "bold" if found.passed else "red"
    rows = [cells(one) for one in found.artefacts]
    used = used_columns(rows)
    blocks = [
        "\n".join([*(paint(line, style, colour=colour) for line in head),
                   wrapped(answer(found), width=width)]),
        table([HEADINGS[i] for i in used], [[row[i] for i in used] for row in rows],
              align="".join(ALIGN[i] for i in used), width=width,
              spare=[used.index(i) for i in SPARE if i in used], colour=colour),
        "\n".join(wrapped(f"{one.format} is not kept: {text}.", width=width)
                  for one in found.artefacts for text in one.failures),
        pairs(about(found), width=width),
        "\n".join(wrapped(f"Note: {text}", width=width) for text in notes(found)),
        "\n".join(f"Wrote {one.path}." for one in found.artefacts if one.kept),
    ]  # fmt: skip
    return "\n\n".join(block for block in blocks if block)


def export_document(found: ExportResult) -> dict[str, Any]:
    """Write the documented keys; ``formats`` has an entry per format, in the order asked for."""
    return {
        "passed": found.passed,
        "source": to_builtins(found.source),
        "formats": [_format(one) for one in found.artefacts],
        **fields_of(found, "gates", "environment", "created_at", "tfdyno", "notes"),
    }


def _format(one: Artefact) -> dict[str, Any]:
    verification = one.verification
    accuracy = verification.accuracy
    return {
        **fields_of(one, "format", "path", "kept", "failures", "size_bytes", "sha256"),
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
        **fields_of(one, "signature", "seconds_s", "details", "notes"),
    }
