from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from tfdyno.core.base.interval import Scaled
from tfdyno.kernels.memory.live_bytes import curve, envelope, live_bytes


@dataclass
class Span:
    start: int
    end: int
    size: Scaled


SIZES = st.builds(
    lambda fixed, growing: Scaled(fixed=float(fixed), per_sample=float(growing)),
    st.integers(0, 10**6),
    st.integers(0, 10**4),
)


def test_live_bytes_count_both_ends_of_a_span() -> None:
    spans = [Span(0, 1, Scaled(fixed=5)), Span(1, 3, Scaled(fixed=2, per_sample=1))]
    assert [each.at(10) for each in live_bytes(spans, 5)] == [5, 17, 12, 12, 0]


@given(st.lists(SIZES, min_size=1, max_size=30), st.integers(1, 4096))
def test_the_envelope_holds_the_peak_of_every_batch(moments: list[Scaled], batch: int) -> None:
    hull = envelope(moments)
    assert max(each.at(batch) for each in hull) == max(each.at(batch) for each in moments)


@given(st.lists(SIZES, min_size=1, max_size=900))
def test_the_curve_keeps_the_peak_in_at_most_200_points(moments: list[Scaled]) -> None:
    points = curve(moments, Scaled(fixed=7), 3)
    assert len(points) <= 200
    assert max(live.at(3) for _, live in points) == max(each.at(3) for each in moments) + 7
    assert points[0][0] == 0
    assert points[-1][0] <= 1
