"""An estimate reads back from JSON as it was written, open batch and all."""

from __future__ import annotations

from typing import Any

import pytest
from tests.advice import estimate

from tfdyno.core.base.codec import from_json, to_json
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.settings import MOST_SAMPLES
from tfdyno.core.choose.estimate import Estimate, HeldBuffer


@pytest.mark.parametrize("most", [None, 0, 2088, MOST_SAMPLES])
def test_a_stored_estimate_keeps_what_is_not_known(most: int | None) -> None:
    buffer = HeldBuffer(name="a", layer="", part="weights", dtype="f32", held_bytes=4.0)
    made = estimate(max_batch_size=most, largest_buffers=(buffer,), live_curve_bytes=((0.5, 9.0),))
    assert from_json(to_json(made), Estimate) == made


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"fits": "perhaps"}, r"Invalid enum value 'perhaps' - at `\$\.fits`"),
        ({"max_batch_size": 1.5}, r"\$\.max_batch_size"),
        ({"made_by": {"time": "guess"}}, r"\$\.made_by"),
    ],
)
def test_an_estimate_with_a_value_of_no_meaning_is_not_read(
    changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        from_json(to_json(estimate(**changes)), Estimate)
