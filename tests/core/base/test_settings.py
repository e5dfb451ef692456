from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.core.base import settings
from tfdyno.core.base.errors import UsageError


@given(st.integers(1, settings.MOST_IN_A_RUN))
def test_every_whole_number_in_range_is_itself_as_number_and_as_text(value: int) -> None:
    assert settings.whole(value, "n") == value == settings.whole(f"{value:_}", "n")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (0, "n 0 is not possible; give a whole number, 1 or more"),
        (64.5, "n 64.5 is not possible"),
        (float("nan"), "n nan is not possible; give a finite number"),
        ("1e400", "n 1e400 is not possible; give a finite number"),
        ("x", "n 'x' is not a number"),
        (True, "n 'True' is not a number"),
        (1e13, r"give at most 1,000,000,000,000\."),
    ],
)
def test_what_is_no_whole_number_is_told(value: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        settings.whole(value, "n")


def test_money_and_hours_are_above_0() -> None:
    assert settings.positive("2.5", "budget") == 2.5
    with pytest.raises(UsageError, match="budget -1 is not possible; give more than 0"):
        settings.positive(-1, "budget")


def test_a_wrong_name_is_told_with_the_nearest() -> None:
    assert settings.one_of("quick", settings.ROUTES, "route") == "quick"
    with pytest.raises(UsageError, match="route 'qick' is not one of auto, quick, exact; did you "):
        settings.one_of("qick", settings.ROUTES, "route")
    with pytest.raises(UsageError, match=r"route 'zzz' is not one of auto, quick, exact\."):
        settings.one_of("zzz", settings.ROUTES, "route")


def test_what_runs_by_operation_is_an_execution_without_a_compiler() -> None:
    assert set(settings.BY_OPERATION) < set(settings.EXECUTIONS)
    assert {"xla", "compiled-torch"}.isdisjoint(settings.BY_OPERATION)
