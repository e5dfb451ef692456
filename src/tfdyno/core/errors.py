"""What can go wrong, in words a user can act on."""

from __future__ import annotations


class TfdynoError(Exception):
    """A failure that a person can act on: what happened, why, what to do.

    Attributes:
        exit_code: 2 when the request was wrong, 3 when the tool failed.
    """

    exit_code = 3

    def __init__(self, what: str, *, why: str = "", remedy: str = "") -> None:
        """Join the parts into one sentence; empty parts are left out, a question keeps its mark."""
        self.what, self.why, self.remedy = what.rstrip("."), why.rstrip("."), remedy.rstrip(".")
        super().__init__(self._sentence())

    def add_reason(self, why: str) -> None:
        """Say one more thing that led to it; the same error goes on with its notes and cause."""
        self.why = "; ".join(filter(None, (self.why, why.rstrip("."))))
        self.args = (self._sentence(),)

    def _sentence(self) -> str:
        sentence = self.what + (f": {self.why}" if self.why else "")
        sentence += f"; {self.remedy}" if self.remedy else ""
        return sentence if sentence.endswith("?") else f"{sentence}."


class UsageError(TfdynoError):
    """The request cannot be met as asked (unknown GPU, missing file, NaN batch): exit code 2."""

    exit_code = 2


class ToolError(TfdynoError):
    """The tool or one of its children failed (crash, time-out, out of memory): exit code 3."""

    exit_code = 3
