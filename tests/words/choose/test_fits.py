from __future__ import annotations

import pytest

from tfdyno.words.choose.fits import added_fits, unseen_fits


def test_each_call_is_told_with_its_hours() -> None:
    assert added_fits([1, 3], [0.2, 1.1], "H100") == (
        "Calls 1 and 3 of fit are added up: 12 min and 1.1 h on H100, without the machine's start."
    )
    assert added_fits([1], [0.2], "H100").startswith("Call 1 of fit is added up: 12 min on H100")


@pytest.mark.parametrize(
    ("number", "name"), [(2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (13, "13th")]
)
def test_the_first_call_that_was_not_reached_is_named(number: int, name: str) -> None:
    assert unseen_fits(number, "it failed") == (
        f"Calls of fit from the {name} on, if there are any, are not in: it failed."
    )
