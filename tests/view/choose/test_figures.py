"""Bars and the tables behind them say the same numbers, and add up."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.view import answers

from tfdyno.view.choose import figures

if TYPE_CHECKING:
    from tfdyno.core.choose.advice import Candidate
    from tfdyno.core.choose.estimate import Estimate

GIB = 2.0**30
AMOUNT = answers.run()


def needing(estimate: Estimate, **changes: object) -> Candidate:
    card = answers.candidate("a100-sxm4-80gb", run=AMOUNT)
    return replace(card, estimate=replace(estimate, **changes))  # type: ignore[arg-type]


def test_parts_are_stacked_in_a_fixed_order_and_empty_ones_left_out() -> None:
    made = replace(
        answers.estimate("t4"),
        memory_parts_bytes={
            "context": 1.0, "activations": 8.0, "weights": 2.0, "optimizer": 3.0, "inputs": 0.0,
            "newer": 5.0,
        },
    )  # fmt: skip
    assert figures.grouped_parts(made) == [
        ("weights, gradients, optimizer", "c4", 5.0),
        ("activations", "c1", 8.0),
        ("CUDA context and allocator", "c5", 1.0),
        ("other", "c5", 5.0),
    ]


PARTS = st.sampled_from(
    ["weights", "gradients", "optimizer", "activations", "inputs", "workspace", "context", "new"]
)


@given(st.dictionaries(PARTS, st.floats(0, 1e12)))
def test_no_byte_is_lost_in_the_stack(parts: dict[str, float]) -> None:
    made = replace(answers.estimate("t4"), memory_parts_bytes=parts)
    stacked = sum(size for _, _, size in figures.grouped_parts(made))
    assert stacked == pytest.approx(sum(parts.values()))


def test_the_parts_of_one_card_are_told_largest_first() -> None:
    made = replace(
        answers.estimate("t4"),
        memory_parts_bytes={"weights": GIB, "activations": 3 * GIB, "inputs": 0.001 * GIB},
    )
    figure = figures.parts_figure(made)
    assert figure is not None
    assert figure.table.rows == (("activations", "3.00", "75%"), ("weights", "1.00", "25%"))
    assert figure.label == (
        "Bars of the memory that the step holds, 4.0 GiB in all: "
        "activations 3.00 GiB · 75% and weights 1.00 GiB · 25%."
    )
    assert "activations: 3.0 GiB" in figure.wide
    assert "activations: 3.0 GiB" in figure.narrow


def test_without_parts_there_is_no_figure() -> None:
    made = replace(answers.estimate("t4"), memory_parts_bytes={})
    assert figures.parts_figure(made) is None


def test_memory_is_a_share_of_each_card_and_a_card_that_is_too_small_says_so() -> None:
    small = answers.candidate("gtx-1050-2gb", run=AMOUNT)
    large = answers.candidate("a100-sxm4-80gb", run=AMOUNT)
    figure = figures.memory_figure([large, small], large)
    assert figure is not None
    # 5.64 GiB of 80 x 0.98 = 78.4 GiB is 7 %; of 2 x 0.98 = 1.96 GiB 288 %
    assert [row[4] for row in figure.table.rows] == ["7%", "288%"]
    assert "A100 SXM4 80 GB 5.6 of 78.4 GiB" in figure.label
    assert "GTX 1050 5.6 of 2.0 GiB · too small" in figure.label
    assert [key.text for key in figure.key][-1] == "9 times in 10"


def test_a_card_without_known_memory_is_not_drawn() -> None:
    unknown = needing(answers.estimate("t4"), usable_memory_bytes=0.0)
    assert figures.memory_figure([unknown], unknown) is None


def test_shares_of_causes_add_up_to_one() -> None:
    made = replace(answers.estimate("t4"), terms_s={"compute": 1.0, "memory": 3.0, "input": 0.0})
    assert figures.term_shares(made) == {"compute": 0.25, "memory": 0.75}
    assert figures.term_shares(replace(made, terms_s={})) == {}
    assert figures.term_shares(replace(made, terms_s={"compute": 0.0})) == {}


def test_the_table_of_causes_has_the_shares_that_the_bars_have() -> None:
    cards = [answers.candidate(slug, run=AMOUNT) for slug in ("t4", "a100-sxm4-80gb")]
    figure = figures.terms_figure(cards, cards[0])
    assert figure is not None
    assert figure.table.headings[3:] == ("Arithmetic", "Memory traffic", "Kernel launch")
    assert [row[3:] for row in figure.table.rows] == [("20%", "68%", "12%")] * 2
    assert "memory traffic 68%" in figure.label


def test_certainty_is_told_with_the_route_that_made_each_number() -> None:
    table = figures.certainty_table([answers.candidate("t4", run=AMOUNT)])
    ((card, _, time, time_by, _, memory, memory_by),) = table.rows
    assert card == "T4"
    assert (time, time_by) == ("−18 to +22%", "quick")  # 1 - 1/1.22 = 0.18
    assert (memory, memory_by) == ("−5 to +5%", "exact, 8.x")
