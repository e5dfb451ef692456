from __future__ import annotations

import re

from tests.view.choose.test_scale_out_text import series

from tfdyno.view.choose.figure_scale_out import scale_out_figure


def test_the_gain_is_drawn_and_told_in_words_and_numbers() -> None:
    figure = scale_out_figure(series([(1, 1000), (2, 1600), (8, 3000)]), "card")
    assert figure
    assert "A second card gains 1.6×" in figure.label
    assert [row[0] for row in figure.table.rows] == ["1", "2", "8"]
    assert figure.table.rows[1][3] == "1.60"


def test_the_ticks_are_the_numbers_of_gpus_that_are_drawn() -> None:
    figure = scale_out_figure(series([(1, 1000), (2, 1600), (4, 2200), (8, 3000)]), "card")
    assert figure
    for drawn in (figure.wide, figure.narrow):
        below = [word for word in re.findall(r">([^<>]+)</text>", drawn) if word.isdigit()]
        assert below == ["1", "2", "4", "8"]


def test_one_number_of_gpus_is_no_picture() -> None:
    assert scale_out_figure(series([(1, 1000)]), "card") is None
