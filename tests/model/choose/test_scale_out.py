from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.advice import estimate, exactly

from tfdyno.core.base.interval import Interval
from tfdyno.core.choose.scale_out import GpuPrice
from tfdyno.model.choose.scale_out import scale_out

if TYPE_CHECKING:
    from tfdyno.core.choose.estimate import Estimate

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


def switched(*rates: tuple[int, float]) -> list[Estimate]:
    """One card with XLA, several as a graph, nothing exposed; 100 samples a card and step."""
    return [
        replace(replicas(count, rate, how="xla" if count == 1 else "graph"),
                step_s=exactly(100 * count / rate))
        for count, rate in rates
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("second", "share"), [(1400.0, 0.7), (950.0, 0.475)], ids=["gains", "loses"]
)
def test_another_program_is_a_loss_of_its_own_and_not_of_added_cards(
    second: float, share: float
) -> None:
    found = scale_out(
        switched((1, 1000.0), (2, second), (4, 2 * second), (8, 4 * second)),
        holds="batch per replica",
    )
    assert [row.added_ratio for row in found.rows] == pytest.approx([1.0, share, share, share])
    assert (found.pays_until, found.switched_to) == (8, "graph")
    assert found.switch_ratio == pytest.approx(1 / share)


def test_of_another_program_the_exchange_is_a_loss_of_added_cards() -> None:
    """By hand: 0.1 s of 0.2 s are exposed, so a card alone would do all of 1,000 a second."""
    one, two = switched((1, 1000.0), (2, 1000.0))
    found = scale_out([one, replace(two, exposed_s=0.1)], holds="batch per replica")
    assert found.switch_ratio == pytest.approx(1.0)
    assert found.rows[1].added_ratio == pytest.approx(0.0)
    assert found.pays_until == 1


def test_the_loss_of_another_program_is_not_told_at_another_batch() -> None:
    one, two = switched((1, 1000.0), (2, 1400.0))
    found = scale_out([one, replace(two, batch_size=50)], holds="global batch")
    assert (found.switched_to, found.switch_ratio) == ("graph", None)
    alike = scale_out([replicas(1, 1000.0), replicas(2, 1600.0)], holds="batch per replica")
    assert (alike.switched_to, alike.switch_ratio) == ("", None)


def test_it_does_not_pay_up_to_a_number_that_is_slower_than_one() -> None:
    found = scale_out(switched((1, 1000.0), (2, 600.0), (4, 650.0)), holds="batch per replica")
    assert found.pays_until == 1


def test_a_gain_above_the_number_of_cards_is_cut_where_one_program_alone_was_measured() -> None:
    found = scale_out(switched((1, 1000.0), (2, 2600.0)), holds="batch per replica").rows[1]
    assert found.capped
    assert (found.gain_ratio.best, found.efficiency_ratio.best) == (2.0, 1.0)
    assert found.gain_ratio.high == 2.0
    same = scale_out([replicas(1, 1000.0), replicas(2, 2100.0)], holds="batch per replica").rows[1]
    assert not same.capped
    assert same.gain_ratio.best == pytest.approx(2.1)


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
