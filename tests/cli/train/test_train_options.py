"""cli/train_options: what was asked here is asked the same on another machine."""

from __future__ import annotations

from typing import Any

import click
import pytest
from click.testing import CliRunner

from tfdyno.cli.options import PYTHON, UNSAFE, WORKLOAD
from tfdyno.cli.train.train_options import RUN_OPTIONS, kept_settings, question_from, run_words
from tfdyno.core.base.errors import UsageError


def given(*words: str) -> dict[str, Any]:
    """What click makes of the options of a training."""
    found: dict[str, Any] = {}

    @click.command()
    @WORKLOAD
    @RUN_OPTIONS
    @PYTHON
    @UNSAFE
    def command(**values: Any) -> None:
        found.update(values)

    done = CliRunner().invoke(command, ["task:resnet18-cifar10", *words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return found


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
    again = given(*run_words(first))
    assert run_words(again) == run_words(first)
    assert question_from(again) == question_from(first)


def test_what_is_not_asked_is_not_set() -> None:
    assert kept_settings(given()) == {}
    assert kept_settings(given("--no-model", "--epochs", "2")) == {"epochs": 2, "save_model": False}


def test_a_recipe_for_this_machine_is_refused() -> None:
    with pytest.raises(UsageError, match="tfdyno recipe auto"):
        run_words(given("--recipe", "auto"))
