"""A script run as __main__ within another process."""

from __future__ import annotations

import pytest
from tests.runtime.loaded import facts

pytestmark = pytest.mark.tf


def test_it_has_its_words_its_name_and_its_folder() -> None:
    assert facts()["script"] == ["['a',", "'b']", "__main__", facts()["script_folder"]]


def test_an_exit_counts_only_while_something_is_still_wanted() -> None:
    assert facts()["script_exit"] == 3
