"""Steps back are told in sentences, in English the one that a record holds."""

from __future__ import annotations

from typing import get_args

from tfdyno.core.recipe.retreat import Retreat, RetreatStep, told_of
from tfdyno.rules.compiler import Fault, fault_in, next_step
from tfdyno.words.base.language import speaking
from tfdyno.words.recipe.retreats import retreats_words, step_line

TILE = "Failed to compute symbolic tile"


def taken() -> tuple[Retreat, ...]:
    """Every step back after a fault that is known, one after the other."""
    fault = fault_in(TILE)
    assert isinstance(fault, Fault)
    found: list[Retreat] = []
    while step := next_step(fault, TILE, tried=[one.step for one in found]):
        found.append(step)
    return tuple(found)


def test_in_english_it_is_the_sentence_of_the_record() -> None:
    steps = taken()
    assert [one.step for one in steps] == list(get_args(RetreatStep))
    for count in range(4):
        assert retreats_words(steps[:count]) == told_of(steps[:count])
    unknown = (Retreat(step="graph", words=steps[2].words, said="internal: no such thing."),)
    assert retreats_words(unknown) == told_of(unknown)


def test_in_chinese_the_fault_and_the_way_are_translated() -> None:
    first, second, _ = taken()
    with speaking("zh"):
        assert step_line("train.py", first) == (
            "XLA 编译 train.py 失败：Triton 找不到 reshape 之后矩阵乘的分块（jax-ml/jax#40237, "
            "jax-ml/jax#34010, openxla/xla#36792）；改为不用 Triton 矩阵乘（XLA_FLAGS "
            "--xla_gpu_enable_triton_gemm=false）重新运行。"
        )
        assert retreats_words((first, second)).endswith(
            "；改为使用未经实测选择的核函数（XLA_FLAGS --xla_gpu_autotune_level=0）运行"
            "（不用 Triton 矩阵乘时也失败）。"
        )


def test_a_server_is_started_again() -> None:
    assert step_line("model", taken()[2], is_served=True).endswith(
        "; it is started again in graph execution without XLA."
    )
