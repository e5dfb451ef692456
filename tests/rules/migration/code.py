"""Source text in, causes out: how every test of the migration check asks."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from tfdyno.rules.migration.check import check_code

if TYPE_CHECKING:
    from tfdyno.rules.match import Match

KERAS_3 = {"tensorflow": "2.21.0", "keras": "3.15.1"}
KERAS_2 = {"tensorflow": "2.15.1", "keras": "2.15.0"}


def found(
    source: str, values: dict[str, str] | None = None, name: str = "train.py"
) -> dict[str, Match]:
    """Matches of one file by cause, without their group."""
    return found_in({name: source}, values)


def found_in(files: dict[str, str], values: dict[str, str] | None = None) -> dict[str, Match]:
    """Matches of several files by cause, without their group."""
    texts = {name: textwrap.dedent(text) for name, text in files.items()}
    matches, _ = check_code(texts, texts.__getitem__, KERAS_3 if values is None else values)
    return {match.cause.removeprefix("code."): match for match in matches}


def notes(name: str, source: str) -> tuple[str, ...]:
    """What the check says of a file that it could not read."""
    return check_code([name], lambda _: source, KERAS_3)[1]
