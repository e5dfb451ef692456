"""Conditions of rules and fixes on values: equal, one of, not, or a range of versions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_DIGITS = 18
"""More than any version has; Python refuses to read numbers of thousands of digits."""
_BOUND = re.compile(r"(>=|<=|==|>|<)\s*([\d.]+)")


def version_key(text: str) -> tuple[int, ...]:
    """Return the numbers of a version without trailing zeros, so that 2.10 > 2.9 and 12.0 = 12."""
    numbers = [int(number[:_DIGITS]) for number in re.findall(r"\d+", text)]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def holds(when: Mapping[str, str], values: Mapping[str, str]) -> bool:
    """Return whether all conditions are met.

    Args:
        when: Value name to condition: ``windows``, ``linux|wsl`` (one of them), ``!conda`` (known
            and another), ``>=2.11,<2.16`` (a range of versions), ``*`` (known), ``?`` (unknown).
        values: What is known; a missing or empty value meets only ``?``.
    """
    return all(_one(condition, values.get(name, "")) for name, condition in when.items())


def _one(condition: str, value: str) -> bool:
    if condition == "?":
        return not value
    if not value:
        return False
    if condition == "*":
        return True
    if condition.startswith("!"):
        return value not in condition[1:].split("|")
    bounds = _BOUND.findall(condition)
    return _in_range(bounds, value) if bounds else value in condition.split("|")


def _in_range(bounds: list[tuple[str, str]], value: str) -> bool:
    have = version_key(value)
    tests = {
        ">=": lambda want: have >= want,
        "<=": lambda want: have <= want,
        "==": lambda want: have[: len(want)] == want,
        ">": lambda want: have > want,
        "<": lambda want: have < want,
    }
    return all(tests[sign](version_key(bound)) for sign, bound in bounds)
