"""What can go wrong, in words a user can act on."""

from __future__ import annotations

from tfdyno.core.base.dataclass import dataclass


class TfdynoError(Exception):
    """A failure that a person can act on: what happened, why, what to do.

    Attributes:
        exit_code: 2 when the request was wrong, 3 when the tool failed.
        raised: Type and text of the exception behind it, as a child process had it; of one that
            crashed its last lines.
        at: The last progress of such a child.
    """

    exit_code = 3
    raised = at = ""

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


class CompilerError(ToolError):
    """XLA failed inside, by no fault of what it compiled: exit code 3."""


class RetreatAsked(CompilerError):  # noqa: N818  (it is what is asked)
    """All processes are to be started again, a step back that is kept in the folder of the run."""


class OSErrorsAs:
    """Raises an error of ours, with the system's reason, in place of an ``OSError`` of a block."""

    def __init__(self, kind: type[TfdynoError], what: str, *, remedy: str = "") -> None:
        """Take what is to be told: ``OSErrorsAs(UsageError, "cannot read train.log")``."""
        self._kind, self._what, self._remedy = kind, what, remedy

    def __enter__(self) -> None:
        """Begin the block."""

    def __exit__(self, _type: object, error: BaseException | None, _trace: object) -> None:
        """End it."""
        if isinstance(error, OSError):
            why = error.strerror or str(error)
            raise self._kind(self._what, why=why, remedy=self._remedy) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An error as it passes from one process to another."""

    kind: str
    """``usage``, ``retreat``, ``compiler``, ``tool``; of another name it is a ``ToolError``."""
    what: str
    why: str = ""
    remedy: str = ""

    @property
    def error(self) -> TfdynoError:
        """The error again."""
        return _KINDS.get(self.kind, ToolError)(self.what, why=self.why, remedy=self.remedy)


def failure_of(error: TfdynoError) -> Failure:
    """Write an error for another process."""
    kind = next((name for name, kind in _KINDS.items() if isinstance(error, kind)), "tool")
    return Failure(kind=kind, what=error.what, why=error.why, remedy=error.remedy)


_KINDS: dict[str, type[TfdynoError]] = {
    "usage": UsageError, "retreat": RetreatAsked, "compiler": CompilerError,
}  # fmt: skip
