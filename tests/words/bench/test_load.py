from __future__ import annotations

from tests.loads import result, search, stage, stretch

from tfdyno.core.measure.load import LoadPlan
from tfdyno.words.bench.load import batch_rows, headline, main_stage, plan_words, usd_words


def test_buckets_are_ranges_and_empty_ones_at_the_ends_are_left_out() -> None:
    run = stretch([0.01], batches={1: 0, 2: 3, 4: 0, 8: 1, -1: 0}, batches_are_bounds=True)
    assert [name for name, _, _ in batch_rows(stage(run))] == ["2", "3–4", "5–8"]


def test_amounts_are_short() -> None:
    assert plan_words(LoadPlan(clients=1)) == "1 client"
    assert plan_words(LoadPlan(kind="open", rate_per_s=250.0)) == "250 requests/s"
    assert usd_words(0.004567) == "$0.00457"
    assert usd_words(12.3) == "$12.30"


def test_the_headline_tells_the_knee_or_that_there_is_none() -> None:
    assert "takes 200 requests/s with p99 within 20.0 ms" in headline(search())
    run = stretch([0.5] * 100)
    found = result(stage(run), p99_limit_s=0.1)
    assert main_stage(found).run.plan.clients == 4
    assert "no rate was found with p99 within 100 ms" in headline(found)
