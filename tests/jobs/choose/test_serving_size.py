"""A size from measured batches and from estimates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.services import GOAL

from tfdyno.catalog.gpus import parse_list
from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.workload import Workload
from tfdyno.jobs.choose.market import Conditions
from tfdyno.jobs.choose.serving_size import Measured, SizeRequest, check, size

MODEL = f"{Path(__file__).parents[1].parent / 'data' / 'models' / 'small.py'}:convnet"


def request(**changes: object) -> SizeRequest:
    given: dict[str, object] = {
        "workload": Workload(reference=MODEL, kind="function", mode="infer"),
        "goal": GOAL,
        "conditions": Conditions(gpus=parse_list("t4"), scenario="serve"),
    }
    return SizeRequest(**(given | changes))  # type: ignore[arg-type]


@pytest.mark.slow
def test_rows_of_a_request_go_together_and_cost_more_machines() -> None:
    one = size(request(binary=True)).ranking[0]
    goal = replace(GOAL, rows_per_request=64, requests_per_day=GOAL.requests_per_day * 10)
    many = size(request(goal=goal, binary=True)).ranking[0]
    assert many.replica.max_batch_size % 64 == 0
    assert many.replica.most_per_s <= one.replica.most_per_s
    assert many.machines >= one.machines


def test_what_was_timed_is_taken_as_it_is() -> None:
    timed = Measured(name="ours", latency_s={1: 0.006, 16: 0.02}, usd_per_h=0.01)
    found = next(one for one in size(request(measured=timed)).ranking if one.replica.gpu == "ours")
    assert found.replica.latency_source == "measured"
    assert found.at_peak is not None
    assert found.at_peak.p99_high_s == pytest.approx(found.at_peak.p99_s)


def test_json_of_images_is_dearer_than_binary() -> None:
    as_json, binary = size(request()).ranking[0], size(request(binary=True)).ranking[0]
    assert as_json.replica.host_s > binary.replica.host_s


def test_too_many_rows_are_refused_before_any_work() -> None:
    with pytest.raises(UsageError, match="257 rows in a request are not weighed"):
        check(request(goal=replace(GOAL, rows_per_request=257)))
