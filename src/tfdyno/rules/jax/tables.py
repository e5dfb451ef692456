"""TensorFlow's operations with what Keras has in their place, as ``data/operations.csv`` has it."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.rules.tables import read_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

_OWN = "../jax/data"
"""The folder of these tables, seen from that of the tables of the rules."""
_OPERATIONS = ("tensorflow", "keras", "arguments", "adds", "source")
DROPPED = "-"
"""In place of Keras' name of an argument: it is left out, for it says nothing to Keras."""
REST = "*"
"""The name of an argument that stands for all further ones by position."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One argument of an operation, written ``shape:newshape``, ``dtype=dtype~lower``.

    Behind ``|`` stand those that TensorFlow has further on, behind others that are not known.
    """

    name: str
    keras: str
    by_name: bool = False
    """Whether Keras has it at another place, so that it must be given by name."""
    is_word: bool = False
    """Whether TensorFlow has others before it: only known where it is given by name."""
    form: str = ""
    """What its value must be or becomes: ``int number given float lower format swap_b``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """A row of the table."""

    tensorflow: str
    keras: str
    """A function, or an expression with ``{x}`` for arguments in the order of TensorFlow's."""
    arguments: tuple[Argument, ...]
    adds: str = ""
    """An argument in which the defaults differ, as Keras must be given it: ``axis=0``."""

    @property
    def is_expression(self) -> bool:
        """Whether more than the name of the function differs."""
        return "{" in self.keras


@functools.cache
def operations() -> dict[str, Operation]:
    """Return all rows by TensorFlow's name; raises ``ToolError`` for a damaged file."""
    rows = read_rows(f"{_OWN}/operations.csv", _OPERATIONS)
    return {row["tensorflow"]: _operation(row) for row in rows}


def _operation(row: dict[str, str]) -> Operation:
    return Operation(
        tensorflow=row["tensorflow"],
        keras=row["keras"],
        arguments=tuple(_arguments(row["arguments"])),
        adds=row["adds"],
    )


def _arguments(text: str) -> Iterator[Argument]:
    placed, _, words = text.partition("|")
    yield from (_argument(word, is_word=False) for word in placed.split())
    yield from (_argument(word, is_word=True) for word in words.split())


def _argument(word: str, *, is_word: bool) -> Argument:
    word, _, form = word.partition("~")
    by_name = "=" in word
    name, _, keras = word.partition("=" if by_name else ":")
    return Argument(name=name, keras=keras or name, by_name=by_name, is_word=is_word, form=form)


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """What a name of TensorFlow or Keras means for the move, at one kind of place."""

    where: str
    """``step``, ``data`` or ``any``."""
    cause: str
    """Empty: it is fine there."""
    instead: str


@functools.cache
def random_operations() -> dict[str, Operation]:
    """Return operations that draw numbers, by TensorFlow's name."""
    rows = read_rows(f"{_OWN}/random.csv", _OPERATIONS)
    return {row["tensorflow"]: _operation(row) for row in rows}


@functools.cache
def _names() -> dict[str, Name]:
    rows = read_rows(f"{_OWN}/names.csv", ("name", "where", "cause", "instead", "source"))
    return {
        f"{row['where']} {row['name']}": Name(
            where=row["where"], cause=row["cause"], instead=row["instead"]
        )
        for row in rows
    }


def name_of(path: str, where: str) -> Name | None:
    """Return the row of a path at a kind of place, else that of the package around it."""
    parts = path.split(".")
    around = [f"{'.'.join(parts[:end])}.*" for end in range(len(parts) - 1, 0, -1)]
    for pattern in (path, *around):
        for place in (where, "any"):
            if found := _names().get(f"{place} {pattern}"):
                return found
    return None


@functools.cache
def packages() -> dict[str, Name]:
    """Return what is known of packages by name; the others are unknown."""
    rows = read_rows(f"{_OWN}/packages.csv", ("name", "cause", "instead", "source"))
    return {
        row["name"]: Name(where="any", cause=row["cause"], instead=row["instead"]) for row in rows
    }
