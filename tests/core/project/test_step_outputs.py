from __future__ import annotations

import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno.core.project.step_command import CommandShape, Parameter
from tfdyno.core.project.step_outputs import check_places, place_of, with_outputs


def shape(name: str) -> CommandShape:
    options = ("output", "html", "to")
    parameters = [Parameter(names=(one,), flag=f"--{one}", writes=one != "to") for one in options]
    return CommandShape(
        name=name, words=(name,),
        parameters=(*parameters, Parameter(names=("destination",), writes=True)),
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
        ("train", {"output": "{output}/mine"}, {"output": "{output}/mine"}),
        ("launch", {"on": "ray"}, {"output": "f/run"}),
        ("launch", {"on": "slurm"}, {}),
        ("launch", {"on": "ray", "with": ["kuberay=true"]}, {}),
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
    assert place_of(shape("train"), {"output": "{output}/a/mine"}) == "a/mine"
    assert place_of(shape("train"), {"output": "{output}/{advise.name}"}) == ""
    assert place_of(shape("diagnose"), {}) == ""
    assert place_of(shape("diagnose"), {"fix": True}) == "results"
    assert place_of(shape("export"), {}) == ""


@pytest.mark.parametrize(
    ("command", "options", "said"),
    [
        ("recipe show", {"output": "r.toml"}, "leave it out; others name it as {s}/recipe.toml."),
        ("train", {"output": "runs/a"}, "leave it out; others name it as {s}/run."),
        ("advise", {"html": "page.html"}, "leave it out; others name it as {s}/report.html."),
        ("doctor", {"output": "a.json"}, "begin it with {output}/."),
        ("train", {"output": "{output}/../a"}, "leave it out"),
        ("train", {"output": "{output}"}, "leave it out"),
        ("train", {"output": "{data}/run"}, "leave it out"),
        ("launch", {"output": "runs/a"}, "leave it out"),
    ],
)
def test_a_place_outside_of_the_steps_folder_is_refused(
    command: str, options: dict[str, object], said: str
) -> None:
    with pytest.raises(UsageError) as error:
        check_places("s", options, shape(command))
    (name,) = options
    assert str(error.value).startswith(f"step s: {name} = ")
    assert said in str(error.value)


def test_a_place_in_the_steps_folder_a_store_and_the_run_of_a_queued_job_are_taken() -> None:
    check_places("s", {"output": "{output}/a", "html": False, "to": "keras"}, shape("export"))
    check_places("s", {"output": "runs/a", "on": "slurm"}, shape("launch"))
    store = Parameter(names=("store",), flag="--store", writes=True)
    add = CommandShape(name="models add", words=("models", "add"), parameters=(store,))
    check_places("s", {"store": "store"}, add)
