"""Steps by markers, by calls and by repetition."""

from __future__ import annotations

import numpy as np
import pytest
from tests.runtime.planted_profiles import Made, Planes, space

from tfdyno.profile.lines import Profile
from tfdyno.profile.planes import read_planes
from tfdyno.profile.steps import Sequence, Steps, find_steps

NOTHING = Sequence(begin_s=np.zeros(0), name_index=np.zeros(0, np.int64))


def profile(*made: Made, line: str = "python") -> Profile:
    planes: Planes = {"/host:CPU": {line: list(made)}}
    return read_planes(space(planes))


def found(*made: Made) -> Steps:
    steps = find_steps(profile(*made), NOTHING)
    assert steps is not None
    return steps


def call(function: str, at_us: float, us: float = 5) -> Made:
    return Made(name=f"EagerLocalExecute: __inference_{function}", at_us=at_us, us=us)


def sequence(pattern: str, *, step: float = 10.0, pause: float = 3.0) -> Sequence:
    """Operations of one letter; ``|`` begins a step after a pause."""
    names = sorted(set(pattern) - {"|"})
    begin, at = [], 0.0
    for letter in pattern:
        at += pause if letter == "|" else 1.0
        if letter != "|":
            begin.append(at)
    index = [names.index(letter) for letter in pattern if letter != "|"]
    return Sequence(begin_s=np.array(begin), name_index=np.array(index), names=tuple(names))


def by_pattern(pattern: str) -> Steps | None:
    return find_steps(Profile(planes=()), sequence(pattern))


def test_markers_lead() -> None:
    markers = [Made(name="train", at_us=10 * k, us=9, facts={"step_num": k}) for k in range(4)]
    steps = found(*markers, *(call("f_1", 5 * k) for k in range(8)))
    assert (steps.how, steps.count, steps.notes) == ("markers", 3, ())
    assert steps.edges_s == pytest.approx([0, 10e-6, 20e-6, 30e-6])


def test_one_marker_is_one_step_and_that_is_said() -> None:
    steps = found(Made(name="train", at_us=10, us=9, facts={"step_num": 0}))
    assert (steps.count, steps.notes) == (1, ("The profile holds one step only.",))


def test_a_call_that_notes_itself_twice_is_one_step() -> None:
    calls = [Made(name="PjitFunction(train_step)", at_us=10 * k + late, us=8 - 2 * late)
             for k in range(4) for late in (0, 0.5)]  # fmt: skip
    steps = found(*calls)
    assert (steps.how, steps.count) == ("calls", 3)
    assert steps.edges_s == pytest.approx([0, 10e-6, 20e-6, 30e-6])


def test_calls_of_the_function_that_takes_most_of_the_time_are_steps() -> None:
    steps = found(
        *(call("train_7", 100 * k, 80) for k in range(5)),
        *(call("log_8", 100 * k + 90, 5) for k in range(5)),
    )
    assert (steps.how, steps.count) == ("calls", 4)
    assert "each call of train counts as one step" in steps.notes[0]
    assert steps.edges_s == pytest.approx([0, 1e-4, 2e-4, 3e-4, 4e-4])


def test_validation_under_the_same_name_is_no_step_and_no_retracing() -> None:
    train = [call("multi_step_on_iterator_10", 100 * k, 80) for k in range(6)]
    steps = found(*train, *(call("multi_step_on_iterator_99", 700 + 50 * k, 40) for k in range(4)))
    assert steps.count == 5
    assert steps.retraced == {}


def test_a_function_with_many_versions_is_traced_again_and_again() -> None:
    steps = found(*(call(f"train_{k}", 100 * k, 80) for k in range(6)))
    assert steps.count == 5
    assert steps.retraced == {"train": 6}


def test_functions_of_the_pipeline_are_no_steps() -> None:
    made = [Made(name="FunctionRun", at_us=10 * k, us=5) for k in range(9)]
    assert find_steps(profile(*made, line="tf_data_iterator_resource/1"), NOTHING) is None
    steps = find_steps(profile(*made), NOTHING)
    assert steps is not None
    assert steps.count == 8


def test_a_pattern_begins_after_the_longest_rest() -> None:
    steps = by_pattern("cb|axcb|axcb|axcb|axcb|ax")
    assert steps is not None
    # by hand: four operations of 1 s and a pause of 3 s, and a comes after the pause
    assert steps.edges_s == pytest.approx([6, 13, 20, 27, 34])
    assert "same operation (a) to the next; 100% of all operations" in steps.notes[0]


def test_a_loop_inside_of_a_step_is_no_step() -> None:
    steps = by_pattern(("|s" + "xy" * 20 + "eo") * 5)
    assert steps is not None
    assert steps.count == 4
    assert np.diff(steps.edges_s) == pytest.approx([46.0] * 4)  # 43 operations and the pause


def test_what_comes_every_other_step_does_not_double_the_step() -> None:
    steps = by_pattern("|abcdefghij|abcdefghijL" * 6)
    assert steps is not None
    assert steps.count == 11


@pytest.mark.parametrize("pattern", ["", "ab", "abcdefg", "aabbccdde"])
def test_what_does_not_repeat_has_no_steps(pattern: str) -> None:
    assert by_pattern(pattern) is None
