"""``tfdyno calibrate``: sweep the card of this machine, for every later estimate."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import click

from tfdyno.cli.options import JSON, PYTHON, QUIET, NewFile, OneOf, Positive, check_writable
from tfdyno.cli.progress import progress_line

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.choose.generation import Framework
    from tfdyno.jobs.bench.calibrate import Calibrated


@click.command()
@click.option(
    "--seconds", type=Positive("time"), default=120.0, show_default=True, metavar="S",
    help="Time of the sweep; what tells most comes first.",
)  # fmt: skip
@click.option(
    "--card", default="", metavar="N|cpu",
    help="Number of a GPU, or cpu.  [default: the first GPU, else cpu]",
)  # fmt: skip
@click.option(
    "--framework", type=OneOf("framework", ("tensorflow", "jax")),
    help="What runs the kernels.  [default: TensorFlow, else JAX]",
)  # fmt: skip
@click.option("--shared", is_flag=True, help="Sweep a card although others compute on it.")
@click.option(
    "--share", type=NewFile(), metavar="FILE",
    help="Write a copy without names of machine or user, for others to add.",
)  # fmt: skip
@PYTHON
@JSON
@QUIET
@click.option("-v", "--verbose", is_flag=True, help="Show every stage.")
def calibrate(
    seconds: float,
    card: str,
    framework: str | None,
    shared: bool,
    share: Path | None,
    python: str | None,
    as_json: bool,
    quiet: bool,
    verbose: bool,
) -> None:
    """Sweep the card of this machine, for narrower estimates on it.

    No model is needed: kernels of every kind are timed one by one. From then on estimate, advise,
    diagnose and tune use what was found for every model on that card. It ends with a verdict on the
    card itself.
    """
    from tfdyno.jobs.bench.calibrate import CalibrateRequest
    from tfdyno.jobs.bench.calibrate import calibrate as answer_of

    if share:
        check_writable(share)
    question = CalibrateRequest(
        seconds_s=seconds,
        card=card.strip().lower(),
        framework=cast("Framework", framework or ""),
        python=python or "",
        shared=shared,
    )
    with progress_line(quiet=quiet, verbose=verbose) as progress:
        found = answer_of(question, progress=progress)
    if share:
        _write_share(found, share)
    if as_json:
        from tfdyno.core.base.codec import to_json
        from tfdyno.view.lookup.calibrate_text import calibrate_document

        told = calibrate_document(
            found.card, found.verdict, path=str(found.path), notes=found.notes,
            takes_effect=found.takes_effect,
        )  # fmt: skip
        click.echo(to_json(told).decode())
        return
    from tfdyno.view.base.text import colour_wanted, terminal_width
    from tfdyno.view.lookup.calibrate_text import calibrate_text

    text = calibrate_text(
        found.card, found.verdict, notes=found.notes, takes_effect=found.takes_effect,
        width=terminal_width(), colour=colour_wanted(),
    )  # fmt: skip
    click.echo(text)
    if share:
        click.echo(f"\nWritten for others: {share}")


def _write_share(found: Calibrated, path: Path) -> None:
    from tfdyno.core.base.codec import to_json, write_atomic
    from tfdyno.jobs.bench.calibrate import shared_copy

    write_atomic(path, to_json(shared_copy(found.card)))
