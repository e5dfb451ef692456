from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.model.measure.load_knee import (
    MOST_DECIDING,
    PRECISION_RATIO,
    Probe,
    knee,
    next_probe,
    next_rate,
)


def search(
    limit_per_s: float, closed_per_s: float, sure_per_s: float | None = None
) -> tuple[Probe, ...]:
    """All probes of a server that keeps its promise exactly up to a limit.

    In a longer stretch it does so up to another one, where that is given.
    """
    sure = limit_per_s if sure_per_s is None else sure_per_s
    probes: tuple[Probe, ...] = ()
    while (wanted := next_probe(probes, closed_per_s)) is not None:
        rate, limit = wanted.rate_per_s, sure if wanted.decides else limit_per_s
        one = Probe(rate_per_s=rate, holds=rate <= limit, decides=wanted.decides)
        probes = (*probes, one)
    return probes


@given(st.floats(0.1, 3.0), st.floats(1.0, 10_000.0))
def test_the_knee_is_found_to_its_precision(share: float, closed_per_s: float) -> None:
    limit = share * closed_per_s
    found = knee(search(limit, closed_per_s))
    assert found is not None
    assert found <= limit <= found * PRECISION_RATIO * 1.0001


def test_what_short_stretches_found_is_decided_by_a_longer_one() -> None:
    probes = search(100.0, 160.0)
    assert [one.decides for one in probes].count(True) == 1
    assert probes[-1].decides
    assert probes[-1].rate_per_s == knee(probes[:-1]) == knee(probes)


def test_a_rate_that_was_lucky_is_not_the_knee() -> None:
    """The short stretches held up to 100, and one of several is lucky; the longer up to 90."""
    probes = search(100.0, 160.0, sure_per_s=90.0)
    lucky, found = knee(tuple(one for one in probes if not one.decides)), knee(probes)
    assert lucky is not None
    assert found is not None
    assert lucky > 90.0
    assert 90.0 / PRECISION_RATIO**4 < found <= 90.0


def test_longer_stretches_end_where_none_is_sure() -> None:
    probes = search(100.0, 160.0, sure_per_s=0.0)
    deciding = [one.rate_per_s for one in probes if one.decides]
    assert len(deciding) == MOST_DECIDING
    assert deciding[-1] * PRECISION_RATIO**15 == pytest.approx(deciding[0])
    assert knee(probes) is None


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
