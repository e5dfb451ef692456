"""What the user's code did wrong, as one sentence with its file and line."""

from __future__ import annotations

import contextlib
import io
import re
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from tfdyno.core.base.errors import TfdynoError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

_STYLE = re.compile(r"\x1b\[[0-9;]*m")
CHILDREN = ("runtime", "process", "kernels", "profile", "serving", "load")
"""Packages of ours that run in child processes, beside the user's code."""
INSTALLED = ("site-packages", "dist-packages")
_RAISED = re.compile(r"[\w.]*(Error|Exception): ")
"""The last line of a traceback that TensorFlow writes into the message."""
_GRAPH = "Graph execution error:"
"""TensorFlow's first line of what went wrong in a function; where it was made comes before why."""
_ROOT = re.compile(r"^\(\d+\) [A-Z_]+:\s*")
_WHERE = ("Detected at node", 'File "', "<stack traces unavailable>", "[[{{node")
_NODE = re.compile(r"^\{\{.*?\}\} (?=\S)")
"""What stands in front of what an operation says that was called by itself."""
ARGPARSE_EXIT = 2


class _Said(io.TextIOBase):
    """Passes on what the user's code prints as an error, and keeps the last line of it."""

    def __init__(self, stream: TextIO) -> None:
        self.stream, self.last_line = stream, ""

    def write(self, text: str) -> int:
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        self.last_line = lines[-1] if lines else self.last_line
        return self.stream.write(text)

    def flush(self) -> None:
        self.stream.flush()

    def fileno(self) -> int:
        return self.stream.fileno()

    def isatty(self) -> bool:
        return False


class Declined(TfdynoError):  # noqa: N818  (an answer, not a fault)
    """This path cannot trace the model; the other one may."""


@contextlib.contextmanager
def user_code(what: str) -> Iterator[None]:
    """Turn every exception of the user's code into an error that names its line.

    Raises:
        UsageError: A file or a package is missing, or the code is not Python: the other path would
            fail in the same way.
        Declined: Any other exception, which may come from the backend.
    """
    said = _Said(sys.stderr)
    try:
        with contextlib.redirect_stderr(said):
            yield
    except TfdynoError:
        raise
    except ModuleNotFoundError as error:
        why = f"the package {error.name} is not installed for {sys.executable}"
        remedy = f"install {error.name}, or name an interpreter that has it with --python"
        if error.name == "horovod":  # installed, it would train no model of all processes
            remedy = f"take it out of the script: tfdyno migrate {what.partition(':')[0]}"
        raise UsageError(f"{what} cannot be run", why=why, remedy=remedy) from None
    except SyntaxError as error:
        where = f"{error.filename}, line {error.lineno}: {error.msg}"
        raise UsageError(f"{what} is not valid Python", why=where) from None
    except FileNotFoundError as error:
        missing = error.filename or first_line(error)
        remedy = "put the file there or give the script another path"
        raise UsageError(
            f"{what} needs the file {missing!r}", why=place(error), remedy=remedy
        ) from None
    except SystemExit as error:
        text = isinstance(error.code, str)
        why = f"it ended with {error.code!r}" if text else f"it ended with exit code {error.code}"
        last = said.last_line
        why += f" after printing {last!r}" if last and not text else ""
        remedy = "give its own arguments after --" if error.code == ARGPARSE_EXIT else ""
        raise UsageError(
            f"{what} stopped before there was a model", why=why, remedy=remedy
        ) from None
    except Exception as error:
        why = ": ".join(filter(None, (place(error), type(error).__name__, first_line(error))))
        raise Declined(f"{what} failed", why=why, remedy=_remedy(error)) from None


def _remedy(error: BaseException) -> str:
    """Return what to do where the code relies on a GPU that is hidden from it."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.line or "" for frame in frames if is_own(frame.filename)]
    if lines and "gpu" in lines[-1].lower():
        return "no GPU is shown to the code here: let it go on without one, as in 'if gpus:'"
    return ""


def first_line(error: BaseException, limit: int = 300) -> str:
    """Return the first line of a message that says something, shortened."""
    lines = [line.strip() for line in _STYLE.sub("", str(error)).splitlines() if line.strip()]
    if lines and lines[0].startswith("Exception encountered when calling"):
        lines = [" ".join(lines[:2])]  # Keras: the layer first, then what went wrong in it
    elif lines and lines[0] == "in user code:":
        lines = [line for line in lines if _RAISED.match(line)][-1:] or lines[-1:]
    elif lines and lines[0] == _GRAPH:
        lines = _of_graph(lines)
    if len(lines) > 1 and lines[0].endswith(":"):
        lines = [" ".join(lines[:2])]  # what is announced
    return _NODE.sub("", lines[0])[:limit] if lines else ""


def _of_graph(lines: list[str]) -> list[str]:
    """Return the lines of a failed function from the one on that says why."""
    for tells in (_ROOT.match, lambda line: not line.startswith((_GRAPH, *_WHERE))):
        for number, line in enumerate(lines):
            if tells(line):
                return [_ROOT.sub("", line), *lines[number + 1 :]]
    return lines


def place(error: BaseException) -> str:
    """Return ``file, line N`` of the innermost line of the user's own code, or nothing."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if is_own(frame.filename)]
    return f"{own[-1].filename}, line {own[-1].lineno}" if own else ""


def is_own(filename: str) -> bool:
    """Return whether a file is the user's: no installed package, no standard library, not ours."""
    parts = Path(filename).parts
    library = any(name in parts for name in INSTALLED) or filename.startswith("<")
    standard = filename.startswith(str(Path(traceback.__file__).parent))
    ours = any(f"tfdyno/{name}" in Path(filename).as_posix() for name in CHILDREN)
    return not library and not standard and not ours
