from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.core.base.errors import UsageError
from tfdyno.core.project.step_command import (
    CommandShape,
    Parameter,
    check_options,
    check_value,
    nearest,
    option_words,
    script_words,
)

SHAPE = CommandShape(
    name="train",
    words=("train",),
    parameters=(
        Parameter(names=("workload",)),
        Parameter(names=("script-arguments", "arguments"), is_multiple=True),
        Parameter(names=("epochs",), flag="--epochs", is_text=False),
        Parameter(names=("count", "replicas"), flag="--count"),
        Parameter(names=("set",), flag="--set", is_multiple=True),
        Parameter(names=("measure",), flag="--measure", off="--no-measure", is_flag=True),
        Parameter(names=("unsafe",), flag="--unsafe", is_flag=True),
        Parameter(names=("json",), flag="--json", is_flag=True),
    ),
)


def words(**options: object) -> tuple[str, ...]:
    check_options("one", options, SHAPE)
    return option_words(options, SHAPE)


def test_options_become_words_in_the_order_of_the_file() -> None:
    assert words(epochs=5, workload="train.py", set=["a=1", "b=2"]) == (
        "train", "--epochs", "5", "--set", "a=1", "--set", "b=2", "train.py",
    )  # fmt: skip


def test_words_of_a_script_stand_behind_its_name() -> None:
    found = words(arguments=["--rows", "9"], workload="train.py", epochs=1)
    assert found == ("train", "--epochs", "1", "train.py", "--", "--rows", "9")


def test_a_flag_is_given_left_out_or_turned_off() -> None:
    assert words(unsafe=True, measure=False) == ("train", "--unsafe", "--no-measure")
    assert words(unsafe=False, measure=True) == ("train", "--measure")


def test_a_list_for_an_option_that_is_given_once_has_commas() -> None:
    assert words(replicas=[1, 2, 4]) == ("train", "--count", "1,2,4")


def test_false_leaves_an_option_out_that_is_filled_otherwise() -> None:
    assert words(epochs=False) == ("train",)


def test_a_value_that_looks_like_an_option_is_none() -> None:
    assert words(set="-x", workload="-m.py") == ("train", "--set=-x", "./-m.py")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"epoch": 5}, "step one: train has no option epoch; did you mean epochs?"),
        ({"zzz": 5}, "train has no option zzz; there are workload, script-arguments, epochs"),
        ({"json": True}, "json cannot be given: tfdyno run gives it itself; leave it out"),
        ({"count": 1, "replicas": 2}, "replicas and count are the same option"),
        ({"epochs": {"a": 1}}, "epochs cannot be a table"),
        ({"set": [{"a": 1}]}, "set cannot be a table"),
        ({"unsafe": "yes"}, "unsafe takes true or false"),
        ({"epochs": True}, "epochs takes a value, not true or false"),
    ],
)
def test_a_wrong_option_is_told_with_the_step(options: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError) as error:
        check_options("one", options, SHAPE)
    assert str(error.value).startswith("step one: ")
    assert said in str(error.value)


def test_dashes_and_underscores_are_the_same() -> None:
    assert SHAPE.parameter("script_arguments") is SHAPE.parameter("script-arguments")
    assert SHAPE.parameter("arguments") is SHAPE.parameter("script-arguments")
    assert SHAPE.parameter("nothing") is None


def test_a_scripts_options_are_passed_as_they_are() -> None:
    options = {"arguments": ["a", "b"], "rows": 5, "quick": True, "slow": False, "tag": ["x", "y"]}
    assert script_words(options) == ("a", "b", "--rows", "5", "--quick", "--tag", "x", "--tag", "y")


def test_a_name_far_from_all_is_answered_with_all() -> None:
    assert nearest("trian", ("train", "bench")) == "did you mean train?"
    assert nearest("zzz", ("train", "bench")) == "there are train, bench"


def test_a_date_is_no_value() -> None:
    import datetime

    with pytest.raises(UsageError, match="day cannot be"):
        check_value("one", "day", datetime.date(2026, 1, 1))


@given(st.lists(st.text(min_size=1)))
def test_every_value_of_an_option_that_is_given_many_times_arrives(values: list[str]) -> None:
    found = list(option_words({"set": values}, SHAPE))[1:]
    arrived = []
    while found:
        word = found.pop(0)
        arrived.append(word.removeprefix("--set=") if word != "--set" else found.pop(0))
    assert arrived == values
