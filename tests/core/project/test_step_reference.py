from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.core.base.errors import UsageError
from tfdyno.core.project.step_reference import (
    filled,
    has_reference,
    looked_up,
    named,
    own_keys,
    references,
)

DOCUMENT = {
    "model": "run/model.keras",
    "steps": 88,
    "good": True,
    "formats": [{"format": "savedmodel", "path": "a"}, {"format": "litert-int8", "path": "b"}],
    "picks": {"cheapest": {"gpu": "t4"}},
}


def test_steps_are_named_once_in_their_order_wherever_they_stand() -> None:
    options = {"a": "{data}/x", "b": ["{train.model}", "{data.output}"], "c": 3, "d": "{output}"}
    assert named(options) == ("data", "train")


def test_what_is_asked_of_which_step_is_told_and_what_of_the_step_itself() -> None:
    options = {"a": "{data}/x", "b": ["{train.model.path}", "{{no}}"], "d": "{output}/x"}
    assert list(references(options)) == [("data", ()), ("train", ("model", "path"))]
    assert own_keys(options) == ""
    assert own_keys({"x": ["a", "{output.a.b}"]}) == "a.b"


def test_double_braces_are_braces_and_no_reference() -> None:
    assert not has_reference('{{"instances": []}}')
    assert filled("{{x}}", lambda _s, _k: "no") == "{x}"


def test_what_is_no_name_between_braces_stays() -> None:
    text = '{"instances": [1]} { } {a b}'
    assert filled(text, lambda _s, _k: "no") == text


def test_a_reference_is_filled_in_texts_and_lists_of_them() -> None:
    def find(step: str, keys: tuple[str, ...]) -> str:
        return "/".join((step, *keys))

    assert filled("{train}/m", find) == "train/m"
    assert filled(["{train.model}", 5, True], find) == ["train/model", 5, True]
    assert filled({"a": "{train.a.b}"}, find) == {"a": "train/a/b"}


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        ("model", "run/model.keras"),
        ("steps", "88"),
        ("good", "true"),
        ("formats.1.path", "b"),
        ("formats.savedmodel.path", "a"),
        ("formats.litert-int8.path", "b"),
        ("picks.cheapest.gpu", "t4"),
    ],
)
def test_a_value_is_found_by_its_keys(keys: str, value: str) -> None:
    assert looked_up(DOCUMENT, "train", tuple(keys.split("."))) == value


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("modle", "{train.modle} names nothing: train has no modle; there are model, steps"),
        ("formats.onnx.path", "train.formats has no onnx; there are savedmodel, litert-int8"),
        ("formats.7", "train.formats has no 7"),
        ("picks", "{train.picks} is no single value: it holds cheapest"),
        ("steps.x", "train.steps has no x"),
    ],
)
def test_a_key_that_is_not_there_is_told_with_those_that_are(keys: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        looked_up(DOCUMENT, "train", tuple(keys.split(".")))
    assert said in str(error.value)


@given(st.text())
def test_any_text_with_its_braces_doubled_comes_back(text: str) -> None:
    doubled = text.replace("{", "{{").replace("}", "}}")
    assert filled(doubled, lambda _s, _k: "no") == text


@given(st.text(alphabet="{}ab.-_ 1"))
def test_no_text_breaks_the_reader(text: str) -> None:
    assert bool(named(text)) <= has_reference(text)
    filled(text, lambda step, keys: step + "".join(keys))
