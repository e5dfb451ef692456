"""What a command answers, and the one place that writes it: page, then JSON or text."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import click

from tfdyno.core.base.dataclass import dataclass
from tfdyno.core.base.errors import UsageError
from tfdyno.view.base.text import colour_wanted, terminal_width


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a command found; text, document and pages are made where they are asked for."""

    text: Callable[..., str]
    """Takes ``width`` and ``colour``."""
    document: Callable[[], object]
    """What ``--json`` prints."""
    head: str = ""
    tail: str = ""
    """Before the text, and after it."""
    indent: int = 2
    """Of the JSON; 0: all of it in one line."""
    files: tuple[tuple[Path | None, Callable[[], str | bytes]], ...] = ()
    """Where options ask for it, what is written."""
    exit_code: int = 0
    error: BaseException | None = None
    """Raised when all is told: work was stopped or failed, and this is the answer until then."""


def noted(error: BaseException, note: str) -> BaseException:
    """Return the error with a note on what is kept, or was told, of the work that it ended."""
    error.add_note(note)
    return error


def agreed(planned: str, *, err: bool = False) -> bool:
    """Show what would be removed, and return whether the person says yes; raises ``UsageError``."""
    click.echo(planned, err=err)
    if not sys.stdin.isatty():
        raise UsageError("nothing was removed", remedy="add --yes to remove it")
    return click.confirm("Remove?", err=err)


def tell(answer: Answer, *, as_json: bool) -> int:
    """Write what was asked for, and return the exit code."""
    for path, content in answer.files:
        if path:
            from tfdyno.core.base.codec import write_atomic

            made = content()
            write_atomic(path, made.encode() if isinstance(made, str) else made)
    if as_json:
        from tfdyno.core.base.codec import to_json

        click.echo(to_json(answer.document(), indent=answer.indent).decode())
    else:
        colour = colour_wanted()
        text = answer.text(width=terminal_width(), colour=colour)
        click.echo(f"{answer.head}{text}{answer.tail}", color=colour)
    if answer.error:
        raise answer.error
    return answer.exit_code
