"""The ratio stands on its axis with 1 and the least effect; without a ratio there is no figure."""

from __future__ import annotations

from dataclasses import replace

from tests.view import benches

from tfdyno.view.bench.figure_ratio import ratio_figure


def test_the_picture_says_which_way_is_which() -> None:
    _, comparison = benches.pair(ratio=1.2)
    found = ratio_figure(comparison)
    assert found
    assert "B slower" in found.wide
    assert f"{comparison.ratio:.3f}" in found.label
    assert found.table.rows[0][0] == "paired runs"
    assert found.table.rows[0][-1] == "99 %"


def test_measurements_that_do_not_compare_have_no_picture() -> None:
    _, comparison = benches.pair()
    assert ratio_figure(replace(comparison, verdict="not_comparable", ratio=0.0)) is None
