from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.judged import everything

from tfdyno.core.base.errors import UsageError
from tfdyno_truth.cases import MATCHED, read_reasons, worst

if TYPE_CHECKING:
    from pathlib import Path


def test_the_worst_is_the_one_that_is_furthest_off_either_way() -> None:
    judged = everything()
    right = np.exp(judged.design.log_step)
    index = [int(i) for i in np.flatnonzero(judged.main)[[5, 500]]]
    right[index[0]] *= 0.2
    right[index[1]] *= 4.0
    found = worst(replace(judged, predicted=right), (), 2)
    assert {case.row.function for case in found} <= {judged.design.rows[i].function for i in index}
    assert found[0].ratio < 1.0 or found[0].ratio > 1.0
    assert found[0].error > 0.0
    assert found[0].reason is None


def test_every_reason_is_about_measured_rows_and_says_how_it_is_known() -> None:
    reasons = read_reasons()
    rows = everything().design.rows
    for reason in reasons:
        assert any(reason.fits(row) for row in rows), reason.reason
        assert "truth/" in reason.source


def test_a_reason_fits_by_all_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "reasons.csv"
    head = ",".join((*MATCHED, "reason", "source_of_reason"))
    path.write_text(f"{head}\npytorch,*,resnet*,,,train,,slow,log\n")
    (reason,) = read_reasons(path)
    row = next(r for r in everything().design.rows if r.function.startswith("resnet")
               and r.framework == "pytorch" and r.mode == "train")  # fmt: skip
    assert reason.fits(row)
    assert not reason.fits(replace(row, mode="infer"))
    assert not reason.fits(replace(row, function="vgg16_224"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n", "wrong columns"),
        (",".join((*MATCHED, "reason", "source_of_reason")) + "\n*,,,,,,,slow,log\n", "what it is"),
        (",".join((*MATCHED, "reason", "source_of_reason")) + "\nx,,,,,,,slow,\n", "source"),
    ],
)
def test_a_table_that_is_not_whole_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "reasons.csv"
    path.write_text(text)
    with pytest.raises(UsageError, match=words):
        read_reasons(path)
