"""``tfdyno export``: a model for serving, phones or another framework, compared with itself."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.cli.answer import Answer
from tfdyno.cli.command import TEXT, argument, command, flag, group, many, option
from tfdyno.cli.options import (
    HTML,
    PYTHON,
    WAIT_FREE,
    Filled,
    NewFile,
    Read,
    Telling,
    check_writable,
)
from tfdyno.cli.progress import progress_line
from tfdyno.core.base import settings
from tfdyno.core.base.errors import UsageError
from tfdyno.core.deploy.export import FORMATS, Format, Gates

if TYPE_CHECKING:
    from tfdyno.jobs.deploy.export import ExportRequest

FAILED = 1
"""Exit code of an export that did not pass a gate."""


def _formats(value: object) -> tuple[Format, ...]:
    """Read names of formats, separated by commas; raises ``UsageError`` with the nearest."""
    names = [part.strip() for part in str(value).split(",") if part.strip()]
    if not names:
        raise UsageError("--to is empty", remedy=f"name one of {', '.join(FORMATS)}")
    found = [settings.one_of(name.lower(), FORMATS, "format") for name in names]
    return tuple(dict.fromkeys(found))


def _amount(value: object, what: str = "difference") -> float:
    """Read a number of at least 0: ``0.01``, or ``1%``; raises ``UsageError``."""
    text = str(value).strip()
    found = settings.number(text.removesuffix("%"), what)
    if found < 0:
        raise UsageError(f"{what} {value} is not possible", remedy="give 0 or more")
    return found / 100 if text.endswith("%") else found


def _share(value: object) -> float:
    """Read the same below 1: a share of all rows; ``1`` may be meant as one point of 100."""
    what = "accuracy drop"
    found = _amount(value, what)
    if found < 1:
        return found
    is_percent = str(value).strip().endswith("%") or found >= 100
    raise UsageError(
        f"{what} {value} lets everything pass",
        why="1 is all rows",
        remedy="give less than 100%" if is_percent else f"write {found:g}% or {found / 100:g}",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    model: str = argument(type=TEXT)
    formats: tuple[Format, ...] = option(
        "--to",
        type=Read("FORMAT,…", _formats),
        required=True,
        help=f"Of {', '.join(FORMATS)}; many.",
    )
    output: Path = option(
        type=NewFile(), required=True, metavar="PATH",
        help="File or folder to write; a folder for many formats.",
    )  # fmt: skip
    data: str | None = option(
        type=Filled(), metavar="FILE.npz|file.py:function",
        help="Rows x and classes y to compare on.  [default: random rows]",
    )  # fmt: skip
    max_accuracy_drop: float | None = option(
        type=Read("X", _share), help="Keep nothing that loses more: 0.01 or 1%."
    )
    max_difference: float | None = option(
        type=Read("X", _amount), help="Of any output.  [default: 0.0001 where it computes alike]"
    )
    preprocess: str | None = option(
        type=Filled(), metavar="file.py:function",
        help="Made part of the graph, in front of the model.",
    )  # fmt: skip
    postprocess: str | None = option(
        type=Filled(), metavar="file.py:function", help="The same, behind the model."
    )
    signature: tuple[str, ...] = many(
        type=Filled(), metavar="NAME=DTYPE[SIZES]",
        help="An input as served: image=uint8[batch,28,28,1]; many.",
    )  # fmt: skip
    force: bool = flag(help="Replace an export that is there.")
    measure: bool = flag(
        "--measure/--no-measure", default=True, show_default=True, help="Time calls of both."
    )
    wait_free: bool = WAIT_FREE
    html: Path | None = HTML
    python: str | None = PYTHON
    told: Telling = group(Telling)


@command(_Options)
def export(options: _Options) -> Answer:
    """Export a model to ONNX, LiteRT, TensorRT and others, and verify it.

    MODEL is model.keras, a SavedModel folder, the folder of a tfdyno train run, file.py:function
    that returns a model, NAME[:V] of the model store, or keras:ResNet50.

    What a format cannot take is told before anything is converted. The same inputs go through the
    model and the export; what does not pass a gate is not kept, and the exit code is 1.
    """
    from tfdyno.jobs.deploy.export import check
    from tfdyno.jobs.deploy.export import export as make
    from tfdyno.view.deploy.export_page import export_page
    from tfdyno.view.deploy.export_text import export_document, export_text

    request = _request(options)
    check_writable(options.html)
    check(request)
    with progress_line(quiet=options.told.quiet, verbose=options.told.verbose) as progress:
        found = make(request, progress=progress)
    return Answer(
        files=((options.html, partial(export_page, found)),),
        document=partial(export_document, found),
        text=partial(export_text, found),
        exit_code=0 if found.passed else FAILED,
    )


def _request(options: _Options) -> ExportRequest:
    from tfdyno.jobs.deploy.export import ExportRequest

    return ExportRequest(
        model=options.model,
        formats=options.formats,
        output=options.output,
        data=options.data or "",
        gates=Gates(
            max_accuracy_drop_ratio=options.max_accuracy_drop,
            max_difference=options.max_difference,
        ),
        preprocess=options.preprocess or "",
        postprocess=options.postprocess or "",
        signature=options.signature,
        python=options.python or "",
        force=options.force,
        measure=options.measure,
        wait_free=options.wait_free,
    )
