"""What a study keeps in English is told in Chinese, as those make it who judge trials."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import pytest
from tests.measurements import measurement
from tests.view.tunings import TOLD

from tfdyno.core.base.interval import Interval
from tfdyno.core.measure.fix_proof import FixProof
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.recipe.retreat import Retreat, told_of
from tfdyno.core.train.tuning import Trial, TrialEstimate
from tfdyno.jobs.diagnose.fixes import proof_of
from tfdyno.jobs.tune.write import written
from tfdyno.model.measure import trial_judge as judge
from tfdyno.model.measure.comparison import compare
from tfdyno.view.train.tune_text import tune_text
from tfdyno.words.base.language import speaking
from tfdyno.words.train.tune_document import tune_document
from tfdyno.words.train.tune_notes import (
    device_name_words,
    note_words,
    reason_words,
    uncompared_words,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MadeBy = Literal["estimate", "law"]
GIB = float(1 << 30)


def trial(made_by: MadeBy, rate: float = 80.0) -> Trial:
    """One that is expected to be slow and to need 9.5 of 8 GiB."""
    estimate = TrialEstimate(
        made_by=made_by, limit_bytes=8 * GIB,
        samples_per_s=Interval(low=rate, best=rate, high=rate),
        memory_bytes=Interval(low=9.5 * GIB, best=10 * GIB, high=20 * GIB),
    )  # fmt: skip
    return Trial(number=9, recipe=Recipe(batch_size=9), batch_size=9, estimate=estimate)


def not_faster(before_s: Sequence[float], after_s: Sequence[float]) -> str:
    """The reason of a proof that failed, of runs with these medians."""
    before, after = (measurement([[one] * 3 for one in side]) for side in (before_s, after_s))
    fix = FixProof(cause="tuning", reason="")
    return proof_of(fix, (before, after), compare(before, after)).reason


@pytest.mark.parametrize(("made_by", "whose"), [("estimate", "估计"), ("law", "由其他试验拟合，")])
def test_why_a_trial_is_not_run_is_told(made_by: MadeBy, whose: str) -> None:
    rates = (990.0, 1000.0, 1010.0)
    best = Trial(number=1, recipe=Recipe(), status="measured", ran=True, rates_per_s=rates,
                 samples_per_s=1000.0)  # fmt: skip
    unfit, slow = judge.unfit(trial(made_by)), judge.hopeless(trial(made_by), [best])
    assert unfit
    assert slow
    with speaking("zh"):
        assert reason_words(unfit).startswith(f"{whose}至少需要内存 ")
        assert reason_words(slow).startswith(f"{whose}最多 ")
        assert reason_words(slow).endswith("）。")


def test_why_a_trial_is_not_faster_is_told_clause_by_clause() -> None:
    small = not_faster([0.1, 0.1, 0.1], [0.0992, 0.0992, 0.0992])
    none = not_faster([0.1, 0.11, 0.09], [0.1, 0.11, 0.09])
    slower = not_faster([0.1, 0.1, 0.1], [0.2, 0.2, 0.2])
    with speaking("zh"):
        assert reason_words(small) == "没有更快：差异 +0.81% 未超过 1%。"
        assert reason_words(none).endswith(" 包含 1。")
        assert reason_words(slower).endswith(" 不含 1，且差异超过 1%。")


def test_losses_that_were_not_compared_are_told_with_the_reason() -> None:
    said = "It is faster. Losses were not compared: m.py:f brings no data."
    assert reason_words(said) == said
    with speaking("zh"):
        assert uncompared_words("m.py:f brings no data") == "m.py:f 不带数据"
        assert reason_words(said) == "更快。没有比较损失：m.py:f 不带数据。"


def test_a_note_of_a_trial_is_told_with_what_it_tells_of() -> None:
    back = Retreat(step="graph", words="in graph execution without XLA", said="no tile.")
    one = replace(TOLD.trials[1], retreats=(back,))
    notes = (f"Trial 1: {told_of([back])}",
             "Trial 3 is not the answer. It is faster, but the losses do not agree.",
             "Nobody has translated this")  # fmt: skip
    assert [note_words(note, [one]) for note in notes] == list(notes)
    with speaking("zh"):
        assert [note_words(note, [one]) for note in notes] == [
            "试验 1：XLA 编译失败：no tile；改为以 graph 方式（不用 XLA）运行。",
            "试验 3 不是答案。更快，但损失不一致。",
            "Nobody has translated this",
        ]


def test_the_device_is_told_where_it_is_a_cpu() -> None:
    with speaking("zh"):
        assert device_name_words("2 CPUs (AMD EPYC)") == "2 个 CPU（AMD EPYC）"
        assert device_name_words("NVIDIA L4") == "NVIDIA L4"


def test_the_whole_answer_is_chinese_and_its_files_stay_english(tmp_path: Path) -> None:
    with speaking("zh"):
        text = tune_text(TOLD, folder="tuned")
        document = tune_document(TOLD)
        written(tmp_path, TOLD)
    assert "".join(text.split()).startswith(
        "用execution=graph,steps_per_execution=8速度为1.80倍（99%置信区间1.70–1.90，交替测量）。"
    )
    assert "convnet，2 个 CPU（a CPU）" in text
    assert "更快，且损失一致。" in text
    assert document["headline"].startswith("用 execution=graph")
    assert document["proof"]["reason"] == "更快，且损失一致。"
    assert document["trials"][2]["reason"].startswith("3 次运行中的 1 次之后")
    kept = json.loads((tmp_path / "tuning.json").read_text())
    assert kept["headline"].startswith("1.80x as fast with ")
    assert kept["trials"][2]["reason"] == TOLD.trials[2].reason
    assert "1.80x as fast" in (tmp_path / "recipe.toml").read_text()
