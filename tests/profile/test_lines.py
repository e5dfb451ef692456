"""Events of a profile are counted over all its planes."""

from __future__ import annotations

from tests.runtime.planted_profiles import Training, planes_of, space

from tfdyno.profile.lines import Profile
from tfdyno.profile.planes import read_planes


def test_events_are_counted_over_all_planes() -> None:
    made = planes_of(Training(steps=3, kernels=4, copy_us=5))
    # by hand: 12 kernels, 3 copies, 12 launches and 3 markers
    assert read_planes(space(made)).event_count == 30
    assert Profile(planes=()).event_count == 0
