"""The command line: the table of commands, and one sentence and an exit code for what fails."""

from __future__ import annotations

import atexit
import contextlib
import errno
import gc
import io
import os
import signal
import sys
import threading
import time
import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tfdyno.cli.lazy import Entry, LazyGroup
from tfdyno.core.base.errors import TfdynoError, ToolError, UsageError
from tfdyno.core.base.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

INTERRUPTED = 130
"""What shells report for a program that Ctrl-C ended (128 + SIGINT)."""
SIGNALLED = 128
"""What shells add to the number of the signal that a program was ended by."""
SAME_S = 2.0
"""Requests to end that come so soon after the first are the same one."""
ENDINGS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
PIPE_CLOSED = 141
"""What shells report for a program whose reader went away (128 + SIGPIPE)."""
UNWRITABLE = frozenset({errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EBADF})
"""What a reader gone, a full disk or a lost terminal say, where no file is named."""
COLLECTED_EVERY = 200_000
"""New objects until Python looks for cycles: a light command has fewer, and all of them stay."""
_LISTED = {
    "Whole loop": (
        ("project.run", "Run a project's steps, from data to service; only what changed."),
    ),
    "Repair": (("measure.doctor", "Say why TensorFlow does not use the GPU, or why it failed."),),
    "Choose": (
        ("choose.advise", "Rank GPUs and cloud offers for a training run, with the cost."),
        ("choose.estimate", "Predict time and memory of a step on one GPU or many."),
        ("choose.ui", "Show a local page that answers while you move its controls."),
        ("choose.memory", "Show where the memory of a step goes, and plan how to fit a card."),
    ),
    "Train": (
        ("train.train", "Train with a recipe: precision, XLA, input, strategy, checkpoints."),
        ("train.launch", "Train on several nodes: here, by Ray, Slurm, Kubernetes, SkyPilot."),
        (
            "train.migrate",
            "Turn a script of Horovod or TensorFlow into plain Keras 3.",
        ),
        ("train.recipe", "Show, compare and choose the settings of a training run."),
    ),
    "Measure": (
        ("measure.bench", "Measure a training run fairly, or two recipes in turns."),
        ("choose.calibrate", "Sweep the card of this machine, for narrower estimates on it."),
        ("measure.compare", "Say which measurement is faster, how surely, and at what cost."),
        ("measure.diagnose", "Say what holds a training back, and prove the fix."),
        ("train.tune", "Find the fastest recipe by measured trials, and prove it."),
    ),
    "Deploy": (
        ("deploy.export", "Export a model to ONNX, LiteRT, TensorRT and others, and verify it."),
        ("deploy.edge", "Say on which phones, boards and microcontrollers a model fits."),
        ("deploy.models", "Keep models by version; promote one, go back, clear away."),
        ("deploy.serve", "Serve a model over HTTP with dynamic batching, by NVIDIA Triton."),
    ),
    "Look back": (
        ("project.report", "Join a project's results into one page, with its history."),
        ("project.runs", "List, show, compare and remove the runs of a project."),
    ),
    "Look up": (
        ("choose.gpus", "Show, filter and compare the GPUs of the catalogue."),
        ("choose.offers", "List cloud offers with price, date and age."),
        ("choose.cache", "Show and clear kept programs, traces and autotune results."),
        ("data.data", "Convert and measure training data; check and refresh prices."),
    ),
    "": (("train.node", "Take part in a training as one process of several."),),
}
"""Sections of ``--help``: where each command is, below this package, and what it does; those of no
section are for programs."""
COMMANDS = {
    module.rpartition(".")[2]: Entry(
        module=f"tfdyno.cli.{module}", summary=summary, section=section
    )
    for section, commands in _LISTED.items()
    for module, summary in commands
}


@click.group(
    cls=LazyGroup,
    entries=COMMANDS,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 good, 1 a finding of severity error, 2 wrong use, 3 tool failure.",
)
@click.version_option(VERSION, prog_name="tfdyno", message="%(prog)s %(version)s")
def tfdyno() -> None:
    """Which GPU for your Keras model, without a GPU in the room."""


def main(arguments: Sequence[str] | None = None, *, group: click.Group = tfdyno) -> int:
    """Run the command line and return its exit code; no exception escapes.

    Args:
        arguments: Words after the program's name; None takes them from ``sys.argv`` and means that
            this is the program, which ends here where nothing is left to wait for.
        group: The commands; its name is the program's.
    """
    if arguments is not None:
        return _answer(arguments, group)
    gc.set_threshold(COLLECTED_EVERY)
    code = _answer(None, group)
    _end(code)
    return code


def _end(code: int) -> None:
    """End the process without taking the interpreter apart: a tenth of a light command's time."""
    is_watched = sys.getprofile() or sys.gettrace() or sys.flags.inspect
    others = [one for one in threading.enumerate() if not one.daemon]  # Python waits for no daemon
    if len(others) == 1 and not is_watched:
        atexit._run_exitfuncs()
        with contextlib.suppress(OSError, ValueError):  # a reader that is gone
            print(end="", flush=True)
            print(end="", file=sys.stderr, flush=True)
        os._exit(code)


def _answer(arguments: Sequence[str] | None, group: click.Group) -> int:
    name = group.name or "tfdyno"
    words = list(sys.argv[1:] if arguments is None else arguments)
    sys.stderr = sys.stderr or Path(os.devnull).open("w")  # noqa: SIM115  (as long as the process)
    if sys.stdout is None:
        closed = ToolError("there is nowhere to print", why="standard output is closed")
        return _tell(name, str(closed), closed, closed.exit_code)
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="replace")  # a tick that cannot be printed is no failure
    try:
        with warnings.catch_warnings(), _ended_as_by_ctrl_c():
            warnings.showwarning = partial(_warn, name)
            code = _invoke(group, name, words)
        sys.stdout.flush()  # here, where a closed pipe can still be told apart
    except BrokenPipeError:
        _stop_printing()
        return PIPE_CLOSED
    except OSError as error:
        _stop_printing()
        with contextlib.suppress(OSError):
            _tell(name, f"cannot write the answer: {error.strerror}.", error, ToolError.exit_code)
        return ToolError.exit_code
    return code


class _Terminated(BaseException):
    """Somebody ended the program: as with Ctrl-C, children and temporary folders must go."""

    def __init__(self, number: int) -> None:
        self.signal = signal.Signals(number)
        super().__init__(self.signal.name)


@contextlib.contextmanager
def _ended_as_by_ctrl_c() -> Iterator[None]:
    """Let SIGTERM, and the end of a terminal, raise where they are left to their default.

    A second one ends the process at once, but not within ``SAME_S``: who ends a job or a service
    tells all of its processes, and those that hand a request on to their children tell them again.
    """
    is_main = threading.current_thread() is threading.main_thread()
    numbers = [one for one in ENDINGS if is_main and signal.getsignal(one) is signal.SIG_DFL]
    first_s: list[float] = []

    def end(number: int, _frame: object) -> None:
        now_s = time.monotonic()
        if not first_s:
            first_s.append(now_s)
            raise _Terminated(number)
        if now_s - first_s[0] > SAME_S:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    for one in numbers:
        signal.signal(one, end)
    try:
        yield
    finally:
        for one in numbers:
            signal.signal(one, signal.SIG_DFL)


def _stop_printing() -> None:
    """Give the interpreter, which flushes once more at exit, somewhere to flush to."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _invoke(group: click.Group, name: str, words: list[str]) -> int:
    """Run one command; turn what it raises into a sentence on stderr and an exit code."""
    tell = partial(_tell, name)
    try:
        with group.make_context(name, words) as context:
            result = group.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.UsageError as error:
        return tell(_usage_sentence(error, name), error, UsageError.exit_code)
    except click.ClickException as error:
        return tell(error.format_message(), error, UsageError.exit_code)
    except TfdynoError as error:
        return tell(" ".join([str(error), *_notes(error)]), error, error.exit_code)
    except (KeyboardInterrupt, click.Abort) as error:
        return tell(f"stopped by Ctrl-C; {_left(error)}", error, INTERRUPTED)
    except _Terminated as error:
        with contextlib.suppress(OSError):  # a terminal that was closed takes no words
            tell(f"ended by {error.signal.name}; {_left(error)}", error, 0)
        return SIGNALLED + error.signal
    except Exception as error:  # the last resort: a sentence instead of a traceback
        if _lost_output(error):
            raise
        return tell(_defect_sentence(error), error, ToolError.exit_code)
    return result if isinstance(result, int) else 0


def _notes(error: BaseException) -> list[str]:
    """Return what a job added to an error on its way: what is kept of work that was stopped."""
    return getattr(error, "__notes__", [])


def _left(error: BaseException) -> str:
    return " ".join(_notes(error)) or "nothing was written."


def _warn(name: str, message: Warning | str, *_place: object, **_options: object) -> None:
    """Show a warning as a sentence, without the line of code that gave it."""
    click.echo(f"{name}: {str(message).rstrip('.')}.", err=True)


def _tell(name: str, sentence: str, error: BaseException, exit_code: int) -> int:
    if os.environ.get("TFDYNO_DEBUG") == "1":
        import traceback

        traceback.print_exception(error)
    click.echo(f"{name}: {sentence}", err=True)
    return exit_code


def _usage_sentence(error: click.UsageError, name: str) -> str:
    command = error.ctx.command_path if error.ctx else name
    message = " ".join(error.format_message().split()).rstrip(".")
    return f"{message[:1].lower()}{message[1:]} (see {command} --help)"


def _lost_output(error: Exception) -> bool:
    """Return whether nobody reads the answer any more, or there is no room for it."""
    return isinstance(error, OSError) and error.filename is None and error.errno in UNWRITABLE


def _defect_sentence(error: Exception) -> str:
    what = " ".join(f"{type(error).__name__}: {error}".split())
    return (
        f"defect in tfdyno ({what}); please report it with what TFDYNO_DEBUG=1 prints in front "
        "of the same command."
    )
