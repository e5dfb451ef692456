"""What a setting may be: one place for the command line and the Python API."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, TypeVar, get_args

from tfdyno.core.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

Name = TypeVar("Name", bound=str)
Route = Literal["auto", "quick", "exact"]
"""How the kernels of a step are found."""
ROUTES: tuple[Route, ...] = get_args(Route)
PRECISIONS = ("float32", "tf32", "mixed_float16", "mixed_bfloat16", "float16", "bfloat16")
EXECUTIONS = ("xla", "graph", "eager-torch", "compiled-torch")
"""The last two are PyTorch's, for scoring and comparison only."""
TRAINED_EXECUTIONS = ("xla", "graph")
"""TensorFlow's own."""
TORCH_EXECUTIONS = ("eager-torch", "compiled-torch")
"""PyTorch's."""
BY_OPERATION = ("graph", "eager-torch")
"""Executions that run one operation after another instead of a compiled program."""
MODES = ("train", "infer")
CLOUDS = ("aws", "gcp", "azure")
"""Whose notices of the end of a spot machine are understood."""
MOST_IN_A_RUN = 10**12
"""More samples, or epochs, than this are a slip of the keyboard."""
MOST_SAMPLES = 1 << 20
"""Largest batch that is estimated or named; a plan that hardly grows would give an absurd one."""
MOST_PORT = 65535
MOST_REPLICAS = 1024
"""GPUs that train together, in an estimate."""
MOST_STEPS = 10**10
"""The most steps; at 10 ms a step these take three years."""


def number(value: object, what: str) -> float:
    """Return a finite number.

    Args:
        value: A number, or text as typed; ``_`` may separate digits.
        what: Its name in the message.

    Raises:
        UsageError: It is no number, or not finite.
    """
    try:
        found = float(str(value).replace("_", ""))
    except ValueError:
        raise UsageError(f"{what} '{value}' is not a number") from None
    if not math.isfinite(found):
        raise UsageError(f"{what} {value} is not possible", remedy="give a finite number")
    return found


def whole(value: object, what: str, *, least: int = 1, most: int = MOST_IN_A_RUN) -> int:
    """Return a whole number from ``least`` to ``most``; raises ``UsageError``."""
    found = number(value, what)
    if found < least or found != int(found):
        remedy = f"give a whole number, {least} or more"
        raise UsageError(f"{what} {value} is not possible", remedy=remedy)
    if found > most:
        raise UsageError(f"{what} {value} is not possible", remedy=f"give at most {most:,}")
    return int(found)


def positive(value: object, what: str) -> float:
    """Return a finite number above 0; raises ``UsageError``."""
    found = number(value, what)
    if found <= 0:
        raise UsageError(f"{what} {value} is not possible", remedy="give more than 0")
    return found


def one_of(value: str, known: Iterable[Name], what: str) -> Name:
    """Return ``value`` itself where it is known.

    Raises:
        UsageError: It is not; names the nearest one.
    """
    names = tuple(known)
    if value in names:
        return names[names.index(value)]
    raise UsageError(
        f"{what} '{value}' is not one of {', '.join(names)}", remedy=did_you_mean(value, names)
    )


def did_you_mean(
    name: str, known: Iterable[str], *, cutoff: float = 0.5, most: int = 1, otherwise: str = ""
) -> str:
    """Ask whether one of the names that are much like another was meant.

    Args:
        name: That nobody has.
        known: The names that there are.
        cutoff: How much alike they have to be, from 0 to 1.
        most: How many are named.
        otherwise: What is said where none is.
    """
    import difflib  # only for a name that nobody has

    near = difflib.get_close_matches(str(name), list(known), n=most, cutoff=cutoff)
    return f"did you mean {' or '.join(near)}?" if near else otherwise
