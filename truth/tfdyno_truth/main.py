"""The command line ``tfdyno-truth``: for developers of tfdyno, never part of it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from tfdyno.cli.lazy import Entry, LazyGroup
from tfdyno.cli.main import main as run

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS = {
    "score": Entry(
        module="tfdyno_truth.commands.score",
        summary="Score predictions against the measurements.",
        section="Judge",
    ),
    "memory": Entry(
        module="tfdyno_truth.commands.memory",
        summary="Score memory: which steps fit, and published figures.",
        section="Judge",
    ),
    "recalibrate": Entry(
        module="tfdyno_truth.commands.recalibrate",
        summary="Say what one measured card is worth for the others.",
        section="Judge",
    ),
    "ablate": Entry(
        module="tfdyno_truth.commands.ablate",
        summary="Say what each term of the time model is worth.",
        section="Judge",
    ),
    "routes": Entry(
        module="tfdyno_truth.commands.routes",
        summary="Compare the quick route with the compiled one.",
        section="Judge",
    ),
    "scaling": Entry(
        module="tfdyno_truth.commands.scaling",
        summary="Refit and score the exchange between several GPUs alone.",
        section="Make",
    ),
    "today": Entry(
        module="tfdyno_truth.commands.today",
        summary="Refit today's software and judge it on rows left out.",
        section="Make",
    ),
    "products": Entry(
        module="tfdyno_truth.commands.products",
        summary="Refit and score what matrix products reach.",
        section="Make",
    ),
    "fit": Entry(
        module="tfdyno_truth.commands.fit",
        summary="Refit the constants of the time model to the measurements.",
        section="Make",
    ),
    "records": Entry(
        module="tfdyno_truth.commands.records",
        summary="Trace the measured models and store their kernels.",
        section="Make",
    ),
}


@click.group(
    cls=LazyGroup,
    entries=COMMANDS,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 good, 1 a finding, 2 wrong use, 3 tool failure.",
)
def tfdyno_truth() -> None:
    """Judge tfdyno by measurements."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; no exception escapes.

    Args:
        arguments: Words after the program's name; None takes them from ``sys.argv``.
    """
    # One thread: the arrays are small, and the threads of a BLAS would only wait for each other.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    return run(arguments, group=tfdyno_truth)
