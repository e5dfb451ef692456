"""The command line ``tfdyno-truth``: for developers of tfdyno, never part of it."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from tfdyno.cli.lazy import Entry, LazyGroup
from tfdyno.core.errors import TfdynoError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS = {
    "score": Entry(
        module="tfdyno_truth.commands.score",
        summary="Score predictions against the measurements.",
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
    """Run the command line and return its exit code.

    Args:
        arguments: Words after the program's name; None takes them from ``sys.argv``.
    """
    # One thread: the arrays are small, and the threads of a BLAS would only wait for each other.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with tfdyno_truth.make_context("tfdyno-truth", words) as context:
            result = tfdyno_truth.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.UsageError as error:
        message = " ".join(error.format_message().split()).rstrip(".")
        command = error.ctx.command_path if error.ctx else "tfdyno-truth"
        return _tell(f"{message[:1].lower()}{message[1:]} (see {command} --help)", UsageError)
    except TfdynoError as error:
        return _tell(str(error), type(error))
    except (KeyboardInterrupt, click.Abort):
        click.echo("tfdyno-truth: stopped by Ctrl-C; nothing was written.", err=True)
        return 130
    return result if isinstance(result, int) else 0


def _tell(sentence: str, kind: type[TfdynoError]) -> int:
    click.echo(f"tfdyno-truth: {sentence}", err=True)
    return kind.exit_code
