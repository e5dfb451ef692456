"""Lines of several workers on one terminal: a colour for each, and what nobody needs left out."""

from __future__ import annotations

import re

from tfdyno.cli.train.train_progress import NOISE
from tfdyno.view.base.text import paint

COLOURS = ("cyan", "yellow", "green", "bold")
PREFIX = re.compile(r"\[worker (\d+)\] ")
_OWN_NOISE = re.compile(
    r"WARNING:tensorflow:(Using CollectiveAllReduceStrategy eagerly|\d+ out of the last \d+ calls)"
)
"""TensorFlow's advice to whoever wrote the loop, which is tfdyno."""


_REQUEST = re.compile(r"training .* is asked to end\b")
"""What each process says when it is asked to end, as the one that has asked it does."""


class Requests:
    """Which requests to end were shown: each process that passes one on says so."""

    def __init__(self) -> None:
        """Begin with none that was shown."""
        self._shown: set[str] = set()

    def is_repeated(self, line: str) -> bool:
        """Return whether a line is a request that was shown; one that was not counts as shown."""
        found = _REQUEST.match(PREFIX.sub("", line, count=1))
        if not found:
            return False
        is_shown = found[0] in self._shown
        self._shown.add(found[0])
        return is_shown


def coloured(line: str, *, colour: bool) -> str:
    """Return the line with its worker's name in the worker's colour."""
    found = PREFIX.match(line)
    if not found:
        return line
    style = COLOURS[int(found[1]) % len(COLOURS)]
    return paint(found[0].rstrip(), style, colour=colour) + " " + line[found.end() :]


def is_noise(line: str) -> bool:
    """Return whether a line is a greeting or an advice of TensorFlow, whoever printed it."""
    found = PREFIX.match(line)
    rest = line[found.end() :] if found else line
    return bool(NOISE.match(rest) or _OWN_NOISE.match(rest))
