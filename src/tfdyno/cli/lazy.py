"""A click group that knows its commands by a table and imports one only to run it."""

from __future__ import annotations

import importlib
from typing import Any

import click

from tfdyno.core.base.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A command as ``--help`` lists it, and where it is when it is called."""

    module: str
    """Holds a ``click.Command`` named like the command."""
    summary: str
    section: str = ""
    """Empty: it is not listed, since programs call it."""


class LazyGroup(click.Group):
    """Lists commands by section from a table; the module of a command is imported to run it."""

    def __init__(
        self, name: str | None = None, *, entries: dict[str, Entry], **settings: Any
    ) -> None:
        super().__init__(name, **settings)
        self.entries = entries

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        return [name for name, entry in self.entries.items() if entry.section]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of one command; None for an unknown name."""
        entry = self.entries.get(cmd_name)
        if entry is None:
            return None
        command: click.Command = getattr(importlib.import_module(entry.module), cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that ``args`` begin with; an unknown one is told with the nearest names.

        Raises:
            click.UsageError: There is no such command.
        """
        name = args[0]
        if name in self.entries or name.startswith("-"):
            return super().resolve_command(ctx, args)
        import difflib  # a tenth of what --help may cost

        listed = self.list_commands(ctx)
        near = difflib.get_close_matches(name, listed, n=2, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are {_words(listed)}"
        raise click.UsageError(f"no command '{name}'; {hint}", ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one block per section, without importing any command."""
        for section in filter(None, dict.fromkeys(e.section for e in self.entries.values())):
            rows = [(n, e.summary) for n, e in self.entries.items() if e.section == section]
            with formatter.section(section):
                formatter.write_dl(rows)


def _words(names: list[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}"
