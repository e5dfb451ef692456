"""What ``--json`` prints has every documented key, whether or not there is a value for it."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import pytest
from tests.view import answers

from tfdyno.core.base.codec import from_builtins, to_json
from tfdyno.core.base.interval import Interval
from tfdyno.core.choose.advice import CostOrder, Pick
from tfdyno.core.choose.estimate import Estimate
from tfdyno.core.choose.hardware import PriceRange
from tfdyno.core.measure.feed import Feeding
from tfdyno.view.base import documents

ADVICE, TRACE = answers.advice(), answers.trace()


def test_an_estimate_reads_back_from_its_document() -> None:
    made = answers.estimate("t4")
    document = documents.estimate_document([made], TRACE, "as asked", ["a note"])
    (read,) = json.loads(to_json(document))["estimates"]
    assert set(read) == {field.name for field in fields(Estimate)}
    assert from_builtins(read, Estimate) == made
    assert document["trace"]["batch_source"] == "as asked"
    assert document["notes"] == ["a note"]


def test_the_trace_is_told_without_its_tensors() -> None:
    told = documents.trace_document(TRACE)
    assert told["workload"] == "keras:ResNet50"
    assert told["mode"] == "train"
    assert (told["parameter_count"], told["policy"]) == (25_636_712, "mixed_float16")
    assert "tensors" not in told


def test_every_row_has_the_same_keys_with_a_price_or_without() -> None:
    rows = documents.advice_document(ADVICE, TRACE)["ranking"]
    assert {row["cost_usd"] is None for row in rows} == {True, False}
    assert {frozenset(row) for row in rows} == {frozenset(rows[0])}


def test_a_priced_row_says_where_its_price_is_from() -> None:
    row = documents.advice_document(ADVICE, TRACE)["ranking"][0]
    card = ADVICE.ranking[0]
    assert card.offer is not None
    assert card.cost_usd is not None
    assert row["offer"] == card.offer.slug
    assert row["price_source"] == card.offer.source
    assert row["cost_usd"] == card.cost_usd.best
    assert row["cost_usd_range"] == {
        "low": card.cost_usd.low, "best": card.cost_usd.best, "high": card.cost_usd.high,
    }  # fmt: skip
    assert row["hours"] == card.hours.best
    assert row["spot"] == card.offer.spot


def test_a_row_without_an_offer_is_a_whole_card_without_a_price() -> None:
    rows = documents.advice_document(ADVICE, TRACE)["ranking"]
    row = next(row for row in rows if row["offer"] is None)
    assert row["gpu_fraction"] == 1.0
    empty = ("cost_usd", "cost_usd_range", "usd_per_epoch", "provider", "usd_per_h", "priced_on")
    assert [row[key] for key in empty] == [None] * len(empty)


def test_a_row_says_how_far_its_price_ranges_and_how_the_first_stands_to_it() -> None:
    first, second, *rest = ADVICE.ranking
    assert second.offer
    moved = replace(
        second,
        offer=replace(second.offer, usd_per_h=2.0, available=3),
        price_range=PriceRange(basis="history", low_ratio=0.75, high_ratio=1.5, since="2026-09-01"),
        launch_price_usd=1599.0,
        to_first=CostOrder(tied=True, unsure_by="price"),
    )
    told = documents.advice_document(replace(ADVICE, ranking=(first, moved, *rest)), TRACE)
    row = told["ranking"][1]
    assert row["usd_per_h_range"] == {
        "basis": "history", "low": 1.5, "high": 3.0, "since": "2026-09-01", "regions": None,
    }  # fmt: skip
    assert (row["available"], row["launch_price_usd"]) == (3, 1599.0)
    assert (row["tied_with_first"], row["unsure_by"], row["decided_by"]) == (True, "price", None)
    unknown = told["ranking"][0]
    assert unknown["usd_per_h_range"] == {
        "basis": "unknown", "low": None, "high": None, "since": None, "regions": None,
    }  # fmt: skip
    assert (unknown["available"], unknown["tied_with_first"]) == (None, None)


def test_a_pick_names_the_rows_that_its_ranges_do_not_tell_from_it() -> None:
    first, second, third, *_ = ADVICE.ranking
    pick = Pick(title="cheapest", candidate=first, reason="least", ties=(second.slug,),
                runner_up=third.slug, decided_by="price")  # fmt: skip
    found = documents.advice_document(replace(ADVICE, picks=(pick,)), TRACE)["picks"]["cheapest"]
    assert second.offer
    assert found["ties"] == [
        {"gpu": second.gpu, "count": second.count, "offer": second.offer.slug, "spot": second.spot}
    ]
    assert (found["runner_up"]["gpu"], found["decided_by"]) == (third.gpu, "price")


@pytest.mark.parametrize("key", ["layers", "roofline", "largest_buffers", "live_curve_bytes"])
def test_a_ranking_leaves_the_long_lists_of_an_estimate_out(key: str) -> None:
    row = documents.advice_document(ADVICE, TRACE)["ranking"][0]
    assert key not in row["estimate"]
    assert row["estimate"]["fits"] == "yes"


def test_every_pick_has_its_key_even_where_there_is_none() -> None:
    found = documents.advice_document(ADVICE, TRACE)["picks"]
    assert list(found) == ["cheapest", "fastest", "balanced"]
    assert found["cheapest"]["reason"] == "The lowest price in time."
    assert found["cheapest"]["gpu"] == ADVICE.ranking[0].gpu
    none = documents.advice_document(replace(ADVICE, picks=()), TRACE)["picks"]
    assert none == {"cheapest": None, "fastest": None, "balanced": None}


def test_the_frontier_is_ordered_by_time_and_is_part_of_the_ranking() -> None:
    document = documents.advice_document(ADVICE, TRACE)
    hours = [row["hours"] for row in document["pareto"]]
    assert len(hours) > 1
    assert hours == sorted(hours)
    assert len(hours) == sum(row["pareto"] for row in document["ranking"])


def test_the_whole_document_is_json() -> None:
    document = documents.advice_document(ADVICE, TRACE)
    assert json.loads(to_json(document))["made_on"] == "2026-11-21"


def test_a_row_has_what_its_cpus_feed_where_the_input_was_measured() -> None:
    whole = Interval(low=300.0, best=620.0, high=900.0)
    needed = Interval(low=800.0, best=1000.0, high=1200.0)
    given = Feeding(vcpus=8, rate_per_s=whole, needed_per_s=needed, fed_ratio=0.62,
                    thread_stages=("batch",))  # fmt: skip
    fed = replace(ADVICE.ranking[0], feeding=given)
    told = documents.advice_document(replace(ADVICE, ranking=(fed, *ADVICE.ranking[1:])), TRACE)
    first, second, *_ = told["ranking"]
    assert first["feed"] == {
        "vcpus": 8, "fed_ratio": 0.62, "thread_stages": ["batch"],
        "samples_per_s": 620.0, "samples_per_s_range": {"low": 300.0, "best": 620.0, "high": 900.0},
        "needed_samples_per_s": 1000.0,
        "needed_samples_per_s_range": {"low": 800.0, "best": 1000.0, "high": 1200.0},
    }  # fmt: skip
    assert second["feed"] is None
