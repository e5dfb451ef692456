from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.judged import everything, some

from tfdyno_truth.score_text import answer, page
from tfdyno_truth.sheet import Judged, sheet


def of_t4() -> Judged:
    return some(lambda row: row.slug in ("t4", "v100-sxm2-16gb"))


def test_tensorflow_stands_first_and_apart() -> None:
    found = sheet(everything())
    assert [line.label for line in found.whole] == ["TensorFlow", "PyTorch", "all"]
    assert list(found.strata) == ["TensorFlow", "PyTorch"]
    assert found.whole[0].score.rows + found.whole[1].score.rows == found.whole[2].score.rows


def test_one_framework_alone_has_no_line_for_all() -> None:
    found = sheet(some(lambda row: row.framework == "tensorflow"))
    assert [line.label for line in found.whole] == ["TensorFlow"]


def test_strata_are_worst_first_and_hold_every_row() -> None:
    found = sheet(everything())
    for lines in (*found.strata.values(), found.chips, found.architectures):
        means = [line.score.mean for line in lines]
        assert means == sorted(means, reverse=True)
    rows = sum(line.score.rows for lines in found.strata.values() for line in lines)
    assert rows == len(everything().design.rows)


def test_a_perfect_prediction_has_no_error_and_all_pairs_in_order() -> None:
    judged = everything()
    perfect = replace(judged, predicted=np.exp(judged.design.log_step))
    for line in sheet(perfect).whole:
        assert line.score.mean == pytest.approx(0.0, abs=1e-9)
        assert line.score.coverage == 1.0
        assert line.order is not None
        assert (line.order.in_order, line.order.close_in_order) == (1.0, 1.0)
        assert line.order.own_in_order == 1.0


def test_predictions_that_are_turned_round_have_no_pair_in_order() -> None:
    judged = of_t4()
    turned = sheet(replace(judged, predicted=np.exp(-judged.design.log_step)))
    assert turned.whole[-1].order is not None
    assert turned.whole[-1].order.in_order == turned.whole[-1].order.own_in_order == 0.0


def test_twice_the_time_is_an_error_of_one_hundred_per_cent() -> None:
    judged = of_t4()
    twice = replace(
        judged,
        predicted=2.0 * np.exp(judged.design.log_step),
        width=np.full(len(judged.width), 0.25),
    )
    score = sheet(twice).whole[-1].score
    assert (score.mean, score.bias, score.coverage) == pytest.approx((1.0, 2.0, 0.0))
    # half of exp(0.25) - exp(-0.25)
    assert score.half_width == pytest.approx((1.2840 - 0.7788) / 2, rel=1e-3)


def test_the_words_begin_with_the_answer() -> None:
    found = sheet(everything())
    mean = found.whole[0].score.mean
    assert answer(found, "Shipped").startswith(f"Shipped: mean error TensorFlow {mean:.1%} (")
    told = page(found, "Shipped")
    assert told.index("TensorFlow, strata") < told.index("PyTorch, strata") < told.index("Cards")


def test_rows_outside_the_whole_are_told_as_such() -> None:
    found = sheet(some(lambda row: row.launch_bound))
    assert found.whole == ()
    assert "bound by launches" in answer(found, "Shipped")
