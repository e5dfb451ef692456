from __future__ import annotations

import pytest
from tests.judged import everything

from tfdyno.core.base.errors import UsageError
from tfdyno_truth.subset import KEYS, choose


def chosen(*words: str) -> set[str]:
    design = everything().design
    return {
        row.slug for row, taken in zip(design.rows, choose(design, words), strict=True) if taken
    }


def test_without_words_all_rows_are_meant() -> None:
    assert choose(everything().design, ()).all()


def test_the_beginning_of_a_name_means_all_that_begin_so() -> None:
    assert chosen("gpu=a100") == {"a100-sxm4-40gb", "a100-sxm4-80gb", "a100-pcie-80gb"} & chosen()
    assert chosen("gpu=A100-SXM4-40GB") == {"a100-sxm4-40gb"}


def test_values_of_a_key_are_alternatives_and_keys_add_up() -> None:
    both = choose(everything().design, ("gpu=t4", "gpu=rtx-3070"))
    assert both.sum() == sum(
        choose(everything().design, (word,)).sum() for word in ("gpu=t4", "gpu=rtx-3070")
    )
    design = everything().design
    taken = choose(design, ("gpu=t4", "framework=tensorflow", "mode=infer"))
    assert taken.any()
    for row, one in zip(design.rows, taken, strict=True):
        assert one == (row.slug == "t4" and row.framework == "tensorflow" and row.mode == "infer")


@pytest.mark.parametrize("key", KEYS)
def test_every_key_tells_rows_apart_or_refuses(key: str) -> None:
    with pytest.raises(UsageError, match=f"'nonsense' is no {key} of a row"):
        choose(everything().design, (f"{key}=nonsense",))


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("gpu=rtx-309", "did you mean rtx-3090"),
        ("modle=bert", "did you mean mode"),
        ("source=neusihgt-asplos-25-labels", "did you mean neusight-asplos-25-labels"),
        ("tensorflow", "write it as KEY=VALUE"),
        ("gpu=", "there are"),
    ],
)
def test_a_word_that_is_not_understood_is_told_with_the_nearest(word: str, hint: str) -> None:
    with pytest.raises(UsageError, match=hint):
        choose(everything().design, (word,))


def test_words_that_contradict_each_other_leave_nothing() -> None:
    with pytest.raises(UsageError, match="no row has all of this"):
        choose(everything().design, ("framework=pytorch", "execution=graph"))
