from __future__ import annotations

import pytest

from tfdyno.core.step_command import CommandShape, Parameter
from tfdyno.core.step_outputs import place_of, with_outputs


def shape(name: str) -> CommandShape:
    options = ("output", "html", "to")
    parameters = [Parameter(names=(one,), flag=f"--{one}") for one in options]
    return CommandShape(
        name=name, words=(name,),
        parameters=(*parameters, Parameter(names=("destination",))),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("command", "options", "filled"),
    [
        ("train", {}, {"output": "f/run"}),
        ("bench", {}, {"output": "f/results"}),
        ("data convert", {}, {"destination": "f/dataset"}),
        ("export", {"to": "savedmodel"}, {"output": "f/export"}),
        ("export", {"to": "litert-int8"}, {"output": "f/export.tflite"}),
        ("export", {"to": ["keras"]}, {"output": "f/export.keras"}),
        ("export", {"to": "keras,onnx"}, {"output": "f/export"}),
        ("diagnose", {}, {}),
        ("diagnose", {"fix": True}, {"output": "f/results"}),
        ("estimate", {}, {}),
        ("train", {"output": "mine"}, {"output": "mine"}),
    ],
)
def test_what_is_written_goes_into_the_steps_folder(
    command: str, options: dict[str, object], filled: dict[str, object]
) -> None:
    assert with_outputs(options, shape(command), "f") == options | filled | {
        "html": "f/report.html"
    }


def test_a_page_of_ones_own_or_none_stays_so() -> None:
    assert with_outputs({"html": "my.html"}, shape("advise"), "f") == {"html": "my.html"}
    assert with_outputs({"html": False}, shape("advise"), "f") == {"html": False}


def test_a_command_without_such_options_gets_none() -> None:
    bare = CommandShape(name="train", words=("train",), parameters=())
    assert with_outputs({}, bare, "f") == {}


def test_a_command_goes_on_where_it_writes_into_the_steps_folder() -> None:
    assert place_of(shape("train"), {}) == "run"
    assert place_of(shape("bench"), {}) == "results"
    assert place_of(shape("train"), {"output": "mine"}) == ""
    assert place_of(shape("diagnose"), {}) == ""
    assert place_of(shape("diagnose"), {"fix": True}) == "results"
    assert place_of(shape("export"), {}) == ""
