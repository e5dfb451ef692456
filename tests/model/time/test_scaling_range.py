from __future__ import annotations

from dataclasses import replace
from math import exp

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model.steps import Neutral, trace

from tfdyno.catalog.time_model import time_model
from tfdyno.core.choose.workload import TensorSpec
from tfdyno.model.time.scaling import efficiency_ends, efficiency_range, loses_more

VARIANCE = TensorSpec(name="bn/moving_variance", role="state", shape=(64,), dtype="float32",
                      bytes=256)  # fmt: skip


def test_the_delay_is_off_by_the_factor_of_the_width() -> None:
    """Half is lost: the delay is as long as the step; three times that leaves a quarter."""
    width, even = 1.0986, exp(0.03 * 1.0986)  # ln 3
    low, high = efficiency_ends(0.5, width)
    assert low == pytest.approx(1 / 4 / even, rel=1e-4)
    assert high == pytest.approx(3 / 4 * even, rel=1e-4)


@given(st.floats(0.01, 1.0), st.floats(0.0, 5.0), st.floats(0.0, 2.0))
def test_a_wider_range_holds_a_narrower_one(best: float, width: float, more: float) -> None:
    narrow, wide = efficiency_ends(best, width), efficiency_ends(best, width + more)
    assert wide[0] <= narrow[0] <= best * (1 + 1e-12)
    assert wide[1] >= narrow[1] >= best * (1 - 1e-12)


@given(st.floats(0.01, 1.0), st.integers(1, 64), st.booleans())
def test_a_range_holds_its_best_and_ends_at_one(best: float, nodes: int, more: bool) -> None:
    found = efficiency_range(best, time_model(), nodes=nodes, unexplained=more)
    assert 0.0 < found.low <= found.best <= found.high <= 1.0


def test_where_nothing_is_lost_the_range_is_narrow_and_where_most_is_it_is_no_guess() -> None:
    model = time_model()
    full, fifth = efficiency_range(1.0, model), efficiency_range(0.2, model)
    assert full.low > 0.9
    assert fifth.low > 0.04
    assert fifth.high < 0.6


def test_several_nodes_are_known_less_well() -> None:
    constants = Neutral(allreduce_width=1.0, allreduce_width_nodes=2.0)
    assert efficiency_range(0.8, constants, nodes=2).low < efficiency_range(0.8, constants).low


def test_what_nobody_has_explained_reaches_further_down() -> None:
    constants = Neutral(allreduce_width=0.1, allreduce_half=0.5)
    found = efficiency_range(0.9, constants, unexplained=True)
    assert found.low == pytest.approx(0.45)
    assert found.high == efficiency_range(0.9, constants).high


@pytest.mark.parametrize(
    ("policy", "execution", "expected"),
    [
        ("mixed_float16", "graph", True),
        ("", "graph", False),  # the trace is of float32
        ("tf32", "graph", False),
        ("mixed_float16", "xla", False),
    ],
)
def test_batch_normalisation_in_sixteen_bits_as_a_graph_loses_more(
    policy: str, execution: str, expected: bool
) -> None:
    plain = replace(trace(policy="float32"), tensors=())
    normalised = replace(plain, tensors=(VARIANCE,))
    assert loses_more(normalised, policy, execution) is expected
    assert not loses_more(plain, policy, execution)
