"""From a measurement on a card to the estimates of all cards; the trace is a real one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.measurements import ENVIRONMENT, TASK, measurement

from tfdyno.catalog.gpus import find
from tfdyno.core.base.errors import UsageError
from tfdyno.core.measure.measurement import Card, Measurement
from tfdyno.jobs.choose.estimate import EstimateRequest, estimate
from tfdyno.jobs.choose.gap import card_of, gap, gaps
from tfdyno.jobs.choose.reference import parse_reference

if TYPE_CHECKING:
    from tfdyno.jobs.choose.estimate import Answer

MODEL = f"{Path(__file__).parents[1].parent / 'data' / 'models' / 'small.py'}:convnet"
T4 = Card(name="Tesla T4", slug="t4")


@pytest.fixture(autouse=True)
def own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("TFDYNO_DATA", str(tmp_path / "data"))


def answer(*gpus: str, **changes: object) -> Answer:
    cards = tuple(find(name) for name in gpus)
    base = EstimateRequest(
        workload=parse_reference(MODEL), gpus=cards, batch_size=64, route="quick"
    )
    return estimate(replace(base, **changes))  # type: ignore[arg-type]


def measured_on_t4(step_s: float, **changes: object) -> Measurement:
    trace = answer("t4").trace
    task = replace(
        TASK, reference=MODEL, title=trace.title, parameter_count=trace.parameter_count,
        policy=trace.policy, execution="xla",
    )  # fmt: skip
    environment = replace(ENVIRONMENT, device="gpu", cards=(T4,))
    one = measurement([[step_s] * 5] * 5, environment=environment, task=task)
    return replace(one, task=replace(task, **changes))  # type: ignore[arg-type]


def test_the_gap_is_between_the_measured_and_the_estimated_step() -> None:
    estimated_s = answer("t4").estimates[0].step_s
    found = gap(measured_on_t4(1.5 * estimated_s.best))
    assert found.estimated_s == estimated_s
    assert found.anchor.factor_ratio == pytest.approx(1.5)
    assert (found.anchor.card, found.anchor.batch_size) == ("t4", 64)


def test_a_kept_gap_moves_later_estimates_of_all_cards_and_is_told() -> None:
    before = answer("t4", "rtx-4090").estimates
    gaps([measured_on_t4(1.5 * before[0].step_s.best)], kept=True)
    after = answer("t4", "rtx-4090")
    same, other = (
        new.step_s.best / old.step_s.best for new, old in zip(after.estimates, before, strict=True)
    )
    assert same == pytest.approx(1.5)
    assert other == pytest.approx(1.5**0.5)
    assert after.notes == (
        "Times rest on your own measurement: Tesla T4 on 2026-11-21 (1.50 times its estimate); it "
        "moved Tesla T4 in full and other cards, in part, by a factor of 1.22.",
    )
    # measured again, it is held against the estimate itself, not against what it moved
    assert gap(measured_on_t4(before[0].step_s.best)).anchor.factor_ratio == pytest.approx(1.0)


def test_in_another_execution_or_precision_nothing_is_moved() -> None:
    before = answer("l4", precision="mixed_float16").estimates[0]
    graph = answer("l4", execution="graph").estimates[0]
    gaps([measured_on_t4(1.0)], kept=True)
    after = answer("l4", precision="mixed_float16")
    assert after.estimates[0].step_s == before.step_s
    assert after.notes == ()
    assert answer("l4", execution="graph").estimates[0].step_s == graph.step_s


def test_a_gap_that_is_not_kept_moves_nothing(tmp_path: Path) -> None:
    gaps([measured_on_t4(1.0)], kept=False)
    assert list((tmp_path / "data").iterdir()) == []


def test_a_measurement_on_a_cpu_is_refused_with_one_sentence() -> None:
    with pytest.raises(UsageError) as refused:
        gaps([measurement([[0.1]])], kept=True)
    assert str(refused.value) == (
        "0123456789ab was measured on a CPU: estimates are of GPUs, so there is none to compare."
    )


def test_beside_a_gpu_a_cpu_is_passed_over() -> None:
    found = gaps([measurement([[0.1]]), measured_on_t4(0.1)], kept=False)
    assert found[0] is None
    assert found[1]


def test_an_unknown_card_and_a_mixture_are_refused() -> None:
    one = measured_on_t4(0.1)
    for cards in ((Card(name="Card 9"),), (T4, Card(name="L4", slug="l4"))):
        mixed = replace(one, environment=replace(one.environment, cards=cards))
        with pytest.raises(UsageError, match="no estimate for that"):
            card_of(mixed)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"title": "other"}, "with .* parameters: measured was other"),
        ({"parameter_count": 3}, "measured was .* with 3; measure again"),
        ({"execution": "eager"}, "ran eagerly"),
        ({"reference": "gone.py:build"}, "gone.py"),
    ],
)
def test_what_cannot_be_estimated_as_it_was_measured_is_refused(
    changes: dict[str, object], told: str
) -> None:
    with pytest.raises(UsageError, match=told):
        gap(measured_on_t4(0.1, **changes))
