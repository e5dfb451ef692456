from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno_truth.rows import Row, contradicted, read_rows, single_gpu
from tfdyno_truth.suspicious import PATH, compared, decisions, suspicions

if TYPE_CHECKING:
    from pathlib import Path

OLD, NEW = "1.15 (NGC 20.06)", "2.x (NGC 21.02)"


@lru_cache(maxsize=1)
def rows() -> tuple[Row, ...]:
    return tuple(row for row in read_rows() if row.gpus == 1 and row.step_s > 0)


@lru_cache(maxsize=1)
def by_line() -> Counter[str]:
    return Counter(line.name for line in decisions(rows()).values())


def bert(gpu: str, precision: str, version: str) -> dict[object, list[float]]:
    """Step times of BERT inference, fastest first, by model, length and batch."""
    found: dict[object, list[float]] = {}
    for row in rows():
        is_bert = row.model.startswith("bert") and row.mode == "infer"
        if is_bert and (row.gpu, row.precision, row.host[1]) == (gpu, precision, version):
            found.setdefault((row.model, row.host[7], row.batch_size), []).append(row.step_s)
    return {key: sorted(times) for key, times in found.items()}


def ratios(a: dict[object, list[float]], b: dict[object, list[float]]) -> list[float]:
    """Slowest of ``a`` over fastest of ``b``, setting by setting."""
    return [times[-1] / b[key][0] for key, times in a.items() if key in b]


def a_row(**changes: object) -> Row:
    first = next(row for row in rows() if row.source == "Lambda TF benchmark")
    return replace(first, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("line", suspicions(), ids=lambda line: line.name)
def test_a_line_decides_the_rows_that_it_says(line: object) -> None:
    assert line.rows in (0, by_line()[line.name])  # type: ignore[attr-defined]


def test_every_line_has_reason_evidence_and_origin_and_a_name_of_its_own() -> None:
    assert len({line.name for line in suspicions()}) == len(suspicions())
    for line in suspicions():
        assert line.reason
        assert line.evidence
        assert line.origin


def test_excluded_rows_are_neither_judged_nor_learned_from() -> None:
    decided = decisions(rows())
    excluded = {number for number, line in decided.items() if line.decision == "excluded"}
    assert len(excluded) == 32
    kept = single_gpu(list(rows()))
    assert excluded.isdisjoint(row.number for row in kept)
    assert excluded.isdisjoint(contradicted(kept))
    assert len(kept) == len(rows()) - 32


def test_bert_inference_on_a100_says_amp_but_is_tf32() -> None:
    a100 = "A100-SXM4-40GB"
    amp, tf32 = bert(a100, "mixed_float16", OLD), bert(a100, "tf32", OLD)
    equal = [times[0] / tf32[key][0] for key, times in amp.items()]
    assert len(equal) == 16
    assert max(abs(ratio - 1) for ratio in equal) < 0.044  # equal, where a factor 2 is due
    a100_80 = bert("A100-SXM4-80GB", "mixed_float16", NEW)
    assert max(ratios(amp, a100_80)) > 1.7
    fastest = {key: times[:1] for key, times in tf32.items()}
    assert max(ratios(fastest, bert("A100-SXM4-80GB", "tf32", NEW))) < 1.36


def test_the_slower_tf32_rows_are_float32() -> None:
    tf32, v100 = bert("A100-SXM4-40GB", "tf32", OLD), bert("V100-SXM2-16GB", "float32", OLD)
    assert min(times[1] / times[0] for times in tf32.values()) > 1.4
    assert np.median(ratios(tf32, v100)) == pytest.approx(0.76, abs=0.01)  # of peaks: 0.81


def test_bert_on_t4_ran_at_half_its_clock_in_one_container() -> None:
    def between(gpu: str) -> list[float]:
        full = ("float32", "mixed_float16")
        return [r for p in full for r in ratios(bert(gpu, p, OLD), bert(gpu, p, NEW))]

    assert min(between("T4")) > 1.6 > 1.46 > max(between("V100-SXM2-32GB"))


def test_a_smaller_batch_with_more_throughput_shows_a_collapse() -> None:
    small = a_row(number=1, batch_size=16, step_s=0.1)  # 160/s
    steady = a_row(number=2, batch_size=32, step_s=0.24)  # 133/s, 0.83 of it
    fallen = a_row(number=3, batch_size=64, step_s=0.6)  # 107/s
    assert compared([small, steady, fallen])["collapse"] == {3}


def test_twins_are_slower_from_a_ratio_of_1_4_on() -> None:
    fast = a_row(number=1, step_s=1.0)
    close = a_row(number=2, step_s=1.39)
    slow = a_row(number=3, step_s=1.41)
    assert compared([fast, close, slow])["slower"] == {3}


def test_memory_formats_of_timm_are_no_contradiction() -> None:
    fast = a_row(number=1, step_s=1.0, source="timm results")
    slow = a_row(number=2, step_s=3.0, source="timm results")
    assert decisions([fast, slow])[2].name == "timm-layouts"
    assert contradicted([fast, slow]) == set()


def test_the_first_line_that_fits_decides() -> None:
    first, second = suspicions()[0], suspicions()[1]
    both = tuple(replace(line, match=(), twin="") for line in (first, second))
    assert decisions([a_row(number=7)], both)[7].name == first.name


def test_an_unknown_decision_is_told_with_its_line(tmp_path: Path) -> None:
    text = PATH.read_text().replace(",excluded,", ",dropped,", 1)
    (tmp_path / "suspicious.csv").write_text(text)
    with pytest.raises(UsageError, match="line 2: 'dropped'"):
        suspicions(tmp_path / "suspicious.csv")
