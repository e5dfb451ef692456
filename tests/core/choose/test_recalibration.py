from __future__ import annotations

import pytest
from tests.anchors import anchor

from tfdyno.core.base.codec import from_json, to_json
from tfdyno.core.base.interval import Interval
from tfdyno.core.choose.recalibration import Anchor, Gap


def test_the_factor_is_measured_over_estimated() -> None:
    assert anchor(1.2).factor_ratio == pytest.approx(1.2)


@pytest.mark.parametrize(("high_s", "inside"), [(0.13, True), (0.11, False)])
def test_a_gap_knows_whether_the_interval_held(high_s: float, inside: bool) -> None:
    gap = Gap(estimated_s=Interval(low=0.08, best=0.1, high=high_s), anchor=anchor(1.2))
    assert gap.inside is inside


def test_an_anchor_survives_json() -> None:
    assert from_json(to_json(anchor()), Anchor) == anchor()
