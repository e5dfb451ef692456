"""How far ratios of two estimates are off: the widths that a memory plan tells."""

from __future__ import annotations

import pytest
from tests.judged import everything

from tfdyno.catalog.assumptions import recipe_rules
from tfdyno_truth.pairs import Setting, ratio_spread


@pytest.mark.parametrize(("setting", "pairs"), [("precision", 500), ("batch", 300)])
def test_the_width_of_a_ratio_is_that_of_the_published_pairs(setting: Setting, pairs: int) -> None:
    found = ratio_spread(everything(), setting)
    assert found.pairs > pairs
    shipped = getattr(recipe_rules(), f"{setting}_ratio_log_width")
    assert shipped == pytest.approx(found.log_width, abs=0.02)


def test_a_ratio_of_two_batches_is_known_better_than_one_of_two_precisions() -> None:
    batches, precisions = (ratio_spread(everything(), one) for one in ("batch", "precision"))
    assert batches.log_width < 0.6 * precisions.log_width
