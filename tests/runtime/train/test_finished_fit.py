"""The end of a fit, kept for a run that goes on."""

from __future__ import annotations

import pytest
from tests.runtime.loaded import facts

pytestmark = pytest.mark.tf


def test_it_is_known_until_more_epochs_are_wanted() -> None:
    nothing_yet, same, more, fewer = facts()["finished"][:4]
    assert (nothing_yet, same, more, fewer) == (None, 2, None, 2)


def test_weights_optimizer_and_random_numbers_come_back() -> None:
    kernel, same_iterations, same_random = facts()["finished"][4:]
    assert kernel == 7.0  # as it was after the last checkpoint of the training itself
    assert same_iterations
    assert same_random


def test_without_a_folder_nothing_is_kept() -> None:
    assert facts()["nowhere"] is None
