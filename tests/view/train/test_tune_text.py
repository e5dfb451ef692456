"""view/tune_text: the answer first, its proof, the trials by speed, and why others did not run."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from tests.view.tunings import CHANGED, START, TOLD, UNFIT

from tfdyno.core.base.interval import Interval
from tfdyno.core.train.tuning import TrialEstimate
from tfdyno.view.base.text import shown_width
from tfdyno.view.train.tune_text import tune_text

WHOLE = """\
1.80x as fast with execution=graph, steps_per_execution=8 (1.70–1.90 at 99%,
measured in turns).
convnet, 2 CPUs (a CPU)

  proof     It is faster, and the losses agree.
  trials    2 measured, 1 ended early, surely slower, 1 does not fit, 1 same as
            another; 8 of 12 combinations were not tried
  noise     1.2% from run to run of the same trial
  wrote     out/tuning.json, out/recipe.toml
  next      tfdyno train train.py --recipe out

trial  samples/s  99% interval  recipe
    1        180       175–185  execution=graph, steps_per_execution=8
    0        100        97–103  the start
    2         60   ended early  execution=xla

  trial 3   does not fit: * batch_size=128. The estimate says 9.3 GiB of memory
            at least.

  *         changes the samples of an update, and with them what is learned

  notes     Only samples per second are tuned."""


def test_the_whole_answer() -> None:
    text = tune_text(TOLD, folder="out", files=("out/tuning.json", "out/recipe.toml"))
    assert "\n".join(line.rstrip() for line in text.split("\n")) == WHOLE


def test_a_study_on_jax_says_so_and_how_to_train_there() -> None:
    text = tune_text(replace(TOLD, backend="jax"), folder="out")
    assert "convnet, Keras on JAX, 2 CPUs (a CPU)" in text
    assert "tfdyno train train.py --backend jax --recipe out" in text


def test_a_changed_batch_is_a_warning() -> None:
    assert "  warning   It changes the batch of an update from 32 to 128" in tune_text(CHANGED)


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_no_line_is_wider_than_the_screen(width: int) -> None:
    text = tune_text(TOLD, width=width)
    assert max(map(shown_width, text.split("\n"))) <= width


def test_colours_only_repeat_what_words_say() -> None:
    plain = re.sub(r"\x1b\[[0-9;]*m", "", tune_text(TOLD, colour=True))
    assert plain == tune_text(TOLD)


def test_a_plan_lists_estimates() -> None:
    rate = TrialEstimate(made_by="estimate",
                         samples_per_s=Interval(low=80.0, best=100.0, high=130.0))  # fmt: skip
    planned = replace(START, status="planned", samples_per_s=0.0, estimate=rate)
    text = tune_text(
        replace(TOLD, planned_for="L4", trials=(planned, UNFIT), proof=None, best=None)
    )
    assert "80–130" in text
    assert "wrote" not in text


def test_many_reasons_are_cut_and_said_so() -> None:
    many = tuple(replace(UNFIT, number=n) for n in range(10, 22))
    assert "… and 4 more, in --json" in tune_text(replace(TOLD, trials=(START, *many), best=0))
