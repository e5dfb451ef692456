"""advise with a measured input pipeline: an offer's vCPUs hold its GPUs back, end to end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.feeds import feed, round_

from tfdyno.catalog.gpus import all_gpus, find, parse_list
from tfdyno.jobs.choose._changes import changes_of
from tfdyno.jobs.choose.advise import Outcome, Request, advise
from tfdyno.jobs.choose.market import Conditions
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.view.base.documents import advice_document
from tfdyno.view.choose.html import render_report
from tfdyno.words.choose.changes import choice

if TYPE_CHECKING:
    from tfdyno.core.choose.advice import Candidate
    from tfdyno.core.measure.feed import Feed

MODEL = Path(__file__).parents[1].parent / "data" / "models" / "small.py"
CARDS = parse_list("a100-sxm4-80gb,t4")
SLOW = feed(rounds=(round_(2000.0, 2.0), round_(1100.0, 1.0)) * 2, looks=())
"""1,000 samples/s of each CPU, and nothing in one thread."""


def answer(measured: Feed | None, **changes: object) -> Outcome:
    base = Request(
        workload=parse_reference(f"{MODEL}:convnet"),
        conditions=Conditions(gpus=CARDS),
        batch_size=64,
        epochs=10,
        samples=1_000_000,
        route="quick",
        feed=measured,
    )
    return advise(replace(base, **changes))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def slow() -> Outcome:
    return answer(SLOW)


@pytest.fixture(scope="module")
def free() -> Outcome:
    return answer(None)


def by_slug(outcome: Outcome) -> dict[str, Candidate]:
    return {one.slug: one for one in outcome.advice.ranking}


def test_hours_and_cost_are_those_of_the_slower_of_gpu_and_feed(
    slow: Outcome, free: Outcome
) -> None:
    before, held = by_slug(free), 0
    for slug, one in by_slug(slow).items():
        if one.feeding is None or one.offer is None or one.verdict == "cannot run":
            continue
        own = before[slug].estimate.step_s.best
        fed_s = one.estimate.global_batch_size / one.feeding.rate_per_s.best
        assert one.estimate.step_s.best == pytest.approx(max(own, fed_s))
        assert one.cost_usd
        assert one.cost_usd.best == pytest.approx(one.hours.best * one.offer.usd_per_h)
        if fed_s > own:
            held += 1
            assert one.estimate.bound_by == "input"
            assert one.hours.best > before[slug].hours.best
            assert one.energy_kwh.best > before[slug].energy_kwh.best
        else:
            assert one.hours == before[slug].hours
    assert held > 5


def test_more_vcpus_feed_more(slow: Outcome) -> None:
    fed = [one.feeding for one in slow.advice.ranking if one.feeding]
    rates = sorted((one.vcpus, one.rate_per_s.best) for one in fed)
    assert rates == sorted(rates, key=lambda one: one[1])
    assert len({vcpus for vcpus, _ in rates}) > 3


def test_the_reason_says_so_with_numbers(slow: Outcome) -> None:
    held = [one for one in slow.advice.ranking if one.feeding and one.feeding.is_short]
    assert held
    for one in held:
        assert one.feeding
        if one.verdict == "feasible":
            assert f"{one.feeding.vcpus} vCPU" in one.reason
            assert "can feed" in one.reason


def test_an_offer_without_vcpus_is_not_held_back_and_that_is_said(
    slow: Outcome, free: Outcome
) -> None:
    silent = [one for one in slow.advice.ranking if one.offer and not one.offer.vcpus]
    assert silent
    for one in silent:
        assert one.feeding is None
        assert one.hours == by_slug(free)[one.slug].hours
        assert one.reason.endswith("vCPUs not known")
    assert any("of vCPUs" in note and "GPU alone" in note for note in slow.advice.notes)


def test_what_is_assumed_stands_with_the_answer(slow: Outcome, free: Outcome) -> None:
    told = slow.advice.assumptions["input"]
    assert "input of train.py as measured 2026-11-20" in told
    assert "2,000 samples/s on 2 CPUs" in told
    assert "a vCPU as one of them, 0.7–1.4 times as fast" in told
    assert "in time" in free.advice.assumptions["input"]
    assert any(source.startswith("offer_cpu_ratio: ") for source in slow.advice.sources)


def test_cores_of_the_measured_machine_are_worth_more_than_vcpus() -> None:
    told = answer(replace(SLOW, cpu_kind="core"))
    assert "as 0.65 of such a core" in told.advice.assumptions["input"]
    plain = by_slug(answer(SLOW))
    for slug, one in by_slug(told).items():
        if one.feeding:
            other = plain[slug].feeding
            assert other
            assert one.feeding.rate_per_s.best < other.rate_per_s.best


def test_a_pipeline_that_keeps_up_would_change_the_answer(slow: Outcome, free: Outcome) -> None:
    changes = {change.condition: change.consequence for change in slow.advice.changes}
    pick = free.advice.pick("balanced")
    assert pick
    assert changes["input that keeps up"] == choice(pick.candidate)
    assert "input that keeps up" not in {change.condition for change in free.advice.changes}


def test_what_would_be_chosen_anyway_is_no_change(slow: Outcome) -> None:
    pick = slow.advice.pick("balanced")
    assert pick
    ranking, gpus = slow.advice.ranking, {one.slug: one for one in all_gpus()}
    for unheld, told in ((pick.candidate, False), (ranking[-1], True)):
        changes = changes_of(ranking, pick.candidate, gpus, unheld=unheld)
        assert ("input that keeps up" in {one.condition for one in changes}) == told


def test_a_fast_pipeline_changes_no_hour(free: Outcome) -> None:
    fast = feed(rounds=(round_(4e6, 2.0), round_(2e6, 1.0)) * 2, looks=())
    told = answer(fast)
    assert [one.hours.best for one in told.advice.ranking] == [
        one.hours.best for one in free.advice.ranking
    ]
    assert "input that keeps up" not in {change.condition for change in told.advice.changes}


def test_all_gpus_of_an_offer_share_its_vcpus(slow: Outcome) -> None:
    # by hand: eight GPUs take eight batches of 64 in the time of a step that never waits
    several = [one for one in slow.advice.ranking if one.feeding and one.count == 8]
    assert several
    for one in several:
        own_s = one.estimate.step_s.best - one.estimate.terms_s["input"]
        assert one.feeding
        assert one.feeding.needed_per_s.best == pytest.approx(8 * 64 / own_s)


def test_picks_keep_what_the_ranking_says(slow: Outcome) -> None:
    for pick in slow.advice.picks:
        assert pick.candidate in slow.advice.ranking
        given = pick.candidate.feeding
        if given and given.is_short:
            assert pick.candidate.estimate.bound_by == "input"
            assert pick.candidate.estimate.roofline  # told in full all the same


def test_the_document_and_the_page_tell_it(slow: Outcome) -> None:
    rows = advice_document(slow.advice, slow.trace)["ranking"]
    row = next(row for row in rows if row["feed"] and row["feed"]["fed_ratio"] < 1)
    assert row["vcpus"] == row["feed"]["vcpus"]
    assert row["feed"]["samples_per_s"] < row["feed"]["needed_samples_per_s"]
    page = render_report(advice=slow.advice, trace=slow.trace, program=slow.program, gpus=slow.gpus)
    assert "waiting for input" in page.lower()
    assert "can feed" in page


def test_an_owned_card_is_not_held_back() -> None:
    mine = Conditions(gpus=CARDS, owned=(find("t4"),))
    found = answer(SLOW, conditions=mine).advice.ranking
    (own,) = [one for one in found if one.offer and one.offer.provider == "owned"]
    assert own.feeding is None
