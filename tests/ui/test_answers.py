from __future__ import annotations

import json
from random import Random

import pytest
from tests.ui.what_ifs import GIVEN, MODEL, RANKING, RUN, STEP, Ask, drawn, of_command, of_page

from tfdyno.ui.answers import step_answer
from tfdyno.ui.settings import read_settings
from tfdyno.ui.traces import Traces


@pytest.fixture(scope="module")
def traces() -> Traces:
    return Traces()


@pytest.mark.parametrize(
    ("ask", "count"), [(STEP, 150), (RUN, 60), (RANKING, 4)], ids=["step", "run", "ranking"]
)
def test_random_what_ifs_are_the_answers_of_the_commands_to_the_last_digit(
    traces: Traces, ask: Ask, count: int
) -> None:
    random = Random(29)
    answered = 0
    for _ in range(count):
        asked = drawn(random)
        page, command = of_page(ask, asked, traces)
        assert page == of_command(command), command
        answered += page.startswith(b"{")
    assert answered > count / 3  # the rest are refused, in the same words


def test_a_question_again_is_the_same_answer(traces: Traces) -> None:
    """What is kept between questions changes none of them."""
    random = Random(30)
    asked = [drawn(random) for _ in range(6)]
    first = [of_page(RUN, one, traces) for one in asked]
    assert [of_page(RUN, one, traces) for one in reversed(asked)] == first[::-1]


def test_a_roof_is_of_the_tensor_cores_where_float32_was_left_to_the_card(traces: Traces) -> None:
    def roofs(**more: str) -> list[str]:
        asked = read_settings({"workload": MODEL, "gpu": "a100-sxm4-80gb", **more}.items())
        of_page(STEP, asked, traces)
        found = json.loads(step_answer(asked, GIVEN, traces))
        return [one["name"] for one in found["card"]["roofs"]]

    assert roofs() == ["tensor cores, TF32", "float32 units"]
    assert roofs(precision="float32") == ["float32 units"]
