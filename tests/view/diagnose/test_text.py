"""view/diagnose_text: the answer first, then the split, the cause, the fix, its gain, what next."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from tests.view import diagnoses
from tests.view.diagnoses import FACTS, HEALTHY, LEAK, fixed, looked_again, only, told, whole

from tfdyno.core.measure.step_facts import CardFacts
from tfdyno.view.base.text import shown_width
from tfdyno.view.diagnose.text import diagnose_text
from tfdyno.words.base.language import speaking

WHOLE = """\
The step waits for input: 61 % of its time.
resnet: batch 256, 60 steps, on 2 CPUs

  input     ██████████████████████████████████████                           61%
  compute   █████████████████                                                28%
  host      ██████                                                            9%
  launch    █                                                                 2%
  step      418 ms (half of them 415–421)   612 samples/s
  compute   conv 100 ms, gemm 17.0 ms

  cause     input.sequential_map   train.py:41
  because   train.py:41: map(parse) takes 240 ms of a batch's 255 ms
            the pipeline by itself: one of 2 CPUs is busy
  fix       Let map work on several elements at once.
              ds.map(parse, num_parallel_calls=tf.data.AUTOTUNE)
  expected  2.3–2.6x   the step then takes 161–182 ms

  also      input.no_cache
            The same images are decoded in every epoch.
  because   the pipeline: 120 MiB of elements
  fix       Keep them in memory with cache().
  expected  1.1–1.2x   the step then takes 348–380 ms

  next      measure the change, keep it if it is faster and learns the same:
              tfdyno diagnose train.py --fix

  notes     The profile holds 20 steps.
            One loop was looked at."""


def test_the_whole_answer() -> None:
    assert diagnose_text(told()) == WHOLE


@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_line_is_wider_than_the_screen_but_for_commands(width: int) -> None:
    for one in (told(), fixed(written=("out/recipe.toml",)), whole(), looked_again()):
        lines = diagnose_text(one, width=width).splitlines()
        wide = [line for line in lines if shown_width(line) > width]
        assert all("tfdyno " in line or "ds.map" in line for line in wide)


def test_a_card_stands_below_the_step() -> None:
    card = CardFacts(name="NVIDIA L4", busy_ratio=0.38)
    said = diagnose_text(told(facts=replace(FACTS, cards=(card, replace(card, busy_ratio=0.4)))))
    lines = said.splitlines()
    at = lines.index("  GPU       NVIDIA L4: busy 38% of the time")
    assert lines[at - 1].startswith("  compute ")
    assert lines[at + 1] == "            NVIDIA L4: busy 40% of the time"


def test_colour_only_repeats_words() -> None:
    for one in (told(), looked_again(), told(only(LEAK)), told(only(HEALTHY))):
        painted = diagnose_text(one, colour=True)
        assert "\x1b[1m" in painted
        assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == diagnose_text(one)


def test_a_proven_fix_is_told_with_the_command_that_has_it() -> None:
    words = ("--recipe", "r.toml", "--", "--lr", "0.1")
    one = fixed(written=("out/recipe.toml", "out/suggested.diff"), arguments=words,
                own_arguments=("--fit", "2"))  # fmt: skip
    text = diagnose_text(one)
    assert "  proven    2.41x (2.35–2.47, 99 %; 5 runs of each in turns, 418 ms -> 173" in text
    assert "  tried     1.004x (0.980–1.030, 99 %" in text
    assert (
        "  apply     tfdyno train train.py --recipe r.toml --set input.prefetch=-1 --set "
        "input.parallel_calls=-1 -- --lr 0.1\n"
    ) in text
    assert "  next      tfdyno diagnose train.py --fit 2 --recipe r.toml --set" in text
    assert "  wrote     out/recipe.toml and out/suggested.diff" in text
    assert "--fix" not in text


def test_the_course_and_the_stages_follow_the_findings() -> None:
    text = diagnose_text(whole())
    assert text.startswith(WHOLE.partition("\n\n  next")[0])
    assert (
        """
  over time ▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▇▃▃▃▃▃▃▃▃▃▃▃▅▃▃▃▃▃▃▃█▃▃▃▅▃▃▃▃▃▃▄▃▃▃▃▃▃▃▃
            60 steps of 407 ms to 1.60 s (after warm-up)
            step 41 took 1.60 s: tracing 1.10 s
            step 21 took 1.31 s: validation 800 ms and the first of an epoch
            step 33 took 900 ms: callbacks 500 ms

  stages    stage by itself     a batch      it could give
            from_tensor_slices  1.00 ms  256,000 samples/s
            map(parse)           240 ms    1,070 samples/s  train.py:41
            batch               14.0 ms   18,300 samples/s  train.py:41
            all of them          255 ms    1,000 samples/s
            the step alone       160 ms    1,600 samples/s
"""
        in text
    )


def test_the_bars_after_a_fix_have_the_scale_of_those_before() -> None:
    text = diagnose_text(looked_again())
    before, after = text.split("With what was kept, looked at again: 418 ms -> 173 ms a step\n")
    # 62 columns for 418 ms: 28 % and 61 % of them before; 68 % of 25.7 columns after
    assert before.count("█" * 17) == 3  # computing, and twice in the bar of input
    compute, host, *_ = after.splitlines()
    assert (compute.split()[0], compute.count("█"), compute[-3:]) == ("compute", 17, "68%")
    assert (host.split()[0], host.count("█"), host[-3:]) == ("host", 6, "22%")
    assert "\n  now       Nothing is known that gains 10 %.\n" in after


def test_a_record_says_what_to_type_for_the_rest() -> None:
    text = diagnose_text(told(look="tfdyno diagnose train.py --set precision=float32"))
    assert (
        "look at the steps themselves:\n              tfdyno diagnose train.py --set prec" in text
    )
    assert "--fix" not in text


def test_what_was_not_tried_any_more_is_named() -> None:
    one = fixed()
    one = replace(one, proven=replace(one.proven, left=("input.no_cache",)))
    assert "  left      input.no_cache not tried; --resume goes on" in diagnose_text(one)


def test_a_healthy_training_is_offered_no_fix() -> None:
    text = diagnose_text(told(only(HEALTHY)))
    assert text.startswith("Nothing is known that gains 10 %.\n")
    assert "expected" not in text
    assert "--fix" not in text


def test_a_fix_by_hand_is_not_offered_to_be_measured() -> None:
    text = diagnose_text(told(only(LEAK)))
    assert "  fix       Append float(loss) instead of the tensor." in text
    assert "--fix" not in text


def test_a_long_name_of_a_part_keeps_the_bars_in_line() -> None:
    split_s = {"communication": 0.3, "input": 0.118}
    one = told(replace(diagnoses.DIAGNOSIS, split_s=split_s))
    rows = [line for line in diagnose_text(one).splitlines() if line.endswith("%") and "█" in line]
    assert len({row.index("█") for row in rows}) == 1
    assert {shown_width(row) for row in rows} == {80}


def test_every_label_has_a_chinese_one_and_its_text_begins_where_the_others_do() -> None:
    with speaking("zh"):
        lines = diagnose_text(looked_again()).splitlines()
    labels = [line[2:].partition(" ")[0] for line in lines if re.match(r"  \S", line)]
    assert [label for label in labels if not re.fullmatch("[\u4e00-\u9fff]+", label)] == []
    heads = [re.match(r"  \S+ +", line) for line in lines]
    assert {shown_width(head[0]) for head in heads if head} == {12}
