from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tfdyno.model.load_knee import PRECISION_RATIO, Probe, knee, next_rate


def search(limit_per_s: float, closed_per_s: float) -> tuple[Probe, ...]:
    """All probes of a server that keeps its promise exactly up to a limit."""
    probes: tuple[Probe, ...] = ()
    while (rate := next_rate(probes, closed_per_s)) is not None:
        probes = (*probes, Probe(rate_per_s=rate, holds=rate <= limit_per_s))
    return probes


@given(st.floats(0.1, 3.0), st.floats(1.0, 10_000.0))
def test_the_knee_is_found_to_its_precision(share: float, closed_per_s: float) -> None:
    limit = share * closed_per_s
    found = knee(search(limit, closed_per_s))
    assert found is not None
    assert found <= limit <= found * PRECISION_RATIO * 1.0001


def test_a_promise_that_no_rate_keeps_ends_the_search() -> None:
    probes = search(0.0, 160.0)
    assert knee(probes) is None
    assert min(one.rate_per_s for one in probes) == 10.0  # a sixteenth of 160


def test_one_failure_is_tried_again() -> None:
    failed = (Probe(rate_per_s=50.0, holds=False),)
    assert next_rate(failed, 100.0) == 50.0
    held = (*failed, Probe(rate_per_s=50.0, holds=True))
    assert knee(held) == 50.0
    assert next_rate(held, 100.0) == 75.0


def test_a_server_that_answers_nothing_is_not_searched() -> None:
    assert next_rate((), 0.0) is None
