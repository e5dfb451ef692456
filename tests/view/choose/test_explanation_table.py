from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.model.time.test_estimate import estimate as estimated
from tests.model.time.test_explanation import MANY
from tests.view import answers
from tests.view.choose.test_explanation_text import seconds

from tfdyno.core.base.interval import Interval
from tfdyno.view.choose.explanation_table import HEADINGS, explanation_table, explanation_title
from tfdyno.view.choose.html import render_report

if TYPE_CHECKING:
    from tfdyno.core.choose.estimate import Estimate


def one() -> Estimate:
    return estimated(explained=True, made=MANY, replicas=4, gpu="rtx-3090")


def test_the_rows_add_up_to_the_last() -> None:
    table = explanation_table(one())
    assert table
    assert table.headings == HEADINGS
    assert {len(row) for row in table.rows} == {len(HEADINGS)}
    *parts, step = table.rows
    assert step[1] == "the step"
    assert sum(seconds(row[2]) for row in parts) == pytest.approx(seconds(step[2]), rel=0.02)
    assert {"other kernels", "once per step", "exchange of gradients"} <= {row[1] for row in parts}


def test_the_title_has_the_time_and_the_number_of_rows() -> None:
    found = one()
    assert found.explanation
    count = len(found.explanation.kernels)
    title = explanation_title(found)
    assert title.startswith("Why ")
    assert title.endswith(f": {count} kinds of kernel with formula and numbers")


def test_without_an_explanation_there_is_no_table() -> None:
    assert explanation_table(estimated()) is None
    assert explanation_title(estimated()) == ""


def test_waiting_for_input_is_no_part_of_what_the_kernels_explain() -> None:
    found = one()
    step = found.step_s
    fed = replace(
        found,
        step_s=Interval(low=step.low + 0.5, best=step.best + 0.5, high=step.high + 0.5),
        terms_s={**found.terms_s, "input": 0.5},
    )
    own = explanation_title(found).partition(":")[0]
    assert explanation_title(fed).startswith(f"{own}, but for 500 ms of waiting for input: ")


def test_an_own_measurement_is_told_apart_from_the_sum() -> None:
    found = one()
    assert found.explanation
    moved = replace(found, explanation=replace(found.explanation, measured_ratio=1.2))
    table = explanation_table(moved)
    assert table
    assert table.rows[-1][4].endswith("by the model")


def test_the_page_folds_the_table_under_the_layers_and_leaves_it_out_of_its_json() -> None:
    advice, program, trace = answers.advice(), answers.program(), answers.trace()
    pick = advice.picks[0]
    why = replace(pick.candidate, estimate=replace(
        pick.candidate.estimate, explanation=one().explanation))  # fmt: skip
    told = replace(advice, picks=(replace(pick, candidate=why), *advice.picks[1:]))
    page = render_report(advice=told, trace=trace, program=program, gpus=answers.gpus())
    assert page.count("kinds of kernel with formula and numbers</summary>") == 1
    assert '"explanation"' not in page
    bare = render_report(advice=advice, trace=trace, program=program, gpus=answers.gpus())
    assert "kinds of kernel with formula" not in bare
