"""Options that several commands share, and the types of their values."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from tfdyno.cli.command import PATH, TEXT, flag, many, option
from tfdyno.core.base import settings
from tfdyno.core.base.dataclass import dataclass
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.language import LANGUAGES, Language

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tfdyno.core.recipe.recipe import Recipe

Name = TypeVar("Name", bound=str)
Value = TypeVar("Value")


class Read(click.ParamType[Value]):
    """A value that a function reads, which raises ``UsageError``."""

    def __init__(self, name: str, read: Callable[[object], Value]) -> None:
        self.name, self.read = name, read

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Value:
        """Read the value; raises ``UsageError``."""
        return self.read(value)


class Several(Read[tuple[Value, ...]]):
    """Values separated by commas, each once, in order."""

    def __init__(self, name: str, read: Callable[[str], Value]) -> None:
        super().__init__(name, lambda value: value if isinstance(value, tuple) else tuple(
            dict.fromkeys(read(part.strip()) for part in str(value).split(","))))  # fmt: skip


class Whole(Read[int]):
    """A whole number of at least 1, or 0; ``nan``, ``-3`` and ``1.5`` are refused in words."""

    def __init__(self, what: str, *, least: int = 1, most: int = settings.MOST_IN_A_RUN) -> None:
        super().__init__("N", partial(settings.whole, what=what, least=least, most=most))


class Positive(Read[float]):
    """A finite number above 0."""

    def __init__(self, what: str) -> None:
        super().__init__("X", lambda value: settings.positive(str(value).removeprefix("$"), what))


class Wholes(Several[int]):
    """Whole numbers of at least 1, separated by commas."""

    def __init__(self, what: str) -> None:
        super().__init__("N,…", Whole(what).read)


def shape(value: object) -> tuple[int, ...]:
    """Read the sizes of one input without the batch: ``224,224,3``; ``()`` for a scalar."""
    text = str(value).strip().strip("()[]").strip(", ")
    one = Whole("input size").read
    return tuple(one(part.strip()) for part in text.split(",")) if text else ()


class OneOf(click.Choice[Name]):
    """One of a few names; a wrong one is told with the nearest."""

    def __init__(
        self, what: str, known: Iterable[Name], read: Callable[[str], Name] | None = None
    ) -> None:
        super().__init__(tuple(known))
        self.read = read or (lambda text: settings.one_of(text, self.choices, what))

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Name:
        """Read the name; raises ``UsageError``."""
        return self.read(str(value))


def moving_to(text: str) -> str:
    """Read the backend that a script moves to; raises ``UsageError`` for another one."""
    if text == "jax":
        return text
    remedy = settings.did_you_mean(text, ("jax",), otherwise="give --to jax")
    raise UsageError(f"no script is moved to '{text}'", why="tfdyno knows the way to JAX alone",
                     remedy=remedy)  # fmt: skip


class Filled(click.ParamType[str]):
    """Text that is not blank: an empty variable of a shell script must not mean everything."""

    name = "TEXT"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Strip the text; raises ``UsageError``."""
        text = str(value).strip()
        if not text:
            raise UsageError(f"{_option(param)} is empty", remedy="give a value or leave it out")
        return text


class NewFile(click.ParamType[Path]):
    """A file to write: has a name, and is not ``-``."""

    name = "FILE"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Path:
        """Read the path; raises ``UsageError``."""
        text = str(value)
        if not text.strip():
            raise UsageError(f"{_option(param)} is empty", remedy="name a file")
        if text == "-":
            raise UsageError(f"{_option(param)} does not write to standard output",
                             remedy="name a file")  # fmt: skip
        return Path(text)


def check_writable(*paths: Path | None) -> None:
    """Refuse files that could not be written, before minutes of work; raises ``UsageError``."""
    for path in filter(None, paths):
        folder = path.parent
        if path.is_dir():
            # A sentence has no stop at the end of what happened: "." and ".." would be nothing.
            shown = path if path.name.strip(".") else path.resolve()
            why, remedy = "it is a folder", "name a file in it"
            raise UsageError(f"cannot write {shown}", why=why, remedy=remedy)
        if not folder.is_dir():
            raise UsageError(f"cannot write {path}", why=f"there is no folder {folder}")
        if not os.access(folder, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
            raise UsageError(f"cannot write {path}", why="permission denied")


def _option(param: click.Parameter | None) -> str:
    return param.opts[0] if param else "the option"


RECIPE = option(type=PATH, metavar="FILE", help="Settings, TOML.")
SET = many("--set", type=TEXT, metavar="KEY=VALUE", help="One setting; many.")
PYTHON = option(type=Filled(), metavar="PATH", help="Interpreter that runs your code.")
UNSAFE = flag(help="Load a .keras file that holds code.")
HTML = option(type=NewFile(), metavar="FILE", help="Write the report.")
JSON = flag("--json", help="Print JSON.")
QUIET = flag("-q", "--quiet", help="No progress on stderr.")
VERBOSE = flag("-v", "--verbose", help="Show every stage.")
LANG: Language | None = option(
    "--lang", type=OneOf("language", LANGUAGES),
    help="Language of text and page.  [default: that of TFDYNO_LANG, else of the locale]",
)  # fmt: skip
WAIT_FREE = flag(help="Wait until the GPU is free of others, or has room.")
"""What is done about others that hold memory of the cards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """How much is told, and in which form."""

    as_json: bool = JSON
    quiet: bool = QUIET
    verbose: bool = VERBOSE


def recipe_from(file: str | Path | None, changes: Mapping[str, object]) -> Recipe:
    """Read ``--recipe``, and ``--set`` over it; raises ``UsageError``."""
    from tfdyno.core.recipe.recipe import Recipe, from_settings
    from tfdyno.core.recipe.recipe_file import read_recipe

    return from_settings(changes, read_recipe(Path(file)) if file else Recipe())
