from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno.core.project.file import MOST_BYTES, MOST_WHOLE, check_limits

FILE = Path("project.toml")


def deep(value: object, times: int) -> object:
    for _ in range(times):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"code": "a\0b"}, "a text of [steps.a] has a NUL in it: behind 'a'."),
        ({"a\0": 1}, "a text of [steps.a] has a NUL in it: behind 'a'."),
        ({"x": ["\0"]}, "a text of [steps.a] has a NUL in it: at its begin."),
        ({"x": MOST_WHOLE}, "a number of [steps.a] is too large: it has over 64 bits."),
        ({"x": int("9" * 4000)}, "a number of [steps.a] is too large: it has over 64 bits."),
        ({"x": deep(1, 900)}, "[steps.a] is nested too deep."),
        ({"x": "ä" * MOST_BYTES}, "a text of [steps.a] is too long: it has 200,000 bytes; put "),
        ({"x": ["x" * MOST_BYTES] * 9}, "the texts of [steps.a] are too long: they have 900,"),
    ],
    ids=lambda one: "" if isinstance(one, dict) else one[:40],
)
def test_what_nothing_could_be_done_with_is_refused(table: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as error:
        check_limits(table, FILE, "[steps.a]")
    assert str(error.value).startswith(f"project.toml: {said}")
    assert len(str(error.value)) < 200


def test_what_a_command_line_takes_passes() -> None:
    check_limits({"x": ["x" * MOST_BYTES, -5, 0.5, True, {"y": [1]}], "y": ""}, FILE, "[steps.a]")
