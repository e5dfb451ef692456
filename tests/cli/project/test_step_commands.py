from __future__ import annotations

import pytest

from tfdyno.cli.project.step_commands import check_words, shape_of, step_commands
from tfdyno.core.base.errors import UsageError
from tfdyno.core.project.step_command import option_words
from tfdyno.core.project.step_outputs import with_outputs


@pytest.mark.parametrize("name", step_commands())
def test_every_step_command_has_a_shape_that_prints_json(name: str) -> None:
    shape = shape_of(name)
    assert shape.parameter("json") or name == "bench --serve"
    assert shape.words[0] == name.split()[0]
    flags = [one.flag for one in shape.parameters if one.flag]
    assert len(set(flags)) == len(flags)


def test_the_whole_loop_can_be_steps() -> None:
    wanted = {
        "data convert", "advise", "estimate", "train", "launch", "bench", "diagnose", "export",
        "edge", "models add", "models promote", "serve", "bench --serve",
    }  # fmt: skip
    assert wanted <= set(step_commands())
    assert not {"run", "node", "models"} & set(step_commands())


@pytest.mark.parametrize(
    ("command", "writes"),
    [
        ("train", {"output", "write-layout"}),
        ("export", {"output", "html"}),
        ("data convert", {"destination"}),
        ("models add", {"store"}),
        ("bench", {"output", "export", "html"}),
    ],
)
def test_what_a_command_writes_is_no_input(command: str, writes: set[str]) -> None:
    assert {one.names[0] for one in shape_of(command).parameters if one.writes} == writes


def test_a_flag_knows_its_opposite_and_a_list_its_many() -> None:
    convert, train = shape_of("data convert"), shape_of("train")
    measure, settings = convert.parameter("measure"), train.parameter("set")
    words = train.parameter("arguments")
    assert measure
    assert measure.off == "--no-measure"
    assert settings
    assert settings.is_multiple
    assert words
    assert words.is_multiple
    assert not words.flag


def test_words_that_a_command_takes_pass_and_run_nothing() -> None:
    shape = shape_of("train")
    check_words(shape, ("train", "no-such-file.py", "--epochs", "2", "--", "--rows", "3"))
    load = shape_of("bench --serve")
    check_words(load, ("bench", "--serve", "http://127.0.0.1:1/v1/models/m", "--clients", "8"))


@pytest.mark.parametrize(
    ("name", "words", "said"),
    [
        ("train", ("train",), "missing argument 'WORKLOAD'"),
        ("train", ("train", "x.py", "--epochs", "zz"), "epochs 'zz' is not a number"),
        ("export", ("export", "m", "--to", "onix", "--output", "x"), "onix"),
        ("bench --serve", ("bench", "--clients", "0"), "clients"),
    ],
)
def test_words_that_it_does_not_take_are_one_sentence(
    name: str, words: tuple[str, ...], said: str
) -> None:
    with pytest.raises(UsageError) as error:
        check_words(shape_of(name), words)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("trian", "there is no command 'trian'; did you mean train?"),
        ("models", "models alone is no command; there are models add, models gc"),
        ("models ad", "did you mean models add"),
        ("train now", "there is no command 'train now'; did you mean train"),
        ("node", "node cannot be a step"),
        ("run", "run cannot be a step"),
    ],
)
def test_a_command_that_is_none_is_told_with_the_nearest(name: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        shape_of(name)
    assert said in str(error.value)


@pytest.mark.parametrize(
    "name", ["train", "bench", "data convert", "data bench", "recipe auto", "models get", "launch"]
)
def test_the_places_that_are_filled_in_are_options_of_the_command(name: str) -> None:
    shape = shape_of(name)
    filled = with_outputs({}, shape, "folder")
    words = option_words(filled, shape)
    assert any(word.startswith("folder/") for word in words)
