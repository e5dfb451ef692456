"""The fit of the gradient exchange, and how it is judged."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

from tfdyno.catalog.time_model import time_model
from tfdyno_truth import scaling
from tfdyno_truth.make_records import FOLDER
from tfdyno_truth.publish import SCORES
from tfdyno_truth.ratchet import Scores, read_scores, worsened
from tfdyno_truth.rows import read_rows
from tfdyno_truth.run import ROOT
from tfdyno_truth.scaling import (
    ALL,
    FREE,
    GRAPH,
    LEFT_OUT,
    PACKED,
    WITH_APART,
    Runs,
    ScalingScores,
    Spread,
    labels_of,
)
from tfdyno_truth.scaling_width import Judged, judge
from tfdyno_truth.ways import SEEN


@lru_cache(maxsize=1)
def runs() -> Runs:
    return scaling.runs_of(read_rows(), FOLDER, time_model(), time_model().values)


@lru_cache(maxsize=1)
def few() -> Runs:
    """Two cards, so that a test takes seconds."""
    mine = [p.row.slug in ("quadro-rtx-8000", "rtx-3070") for p in runs().pairs]
    return runs().take(np.flatnonzero(mine))


@lru_cache(maxsize=1)
def judged() -> ScalingScores:
    return scaling.scaling_scores(few(), time_model(), lambda _stage: None, 3)


@lru_cache(maxsize=1)
def stored() -> Scores:
    found = read_scores(SCORES)
    assert found
    return found


def test_no_predicted_efficiency_is_above_one() -> None:
    predicted = runs().predict(time_model())
    assert ((predicted > 0.0) & (predicted <= 1.0)).all()


def test_a_fit_finds_the_constants_that_made_the_efficiencies() -> None:
    truth = time_model().values | {"allreduce_host": 2.5e9, "allreduce_fixed": 0.02}
    made = replace(few(), measured=few().predict(truth))
    found = scaling.fit_scaling(made, time_model())
    error = np.abs(np.log(made.predict(time_model().values | found) / made.measured))
    assert float(np.median(error)) < 0.01
    assert found["allreduce_host"] == pytest.approx(2.5e9, rel=0.1)


def test_what_is_left_out_is_predicted_without_it() -> None:
    """Wrong measurements of a kind of model change neither its prediction nor its width."""
    labels = labels_of(few(), "model")
    bert = labels == "bert"
    wrong = replace(few(), measured=np.where(bert, 0.1, few().measured))

    def of(runs: Runs) -> Judged:
        found = scaling.folds(runs, time_model(), labels)
        return judge(runs, labels, scaling.unseen(runs, time_model(), labels, found))

    before, after = of(few()), of(wrong)
    assert after.predicted[bert] == pytest.approx(before.predicted[bert], rel=1e-9)
    assert after.predicted[~bert] != pytest.approx(before.predicted[~bert], rel=1e-3)


def test_a_fit_begins_at_the_priors_whatever_ships() -> None:
    """The constants in use, which all runs have informed, do not reach a fold."""
    model = time_model()
    moved = replace(model, parameters={
        name: replace(one, value=one.low) if name in FREE else one
        for name, one in model.parameters.items()
    })  # fmt: skip
    assert moved["allreduce_host"] != model["allreduce_host"]
    assert scaling.fit_scaling(few(), moved) == scaling.fit_scaling(few(), model)


def test_the_page_has_all_ways_the_worst_first_and_a_width() -> None:
    found = judged()
    assert set(found.spreads) == {"everything seen", *LEFT_OUT}
    errors = [one.error for one in found.worst]
    assert errors == sorted(errors, reverse=True)
    assert len(errors) == 3
    assert found.constants["allreduce_width"] > 0
    assert set(found.bands) == set(LEFT_OUT)


def test_graphs_are_judged_as_they_ran_and_as_if_in_one_pack() -> None:
    spreads = judged().spreads["model"]
    assert spreads[GRAPH].groups == spreads[PACKED].groups > 0
    assert spreads[GRAPH] != spreads[PACKED]
    assert PACKED not in judged().spreads[SEEN]


def test_a_pack_is_never_faster() -> None:
    alike, packed = (few().predict(time_model(), packed=each) for each in (False, True))
    graphs = np.array([pair.row.execution == "graph" for pair in few().pairs])
    single = np.array([pair.base.replicas == 1 for pair in few().pairs])
    assert (packed[graphs & single] <= alike[graphs & single] + 1e-12).all()


def test_an_error_is_averaged_in_its_group_first() -> None:
    whole = scaling.spread(few(), few().measured * 1.1, np.ones(len(few().pairs), dtype=bool))
    groups = len({pair.group for pair in few().pairs})
    assert whole == Spread(groups=groups, mean=0.1, median=0.1, p90=0.1)


def test_the_stored_scores_keep_the_floor() -> None:
    """Median at most 6 %, mean at most 12 % of kinds of model that the fit has not seen."""
    for label in (ALL, WITH_APART):
        model = stored().scaling["model"][label]
        assert model.median <= 0.06
        assert model.mean <= 0.12
    assert stored().scaling["gpu"][ALL].median <= 0.06
    assert stored().scaling["gpu"][ALL].mean <= 0.12


def test_the_stored_intervals_hold_what_they_say() -> None:
    for way in LEFT_OUT:
        one = stored().scaling[way][ALL]
        assert one.coverage is not None
        assert 0.8 <= one.coverage <= 0.95


def test_the_page_tells_what_is_stored() -> None:
    page = (ROOT / "docs" / "accuracy.md").read_text()
    for way, title in (("model", "model left out"), ("gpu", "card left out")):
        for label, one in stored().scaling[way].items():
            told = f"| {title} | {label} | {one.mean:.1%} | {one.median:.1%} | {one.p90:.1%} |"
            assert told in page


def test_a_worse_efficiency_is_named() -> None:
    spread = stored().scaling["model"][ALL]
    worse = replace(spread, mean=spread.mean + 0.01)
    after = replace(stored(), scaling=stored().scaling | {"model": {ALL: worse}})
    told = worsened(stored(), after)
    assert any(words.startswith("several GPUs, model left out, all: mean") for words in told)
    assert any("no longer scored" in words for words in told)
    assert worsened(stored(), stored()) == ()
