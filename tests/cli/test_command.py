"""cli/command: a dataclass declares what click reads, and holds it by the same names and types."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest
from tests.cli.typed import typed

from tfdyno.cli.answer import Answer
from tfdyno.cli.command import (
    PATH,
    TEXT,
    argument,
    command,
    filled,
    flag,
    given,
    group,
    many,
    option,
    parameters,
    values_of,
)
from tfdyno.cli.main import tfdyno
from tfdyno.cli.measure.bench_serve import bench_serve
from tfdyno.cli.options import JSON, Telling, Whole

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    model: str = argument(type=TEXT)
    batch_size: int | None = option(type=Whole("batch size"), help="One.")
    seed: int = option("--start", type=Whole("seed", least=0), default=0, help="Two.")
    files: tuple[Path, ...] = many("--file", type=PATH, help="Three.")
    told: Telling = group(Telling)
    spot: bool | None = flag("--spot/--no-spot", default=None, help="Four.")


def commands(command: click.Command, path: str = "") -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        names = getattr(command, "entries", None) or command.list_commands(context)
        for name in names:
            one = command.get_command(context, name)
            assert one
            yield from commands(one, f"{path} {name}".strip())


ALL = [*commands(tfdyno), ("bench --serve", bench_serve)]


def test_names_come_from_the_field_and_the_order_is_that_of_the_fields() -> None:
    found = [(one.name, one.opts) for one in parameters(Asked)]
    assert found == [
        ("model", ["model"]), ("batch_size", ["--batch-size"]), ("seed", ["--start"]),
        ("files", ["--file"]), ("as_json", ["--json"]), ("quiet", ["-q", "--quiet"]),
        ("verbose", ["-v", "--verbose"]), ("spot", ["--spot"]),
    ]  # fmt: skip


def test_what_is_typed_is_held_with_its_type() -> None:
    words = ("m", "--batch-size", "8", "--file", "a", "--file", "b", "-q", "--no-spot")
    assert typed(Asked, *words) == Asked(
        model="m", batch_size=8, seed=0, files=(Path("a"), Path("b")),
        told=Telling(quiet=True), spot=False,
    )  # fmt: skip


def test_what_is_not_typed_is_as_usual() -> None:
    assert typed(Telling) == Telling() == Telling(as_json=False, quiet=False, verbose=False)
    assert typed(Asked, "m") == Asked(model="m", told=Telling())


def test_options_that_have_a_value_are_named_as_they_are_typed() -> None:
    asked = typed(Asked, "m", "--start", "0", "--no-spot", "--json")
    assert given(asked, "batch_size", "files", "spot", "quiet") == []
    assert given(asked, "seed", "as_json") == ["--start", "--json"]  # 0 is a value
    assert filled(Asked, values_of(asked)) == asked


@pytest.mark.parametrize(("words", "shown"), [([], "text\n"), (["--json"], "[1]\n")])
def test_an_answer_is_written_as_it_is_asked_for(
    words: list[str], shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    @command(Telling)
    def tell_me(_options: Telling) -> Answer:
        """Tell it."""
        return Answer(text=lambda **_: "text", document=lambda: [1], indent=0, exit_code=1)

    assert (tell_me.name, tell_me.help) == ("tell-me", "Tell it.")
    assert tell_me.main(words, standalone_mode=False) == 1
    assert capsys.readouterr().out == shown


def test_a_command_that_has_written_itself_has_a_code() -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Nothing:
        as_json: bool = JSON

    tools = click.Group("tools")

    @command(Nothing, "name", under=tools)
    def other(_options: Nothing) -> int:
        return 7

    assert tools.commands == {"name": other}
    assert tools.main(["name"], standalone_mode=False) == 7


@pytest.mark.parametrize(("path", "one"), ALL, ids=[path for path, _ in ALL])
def test_every_option_of_a_command_is_a_field_and_every_field_an_option(
    path: str, one: click.Command
) -> None:
    if isinstance(one, click.Group):
        assert [parameter.name for parameter in one.params] in ([], ["version"], ["as_json"])
        return
    callback: Any = one.callback
    options, function = callback.args
    assert function.__annotations__["options" if "options" in function.__annotations__ else
                                    "_options"].endswith(options.__name__)  # fmt: skip
    found = list(names(options))
    assert sorted(str(parameter.name) for parameter in one.params) == sorted(found)
    assert len(set(found)) == len(found)  # fields of groups stand beside those of the command
    typed = [word for each in one.params for word in (*each.opts, *each.secondary_opts)]
    assert len(set(typed)) == len(typed)


def names(options: type[Any]) -> Iterator[str]:
    for field in fields(options):
        shared = field.metadata.get("group")
        yield from names(shared) if shared else [field.name]
