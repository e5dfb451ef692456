"""The stored scores: that they belong to what ships, and that they can only improve."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.judged import as_fit, everything

from tfdyno.catalog.time_model import time_model
from tfdyno.core.base.errors import UsageError
from tfdyno_truth import ratchet
from tfdyno_truth.accuracy import SHIPPED
from tfdyno_truth.fit import LATER_FITS, fit
from tfdyno_truth.publish import SCORES
from tfdyno_truth.ratchet import Accepted, Entry, Scores, read_scores, worsened, write_scores
from tfdyno_truth.run import ROOT
from tfdyno_truth.sheet import sheet
from tfdyno_truth.ways import SEEN, WAYS

if TYPE_CHECKING:
    from pathlib import Path

ENTRY = Entry(groups=100, mean=0.15, median=0.12, p90=0.30, coverage=0.90, half_width=0.3,
              in_order=0.98, close_in_order=0.92)  # fmt: skip


def scores(entry: Entry = ENTRY, label: str = "all", way: str = "gpu") -> Scores:
    return Scores(constants="abc", rows=10, ways={way: {label: entry}})


@lru_cache(maxsize=1)
def stored() -> Scores:
    found = read_scores(SCORES)
    assert found, "run tfdyno-truth fit"
    return found


@lru_cache(maxsize=1)
def page() -> str:
    return (ROOT / "docs" / "accuracy.md").read_text()


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|\n ").split("|")]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"mean": 0.152}, "mean 15.00% -> 15.20%"),
        ({"p90": 0.31}, "p90 30.00% -> 31.00%"),
        ({"coverage": 0.85}, "coverage 90.00% -> 85.00%"),
        ({"coverage": 0.96}, "coverage 90.00% -> 96.00%"),
        ({"half_width": 0.32}, "half width 30.00% -> 32.00%"),
        ({"in_order": 0.97}, "in order 98.00% -> 97.00%"),
        ({"close_in_order": 0.90}, "close in order 92.00% -> 90.00%"),
    ],
)
def test_what_is_worse_is_named(changes: dict[str, float], words: str) -> None:
    assert worsened(scores(), scores(replace(ENTRY, **changes))) == (  # type: ignore[arg-type]
        f"gpu left out, all: {words}",
    )


def test_what_is_better_or_equal_is_not() -> None:
    better = Entry(groups=100, mean=0.14, median=0.5, p90=0.29, coverage=0.91, half_width=0.2,
                   in_order=0.99, close_in_order=0.93)  # fmt: skip
    assert worsened(scores(), scores(better)) == ()
    assert worsened(scores(), scores()) == ()
    assert worsened(None, scores()) == ()


def test_a_stratum_may_lose_a_point_and_no_more() -> None:
    old = scores(label="TensorFlow, cnn, train, xla")
    near = scores(replace(ENTRY, mean=0.158, coverage=0.5), label="TensorFlow, cnn, train, xla")
    far = scores(replace(ENTRY, mean=0.162), label="TensorFlow, cnn, train, xla")
    assert worsened(old, near) == ()
    assert len(worsened(old, far)) == 1


def test_a_score_that_is_gone_counts_as_worse_and_seen_rows_do_not_count() -> None:
    assert "no longer scored" in worsened(scores(), scores(label="other"))[0]
    worse = scores(replace(ENTRY, mean=0.9), way=SHIPPED)
    assert worsened(scores(way=SHIPPED), worse) == ()


def test_scores_survive_the_file(tmp_path: Path) -> None:
    accepted = Accepted(on="2026-11-22", reason='new "cards"', worse=("gpu: mean 1 % -> 2 %",))
    known = replace(scores(replace(ENTRY, in_order=None)), accepted=(accepted,))
    write_scores(tmp_path / "scores.toml", known)
    assert read_scores(tmp_path / "scores.toml") == known
    assert read_scores(tmp_path / "none.toml") is None
    (tmp_path / "scores.toml").write_text("rows = 3\n")
    with pytest.raises(UsageError, match=r"scores\.toml"):
        read_scores(tmp_path / "scores.toml")


def test_the_stored_scores_are_of_the_shipped_constants() -> None:
    assert stored().constants == ratchet.fingerprint(time_model()), "run tfdyno-truth fit"
    assert stored().rows == len(everything().design.rows)


def test_the_scores_with_all_rows_seen_can_be_had_again() -> None:
    again = ratchet.scores_of({SHIPPED: sheet(everything())}, time_model(), 0).ways[SHIPPED]
    known = stored().ways[SHIPPED]
    assert set(again) == set(known)
    for label, entry in known.items():
        assert again[label].groups == entry.groups
        for name in ("mean", "median", "p90", "half_width"):
            assert getattr(again[label], name) == pytest.approx(getattr(entry, name), abs=2e-3)


def test_the_page_tells_what_is_stored() -> None:
    titles = {SHIPPED: SEEN} | {way.name: way.title for way in WAYS.values()}
    for way, entries in stored().ways.items():
        for label in ratchet.WHOLES:
            start = f"| {label} | {titles[way]} |"
            (line,) = [one for one in page().splitlines() if one.startswith(start)]
            entry, told = entries[label], cells(line)
            assert told[2:5] == [f"{x:.1%}" for x in (entry.mean, entry.median, entry.p90)]
            assert told[8] == str(entry.groups)


def test_one_card_left_out_again_gives_what_the_page_says() -> None:
    card = "titan-rtx"
    fitted = as_fit(everything())
    design, rows = fitted.design, fitted.design.rows
    mine = np.array([row.chip == card for row in rows])
    seen = np.flatnonzero(fitted.learnable & ~mine)
    constants = fit(
        design.take(seen),
        time_model().parameters,
        start=time_model().values,
        evaluations=LATER_FITS,
    )
    judged = replace(everything(), predicted=design.predict(constants))
    found = next(line for line in sheet(judged).chips if line.label == card)
    section = page()[page().index("## By card, left out") :]
    told = cells(re.findall(rf"\| {card} \|.*", section)[0])
    assert float(told[1].rstrip("%")) == pytest.approx(100 * found.score.mean, abs=1.0)


def test_the_floor_that_is_reached_is_kept() -> None:
    for way in ("gpu", "model"):
        entry = stored().ways[way]["all"]
        assert entry.mean < 0.20
        assert 0.85 < entry.coverage < 0.97
        assert entry.in_order is not None
        assert entry.in_order > 0.95
