"""``tfdyno export``: a model for serving, phones or another framework, compared with itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tfdyno.cli.options import HTML, PYTHON, TOLD, WAIT_FREE, Filled, NewFile, check_writable
from tfdyno.cli.progress import progress_line
from tfdyno.core.base import settings
from tfdyno.core.base.errors import UsageError
from tfdyno.core.deploy.export import FORMATS, Gates

if TYPE_CHECKING:
    from tfdyno.core.deploy.export import ExportResult, Format
    from tfdyno.jobs.deploy.export import ExportRequest

FAILED = 1
"""Exit code of an export that did not pass a gate."""


class Formats(click.ParamType[tuple["Format", ...]]):
    """Names of formats, separated by commas."""

    name = "FORMAT,…"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[Format, ...]:
        """Read the names, each once, in order; raises ``UsageError`` with the nearest."""
        if isinstance(value, tuple):
            return value
        names = [part.strip() for part in str(value).split(",") if part.strip()]
        if not names:
            raise UsageError("--to is empty", remedy=f"name one of {', '.join(FORMATS)}")
        found = [settings.one_of(name.lower(), FORMATS, "format") for name in names]
        return tuple(dict.fromkeys(found))  # type: ignore[arg-type]


class Amount(click.ParamType[float]):
    """A number of at least 0: ``0.01``, or ``1%``."""

    name = "X"
    what = "difference"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read the number; raises ``UsageError``."""
        text = str(value).strip()
        found = settings.number(text.removesuffix("%"), self.what)
        if found < 0:
            raise UsageError(f"{self.what} {value} is not possible", remedy="give 0 or more")
        return found / 100 if text.endswith("%") else found


class Share(Amount):
    """The same below 1: a share of all rows, for which ``1`` may be meant as one point of 100."""

    what = "accuracy drop"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read the number; raises ``UsageError``."""
        found = super().convert(value, param, ctx)
        if found < 1:
            return found
        text = str(value).strip()
        is_percent = text.endswith("%") or found >= 100
        raise UsageError(
            f"{self.what} {value} lets everything pass",
            why="1 is all rows",
            remedy="give less than 100%" if is_percent else f"write {found:g}% or {found / 100:g}",
        )


@click.command()
@click.argument("model")
@click.option(
    "--to", "formats", type=Formats(), required=True, help=f"Of {', '.join(FORMATS)}; many."
)
@click.option(
    "--output", type=NewFile(), required=True, metavar="PATH",
    help="File or folder to write; a folder for many formats.",
)  # fmt: skip
@click.option(
    "--data", type=Filled(), metavar="FILE.npz|file.py:function",
    help="Rows x and classes y to compare on.  [default: random rows]",
)  # fmt: skip
@click.option(
    "--max-accuracy-drop", type=Share(),
    help="Keep nothing that loses more: 0.01 or 1%.",
)  # fmt: skip
@click.option(
    "--max-difference", type=Amount(),
    help="Of any output.  [default: 0.0001 where it computes alike]",
)  # fmt: skip
@click.option(
    "--preprocess", type=Filled(), metavar="file.py:function",
    help="Made part of the graph, in front of the model.",
)  # fmt: skip
@click.option(
    "--postprocess", type=Filled(), metavar="file.py:function", help="The same, behind the model."
)
@click.option(
    "--signature", type=Filled(), multiple=True, metavar="NAME=DTYPE[SIZES]",
    help="An input as served: image=uint8[batch,28,28,1]; many.",
)  # fmt: skip
@click.option("--force", is_flag=True, help="Replace an export that is there.")
@click.option("--measure/--no-measure", default=True, show_default=True, help="Time calls of both.")
@WAIT_FREE
@HTML
@PYTHON
@TOLD
def export(**given: Any) -> int:
    """Export a model to ONNX, LiteRT, TensorRT and others, and verify it.

    MODEL is model.keras, a SavedModel folder, the folder of a tfdyno train run, file.py:function
    that returns a model, NAME[:V] of the model store, or keras:ResNet50.

    What a format cannot take is told before anything is converted. The same inputs go through the
    model and the export; what does not pass a gate is not kept, and the exit code is 1.
    """
    from tfdyno.jobs.deploy.export import check
    from tfdyno.jobs.deploy.export import export as make

    question = _question(given)
    if given["html"]:
        check_writable(given["html"])
    check(question)
    with progress_line(quiet=given["quiet"], verbose=given["verbose"]) as progress:
        found = make(question, progress=progress)
    _show(found, given)
    return 0 if found.passed else FAILED


def _question(given: dict[str, Any]) -> ExportRequest:
    from tfdyno.jobs.deploy.export import ExportRequest

    return ExportRequest(
        model=given["model"],
        formats=given["formats"],
        output=Path(given["output"]),
        data=given["data"] or "",
        gates=Gates(
            max_accuracy_drop_ratio=given["max_accuracy_drop"],
            max_difference=given["max_difference"],
        ),
        preprocess=given["preprocess"] or "",
        postprocess=given["postprocess"] or "",
        signature=tuple(given["signature"]),
        python=given["python"] or "",
        force=given["force"],
        measure=given["measure"],
        wait_free=given["wait_free"],
    )


def _show(found: ExportResult, given: dict[str, Any]) -> None:
    from tfdyno.core.base.codec import to_json, write_atomic

    if given["html"]:
        from tfdyno.view.deploy.export_page import export_page

        write_atomic(given["html"], export_page(found).encode())
    if given["as_json"]:
        from tfdyno.view.deploy.export_document import export_document

        click.echo(to_json(export_document(found), indent=2).decode())
        return
    from tfdyno.view.base.text import colour_wanted, terminal_width
    from tfdyno.view.deploy.export_text import export_text

    click.echo(export_text(found, width=terminal_width(), colour=colour_wanted()))
