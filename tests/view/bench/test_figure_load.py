from __future__ import annotations

from dataclasses import replace

from tests.loads import search, stage, stretch

from tfdyno.view.bench.figure_load import batches_figure, rate_figure, spread_figure


def test_figures_are_there_where_there_is_something_to_see() -> None:
    found = search()
    rate = rate_figure(found)
    assert rate is not None
    assert "200 requests/s: p50" in rate.label
    assert rate_figure(replace(found, stages=found.stages[:2])) is None
    twice = replace(found, stages=(*found.stages, replace(found.stages[2], holds=True)))
    again = rate_figure(twice)
    assert again is not None
    assert again.label == rate.label  # a second try of a rate is no other point
    assert spread_figure(stage(stretch([0.01], codes=(429,)))) is None
    batches = batches_figure(found.stages[0])
    assert batches is not None
    assert [row[:2] for row in batches.table.rows] == [
        ("1 row", "10"), ("2 rows", "20"), ("4 rows", "30"),
    ]  # fmt: skip


def test_an_interval_without_an_upper_end_is_drawn_to_the_worst() -> None:
    found = search()
    few = [replace(one.run, latency_s=one.run.latency_s[:3], start_s=one.run.start_s[:3],
                   codes=one.run.codes[:3]) for one in found.stages]  # fmt: skip
    assert rate_figure(replace(found, stages=tuple(stage(one) for one in few))) is not None
