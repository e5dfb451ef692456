"""cli/train_options: what was asked here is asked the same on another machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.cli.typed import typed

from tfdyno.cli.train.node import _Options
from tfdyno.cli.train.train_options import Run, kept_settings, question_from, run_words
from tfdyno.core.base.errors import UsageError

if TYPE_CHECKING:
    from tfdyno.jobs.train.train import TrainRequest


def words_of(options: _Options) -> tuple[str, ...]:
    return run_words(options.run, unsafe=options.unsafe)


def question_of(options: _Options) -> TrainRequest:
    return question_from(options, options.run, python=options.python, unsafe=options.unsafe)


def given(*words: str) -> _Options:
    return typed(_Options, "task:resnet18-cifar10", *words)


def kept(*words: str) -> dict[str, object]:
    run = typed(Run, *words)
    return kept_settings(run.what, run.how)


ALL = (
    "--set", "precision=mixed_float16", "--set", "input.prefetch=-1", "--set", "memory_growth=true",
    "--epochs", "3", "--steps-per-epoch", "10", "--checkpoint-every", "90s", "--keep", "5",
    "--norms", "7", "--spot", "aws", "--tensorboard", "--no-model", "--input-shape", "8,8,1",
    "--input-shape", "()",
)  # fmt: skip


@pytest.mark.parametrize(
    "words", [(), ALL, ("--checkpoint-every", "20"), ("--checkpoint-every", "1000000s")]
)
def test_words_ask_for_the_same_again(words: tuple[str, ...]) -> None:
    first = given(*words)
    again = given(*words_of(first))
    assert words_of(again) == words_of(first)
    assert question_of(again) == question_of(first)


def test_a_fine_tune_is_asked_for_again_as_well() -> None:
    preset = "keras_hub:gpt2_base_en"
    words = ("--data", "texts.csv", "--seq", "64", "--lora", "4", "--quantize", "int8")
    first = typed(_Options, preset, *words)
    assert words_of(first) == words
    assert question_of(typed(_Options, preset, *words_of(first))) == question_of(first)


def test_what_is_not_asked_is_not_set() -> None:
    assert kept() == {}
    assert kept("--no-model", "--epochs", "2") == {"epochs": 2, "save_model": False}


def test_a_recipe_for_this_machine_is_refused() -> None:
    with pytest.raises(UsageError, match="tfdyno recipe auto"):
        words_of(given("--recipe", "auto"))
