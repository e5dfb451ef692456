"""What stays on the terminal when the stage that told it is over."""

from __future__ import annotations


class Lasting(str):
    """A line of progress that is not rewritten: a fact that the reader has to know later, too."""

    __slots__ = ()
