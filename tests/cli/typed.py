"""Options as click reads them from words."""

from __future__ import annotations

from typing import TypeVar

import click

from tfdyno.cli.command import filled, parameters

Options = TypeVar("Options")


def typed(options: type[Options], *words: str) -> Options:
    """What a command with these options is called with, where these words are typed."""
    command = click.Command("command", params=list(parameters(options)))
    return filled(options, command.make_context("command", list(words)).params)
