"""Commands are known by a table; the module of one is imported only to run it."""

from __future__ import annotations

import sys
import types

import click
import pytest
from click.testing import CliRunner

from tfdyno.cli.lazy import Entry, LazyGroup

ENTRIES = {
    "weigh": Entry(module="lazy_weigh", summary="Weigh a model.", section="Choose"),
    "doubt": Entry(module="no_such_module", summary="Fail to import.", section="Choose"),
    "mend": Entry(module="lazy_weigh", summary="Mend a model.", section="Train"),
}
GROUP = LazyGroup("tool", entries=ENTRIES)


@pytest.fixture
def weigh(monkeypatch: pytest.MonkeyPatch) -> click.Command:
    """The command of the first entry, in a module that can be imported."""

    @click.command()
    @click.argument("model")
    def weigh(model: str) -> None:
        """Weigh it."""
        click.echo(f"{model} is heavy")

    module = types.ModuleType("lazy_weigh")
    module.weigh = weigh  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "lazy_weigh", module)
    return weigh


def test_help_lists_sections_and_commands_in_the_order_of_the_table() -> None:
    done = CliRunner().invoke(GROUP, ["--help"])  # imports no_such_module if it imports any
    assert done.exit_code == 0
    assert done.output.splitlines()[-7:] == [
        "",
        "Choose:",
        "  weigh  Weigh a model.",
        "  doubt  Fail to import.",
        "",
        "Train:",
        "  mend  Mend a model.",
    ]


@pytest.mark.usefixtures("weigh")
def test_a_command_runs_with_its_own_arguments() -> None:
    assert CliRunner().invoke(GROUP, ["weigh", "resnet"]).output == "resnet is heavy\n"


def test_the_command_is_that_of_its_module(weigh: click.Command) -> None:
    context = click.Context(GROUP)
    assert GROUP.get_command(context, "weigh") is weigh
    assert GROUP.get_command(context, "other") is None
    assert GROUP.list_commands(context) == ["weigh", "doubt", "mend"]


@pytest.mark.parametrize(
    ("word", "hint"),
    [("wiegh", "did you mean weigh?"), ("xyzzy", "there are weigh, doubt and mend")],
)
def test_an_unknown_command_is_told_with_what_there_is(word: str, hint: str) -> None:
    with pytest.raises(click.UsageError) as told:
        GROUP.resolve_command(click.Context(GROUP), [word])
    assert told.value.message == f"no command '{word}'; {hint}"


def test_an_unknown_option_is_not_taken_for_a_command() -> None:
    done = CliRunner().invoke(GROUP, ["--wiegh"])
    assert done.exit_code == 2
    assert "No such option" in done.output
