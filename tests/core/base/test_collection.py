"""The search for circles is as it was afterwards."""

from __future__ import annotations

import gc

import pytest

from tfdyno.core.base.collection import nothing_collected


def test_nothing_is_collected_meanwhile_and_the_search_goes_on_afterwards() -> None:
    assert gc.isenabled()
    seen = []

    def fail() -> None:
        with nothing_collected():
            seen.append(gc.isenabled())
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert (seen, gc.isenabled()) == ([False], True)


def test_a_search_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with nothing_collected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
