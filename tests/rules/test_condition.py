"""Conditions of rules: one of, not, known, unknown, a range of versions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.rules.condition import holds, version_key


@pytest.mark.parametrize(
    ("condition", "value", "met"),
    [
        ("windows", "windows", True),
        ("linux|wsl", "wsl", True),
        ("linux|wsl", "windows", False),
        ("!conda", "pip", True),
        ("!conda|pixi", "pixi", False),
        ("!conda", "", False),
        ("*", "x", True),
        ("*", "", False),
        ("?", "", True),
        ("?", "x", False),
        ("", "", False),
        (">=2.11,<2.16", "2.11.0", True),
        (">=2.11,<2.16", "2.15.1", True),
        (">=2.11,<2.16", "2.16", False),
        (">=2.11,<2.16", "2.9", False),
        (">2.10", "2.10.0", False),
        ("==2.10", "2.10.1", True),
        ("==2.10", "2.1", False),
        ("<=12", "12.0", True),
        ("<525.60.13", "470.57.02", True),
    ],
)
def test_a_condition_is_met(condition: str, value: str, met: bool) -> None:
    assert holds({"name": condition}, {"name": value}) is met


def test_all_conditions_must_hold_and_none_always_does() -> None:
    assert holds({}, {})
    assert not holds({"a": "1", "b": "2"}, {"a": "1"})


numbers = st.lists(st.integers(0, 999), min_size=1, max_size=4)


@given(numbers, numbers)
def test_versions_are_ordered_by_their_numbers(one: list[int], other: list[int]) -> None:
    def stripped(parts: list[int]) -> list[int]:
        while parts and parts[-1] == 0:
            parts = parts[:-1]
        return parts

    first, second = ".".join(map(str, one)), ".".join(map(str, other))
    assert (version_key(first) < version_key(second)) is (stripped(one) < stripped(other))
    assert holds({"v": f">={second}"}, {"v": first}) is not holds({"v": f"<{second}"}, {"v": first})
