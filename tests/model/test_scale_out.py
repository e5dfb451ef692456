from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.advice import estimate, exactly

from tfdyno.core.interval import Interval
from tfdyno.core.scale_out import GpuPrice
from tfdyno.model.scale_out import scale_out

if TYPE_CHECKING:
    from tfdyno.core.estimate import Estimate

PRICE = GpuPrice(usd_per_h=3.6, offer="cloud/x", gpu_count=8, priced_on="2026-11", source="list")


def replicas(count: int, rate: float, *, efficiency: float = 0.8, how: str = "xla") -> Estimate:
    return estimate(
        replicas=count,
        samples_per_s=exactly(rate),
        execution=how,
        efficiency_ratio=Interval(low=efficiency / 2, best=efficiency, high=1.0)
        if count > 1
        else None,
    )


def test_gain_efficiency_and_what_each_added_card_brings() -> None:
    found = scale_out(
        [replicas(4, 2000.0), replicas(1, 1000.0), replicas(2, 1600.0)], holds="batch per replica"
    )
    assert found.counts == (1, 2, 4)
    assert [row.gain_ratio.best for row in found.rows] == pytest.approx([1.0, 1.6, 2.0])
    assert [row.efficiency_ratio.best for row in found.rows] == pytest.approx([1.0, 0.8, 0.5])
    assert [row.added_ratio for row in found.rows] == pytest.approx([1.0, 0.6, 0.2])
    assert found.pays_until == 2  # from 2 to 4 a card brings a fifth


def test_the_gain_is_as_sure_as_the_exchange() -> None:
    one, two = scale_out([replicas(1, 1000.0), replicas(2, 1600.0)], holds="batch per replica").rows
    assert one.gain_ratio == exactly(1.0)
    assert two.gain_ratio.low == pytest.approx(0.8)  # half, as the low end of the exchange
    assert two.gain_ratio.high == 2.0  # two cards do no more than two
    changed = scale_out(
        [replicas(1, 1000.0), replicas(2, 1600.0, how="graph")], holds="batch per replica"
    ).rows[1]
    assert changed.gain_ratio.low < 0.8


def test_money_is_that_of_all_cards() -> None:
    rows = scale_out(
        [replicas(1, 1000.0), replicas(2, 1000.0)],
        holds="batch per replica",
        samples_per_epoch=500_000,
        price=PRICE,
    ).rows
    millions = [row.million_samples_usd for row in rows]
    epochs = [row.usd_per_epoch for row in rows]
    assert millions == [exactly(1.0), exactly(2.0)]  # 1,000 s at 0.001 USD/s
    assert epochs == [exactly(0.5), exactly(1.0)]


def test_without_a_price_there_is_no_money() -> None:
    (row,) = scale_out([replicas(1, 1000.0)], holds="global batch").rows
    assert (row.million_samples_usd, row.usd_per_epoch) == (None, None)


def test_one_replica_is_needed_to_compare_with() -> None:
    with pytest.raises(ValueError, match="need an estimate of one replica"):
        scale_out([replicas(2, 1000.0)], holds="batch per replica")
    with pytest.raises(ValueError, match="need an estimate of one replica"):
        scale_out([], holds="batch per replica")


@given(st.lists(st.floats(100.0, 900.0), min_size=1, max_size=6))
def test_it_pays_until_a_number_that_was_asked_for(added: list[float]) -> None:
    rates, total = [replicas(1, 1000.0)], 1000.0
    for index, more in enumerate(added, start=2):
        total += more
        rates.append(replicas(index, total))
    found = scale_out(rates, holds="batch per replica")
    assert found.pays_until in found.counts
    for row in found.rows:
        assert row.gain_ratio.low <= row.gain_ratio.best <= row.gain_ratio.high
