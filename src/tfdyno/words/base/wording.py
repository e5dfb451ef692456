"""Words and numbers as the page's tables have them; sentences use ``amounts``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tfdyno.words.base.amounts import GIB, gib

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tfdyno.core.base.interval import Interval

CAUSES = {
    "compute": "arithmetic",
    "memory": "memory traffic",
    "launch": "kernel launch",
    "communication": "communication between GPUs",
    "input": "waiting for input",
}
KINDS = {
    "convolution": "convolutions",
    "gemm": "matrix products",
    "loop": "element-wise kernels",
    "reduce": "reductions",
    "transpose": "transposes",
    "window": "pooling",
    "gather": "gathers",
    "scatter": "scatters",
    "copy": "copies",
    "sort": "sorts",
    "scan": "scans",
    "random": "random numbers",
    "collective": "collectives",
    "recurrent": "steps of recurrent layers",
    "other": "other kernels",
}


def cause(name: str) -> str:
    """The words for a key of ``Estimate.terms_s``."""
    return CAUSES.get(name, name)


def kind(name: str) -> str:
    """The words, in the plural, for a kind of kernel."""
    return KINDS.get(name, name)


def plain(value: float) -> str:
    """A number that the user gave, as it was given: 24, 0.5, 1,000."""
    return f"{value:,.6g}" if value < 1e6 else f"{value:,.0f}"


def hours(value_h: float) -> str:
    """Hours as tables have them: two decimals below 1, one below 100, else whole."""
    if value_h < 1:
        return f"{value_h:.2f}"
    return f"{value_h:.1f}" if value_h < 100 else f"{value_h:,.0f}"


def hours_range(value_h: Interval) -> str:
    """The range of a duration in hours, both ends with the digits of the best estimate."""
    places = 2 if value_h.best < 1 else 1 if value_h.best < 100 else 0
    return f"{value_h.low:,.{places}f}–{value_h.high:,.{places}f}"


def milliseconds_range(value_s: Interval) -> str:
    """The range of a step in milliseconds, both ends with the digits of the best estimate."""
    places = 0 if value_s.best >= 0.01 else 1 if value_s.best >= 0.001 else 2
    return f"{value_s.low * 1e3:,.{places}f}–{value_s.high * 1e3:,.{places}f}"


def gib_part(value_bytes: float) -> str:
    """A part of the memory in GiB: two decimals below 10, so that parts can be added up."""
    value = value_bytes / GIB
    return f"{value:.2f}" if value < 10 else f"{value:,.1f}"


def gib_range(value_bytes: Interval) -> str:
    """The range of a size in GiB."""
    return f"{gib(value_bytes.low)}–{gib(value_bytes.high)}"


def interval_percent(value: Interval) -> str:
    """How far the range reaches from the best estimate: ``−19 to +23%``."""
    if value.best <= 0:
        return "–"
    low, high = (1 - value.low / value.best) * 100, (value.high / value.best - 1) * 100
    return f"−{low:.0f} to +{high:.0f}%"


def count(number: int, noun: str, plural: str = "") -> str:
    """``1 card``, ``3 cards``, ``1,340 kernels``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def listing(names: Sequence[str], *, most: int = 0) -> str:
    """``a``, ``a and b``, ``a, b and c``; past ``most`` names the rest is counted."""
    shown = list(names)
    if most and len(shown) > most + 1:
        shown = [*shown[:most], f"{len(names) - most} more"]
    if len(shown) < 2:
        return "".join(shown)
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


def capital(text: str) -> str:
    """``text`` with its first letter in upper case and the rest as it is."""
    return text[:1].upper() + text[1:]


def tied(text: str) -> str:
    """``text`` with numbers tied to their units, so that no line breaks between them."""
    units = "hours?|h|minutes?|days|ms|GiB|GB|epochs"
    return re.sub(rf"(\d) (?=(?:{units})\b)", "\\1\u00a0", text)


def sentence(text: str) -> str:
    """``text`` as a sentence of the page: a capital, a stop, and × for a count."""
    text = re.sub(r"(\d)x (?=the\b)", r"\1 times ", text)
    text = re.sub(r"\b(\d+) x (?=\w)", r"\1 × ", text)
    return capital(text) + ("" if not text or text.endswith((".", "?", ":")) else ".")


def execution(name: str) -> str:
    """How a step runs, as the page writes it: ``XLA``, ``graph``."""
    return name.upper() if name == "xla" else name


def unique(names: Iterable[str]) -> tuple[str, ...]:
    """``names`` without repetition, in order."""
    return tuple(dict.fromkeys(names))
