"""A request to end passes through what catches exceptions."""

from __future__ import annotations

import pytest
from tests.runtime.loaded import facts

pytestmark = pytest.mark.tf


def test_the_users_except_does_not_swallow_it() -> None:
    assert facts()["stop"] == "SIGTERM"


def test_signals_are_told_by_name_while_the_block_lasts() -> None:
    assert facts()["asked"] == ["SIGTERM", "Ctrl-C"]
    assert facts()["handlers"] == [True, True]


def test_another_thread_leaves_the_signals_as_they_are() -> None:
    assert facts()["elsewhere"] == "no signals here"
