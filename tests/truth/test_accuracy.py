"""The shipped constants against the stored kernels of all measured models."""

from __future__ import annotations

import random
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.judged import everything

from tfdyno.catalog.time_model import time_model
from tfdyno_truth.fit import BLIND_ROUNDS, LATER_FITS, blinded, fit, neutral
from tfdyno_truth.make_records import FOLDER
from tfdyno_truth.publish import SCORES
from tfdyno_truth.ratchet import read_scores
from tfdyno_truth.rows import contradicted, read_rows, single_gpu
from tfdyno_truth.run import fit_all
from tfdyno_truth.score import judged
from tfdyno_truth.sheet import Line, sheet
from tfdyno_truth.ways import ONE_NEW, WAYS

if TYPE_CHECKING:
    from tfdyno_truth.design import Design

SEED = 20261123
LEAST_ROWS = 5


def design() -> Design:
    return everything().design


@lru_cache(maxsize=1)
def shipped() -> Line:
    return sheet(everything()).whole[-1]


def test_every_row_on_one_card_has_a_kernel_record() -> None:
    assert len(design().rows) == len(single_gpu(read_rows()))


def test_the_mean_error_of_the_shipped_constants_is_below_fourteen_per_cent() -> None:
    assert shipped().score.groups > 700
    assert shipped().score.mean < 0.14


def test_nine_of_ten_intervals_hold_where_source_model_and_card_are_new() -> None:
    stored = read_scores(SCORES)
    assert stored
    outer = stored.ways["outer"]["all"]
    assert 0.88 < outer.coverage < 0.92
    assert outer.coverage < shipped().score.coverage  # of rows that the constants have seen


def test_cards_more_than_fifteen_per_cent_apart_are_ordered_right() -> None:
    order = shipped().order
    assert order is not None
    assert order.in_order > 0.95


def test_the_shipped_constants_are_those_of_the_fit() -> None:
    rows = design().rows
    bad = contradicted(list(rows))
    learnable = [index for index, row in enumerate(rows) if not (row.apart or row.number in bad)]
    fitted = fit(design().take(np.array(learnable)), time_model().parameters)
    shipped_step = design().predict(time_model())
    assert np.abs(np.log(design().predict(fitted) / shipped_step)).max() < 0.05


def test_a_fit_finds_the_constants_that_made_the_times() -> None:
    made = design()
    truth = dict(time_model().values) | {"e_reduce": 0.75, "u_half": 0.7, "host_graph": 2e-5}
    times = type(made)(
        **{n: getattr(made, n) for n in made.__slots__} | {"log_step": np.log(made.predict(truth))}
    )
    found = fit(times, time_model().parameters, prior_weight=0.1)
    error = np.abs(np.log(times.predict(found)) - times.log_step)
    assert float(np.median(error)) < 0.01
    assert found["e_reduce"] == pytest.approx(0.75, rel=0.1)


def test_slopes_that_are_taken_now_and_then_lead_to_the_same_fit() -> None:
    part, parameters = design().take(np.arange(0, len(design().rows), 8)), time_model().parameters
    whole, few = (fit(part, parameters, rounds=rounds) for rounds in ((), BLIND_ROUNDS))
    assert np.abs(np.log(part.predict(few) / part.predict(whole))).max() < 0.01


def test_blind_priors_know_nothing_but_what_is_allowed() -> None:
    parameters = time_model().parameters
    blind = blinded(parameters)
    assert blind["xla_depthwise"].prior == 1.0  # a factor, allowed from 1 to 4
    assert blind["e_depthwise"].prior == 1.0  # a share that may be all
    assert blind["host_torch"].prior == pytest.approx((2e-6 * 6e-5) ** 0.5)
    assert blind["window_overlap"].prior == 1.0
    assert blind["t_step"].prior == pytest.approx(0.003 * 0.02**0.5)  # may be nothing: 2 % of most
    assert all(blind[n] == p for n, p in parameters.items() if not p.fitted)


def test_a_term_that_is_left_out_has_no_effect() -> None:
    parameters = time_model().parameters
    assert neutral(parameters["winograd3"]) == 1.0
    held = fit(
        design().take(np.arange(50)),
        parameters,
        without=frozenset({"winograd3", "t_launch"}),
        evaluations=2,
    )
    assert held["winograd3"] == 1.0
    assert held["t_launch"] == parameters["t_launch"].low


@pytest.mark.parametrize("way", ONE_NEW)
def test_a_sample_of_unseen_cards_and_models_is_predicted(way: str) -> None:
    """Three of each kind; what a run leaves out is told by its name when it fails."""
    rows = design().rows
    label = WAYS[way].label
    bad = contradicted(list(rows))
    counts = Counter(label(row) for row in rows if not row.apart)
    usual = sorted(name for name, count in counts.items() if count >= LEAST_ROWS)
    left_out = random.Random(f"{SEED} {way}").sample(usual, 3)
    for name in left_out:
        seen = [i for i, row in enumerate(rows)
                if label(row) != name and not (row.apart or row.number in bad)]  # fmt: skip
        judged_rows = [i for i, row in enumerate(rows) if label(row) == name and not row.apart]
        fitted = fit(design().take(np.array(seen)), time_model().parameters,
                     start=time_model().values, evaluations=LATER_FITS)  # fmt: skip
        part = design().take(np.array(judged_rows))
        error = np.abs(part.predict(fitted) / np.exp(part.log_step) - 1.0)
        assert np.median(error) < 0.3, name


@pytest.mark.slow
def test_unseen_cards_and_models_stay_within_the_floor() -> None:
    fitted = fit_all(FOLDER)
    for way in ONE_NEW:
        whole = sheet(judged(fitted, WAYS[way].title)).whole[-1]
        assert whole.score.mean < 0.14
        assert whole.score.coverage > 0.9  # wide enough where all is new, so more hold here
        assert whole.score.half_width < 0.6
        assert whole.order
        assert whole.order.in_order > 0.95
