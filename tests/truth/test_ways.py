"""What each way of leaving out keeps from the fits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.truth.test_rows import a_row

from tfdyno_truth.rows import read_rows, single_gpu
from tfdyno_truth.ways import PARTS, WAYS, folds, parts


@pytest.mark.parametrize("name", WAYS)
def test_every_row_is_predicted_once_by_a_fit_that_has_not_seen_it(name: str) -> None:
    rows = single_gpu(read_rows())
    found = folds(WAYS[name], rows)
    assert (np.sum([fold.mine for fold in found], axis=0) == 1).all()
    assert all((fold.kept_back | ~fold.mine).all() for fold in found)
    assert len({fold.name for fold in found}) == len(found)


def test_the_outer_way_keeps_back_source_kind_of_model_and_chip_at_once() -> None:
    rows = single_gpu(read_rows())
    for fold in folds(WAYS["outer"], rows):
        seen = [row for row, hidden in zip(rows, fold.kept_back, strict=True) if not hidden]
        mine = [row for row, chosen in zip(rows, fold.mine, strict=True) if chosen]
        assert not {row.source for row in seen} & {row.source for row in mine}
        assert not {row.architecture for row in seen} & {row.architecture for row in mine}
        assert not {row.chip for row in seen} & {row.chip for row in mine}
        assert len(seen) > 700  # of 2,400: enough to learn from


def test_a_way_with_one_thing_new_keeps_back_what_it_predicts_and_no_more() -> None:
    rows = [a_row(slug="t4"), a_row(slug="p4"), replace(a_row(slug="t4"), batch_size=7)]
    first, second = folds(WAYS["gpu"], rows)
    assert first.mine.tolist() == first.kept_back.tolist() == [True, False, True]
    assert second.mine.tolist() == second.kept_back.tolist() == [False, True, False]


def test_parts_are_filled_from_the_largest_name_on() -> None:
    sizes = {"c": 4, "a": 4, "d": 3, "b": 9}
    # b (9) | a (4) | c (4) joins a, the smaller; d (3) then too, as 8 < 9
    assert parts(sizes, 2) == {"b": 0, "a": 1, "c": 1, "d": 1}
    assert parts(dict(reversed(sizes.items())), 2) == parts(sizes, 2)


def test_parts_of_the_measured_rows_are_of_one_order_of_size() -> None:
    rows = single_gpu(read_rows())
    for label in WAYS["outer"].also:
        groups = {(label(row), row.group) for row in rows}
        sizes = {name: sum(one == name for one, _ in groups) for name, _ in groups}
        part = parts(sizes, PARTS)
        filled = [sum(sizes[n] for n in sizes if part[n] == k) for k in range(PARTS)]
        assert max(filled) < 3 * min(filled)
