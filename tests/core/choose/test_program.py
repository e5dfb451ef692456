"""The buffer plan names the worst moment at a batch and splits it into parts that add up."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.core.base.interval import Scaled
from tfdyno.core.choose.program import BufferPlan

NOTHING = Scaled()
BYTES = st.builds(Scaled, fixed=st.floats(0, 1e12), per_sample=st.floats(0, 1e9))


def plan(parts: dict[str, Scaled], *other_moments: Scaled) -> BufferPlan:
    """A plan whose marked peak is the sum of its parts, among ``other_moments``."""
    peak = sum(parts.values(), start=Scaled())
    return BufferPlan(
        argument_bytes=NOTHING,
        output_bytes=NOTHING,
        aliased_bytes=NOTHING,
        temporary_bytes=NOTHING,
        peak_bytes=peak,
        parts_bytes=parts,
        largest=(),
        live_curve=(),
        envelope=(peak, *other_moments) if other_moments else (),
    )


# Weights 100, activations 10 a sample; all gradients at once need 180 whatever the batch.
TWO_MOMENTS = plan(
    {"weights": Scaled(fixed=100.0), "activations": Scaled(per_sample=10.0)}, Scaled(fixed=180.0)
)


@pytest.mark.parametrize(
    ("batch_size", "peak_bytes"),
    [(1, 180.0), (8, 180.0), (9, 190.0), (20, 300.0)],  # by hand: max(100 + 10 n, 180)
)
def test_the_peak_is_that_of_the_worst_moment_at_the_batch(
    batch_size: int, peak_bytes: float
) -> None:
    assert TWO_MOMENTS.peak_at(batch_size) == peak_bytes


def test_without_other_moments_the_marked_peak_serves_every_batch() -> None:
    assert plan({"weights": Scaled(fixed=5.0, per_sample=2.0)}).peak_at(3) == 11.0


def test_what_another_moment_holds_more_counts_as_gradients() -> None:
    assert TWO_MOMENTS.parts_at(2) == {"weights": 100.0, "activations": 20.0, "gradients": 60.0}
    assert TWO_MOMENTS.parts_at(20) == {"weights": 100.0, "activations": 200.0}


def test_the_parts_of_another_moment_are_its_own_where_they_are_known() -> None:
    taken_back = {"weights": Scaled(fixed=180.0)}
    known = replace(TWO_MOMENTS, envelope_parts=(TWO_MOMENTS.parts_bytes, taken_back))
    assert known.parts_at(2) == {"weights": 180.0}
    assert known.parts_at(20) == {"weights": 100.0, "activations": 200.0}


def test_what_another_order_saves_is_the_difference_of_the_peaks() -> None:
    other = replace(TWO_MOMENTS, reordered=(Scaled(fixed=100.0, per_sample=8.0),))
    # by hand: max(100 + 10 n, 180) - (100 + 8 n), and never less than nothing
    assert [other.reordering_saves_bytes(n) for n in (1, 9, 20)] == [72.0, 18.0, 40.0]
    assert TWO_MOMENTS.reordering_saves_bytes(9) == 0.0
    more = replace(TWO_MOMENTS, reordered=(Scaled(fixed=1e6),))
    assert more.reordering_saves_bytes(9) == 0.0


def test_gradients_that_are_there_already_grow_by_it() -> None:
    made = plan({"weights": Scaled(fixed=10.0), "gradients": Scaled(fixed=4.0)}, Scaled(fixed=20.0))
    assert made.parts_at(1) == {"weights": 10.0, "gradients": 10.0}  # 4 + (20 - 14)


@given(
    st.dictionaries(st.sampled_from(["weights", "gradients", "activations", "inputs"]), BYTES),
    st.lists(BYTES, max_size=3),
    st.integers(1, 4096),
)
def test_the_parts_add_up_to_the_peak(
    parts: dict[str, Scaled], moments: list[Scaled], batch_size: int
) -> None:
    made = plan(parts, *moments)
    assert sum(made.parts_at(batch_size).values()) == pytest.approx(made.peak_at(batch_size))


@given(st.lists(BYTES, min_size=1, max_size=4), st.integers(1, 4096))
def test_a_larger_batch_never_needs_less(moments: list[Scaled], batch_size: int) -> None:
    made = plan({"weights": Scaled(fixed=1.0)}, *moments)
    assert made.peak_at(batch_size + 1) >= made.peak_at(batch_size)
