"""view/memory_text: the plan first, then the step's course, its tensors and its layers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.memories import FINDING, GIB, NEED, answer, memory_map, plan, unfit

from tfdyno.core.doctor.finding import Diagnosis
from tfdyno.core.doctor.oom import OomReport
from tfdyno.view.memory.text import fragment_words, log_sentence, memory_text

if TYPE_CHECKING:
    from tfdyno.core.choose.memory_map import AllocatorNeed


def flat(text: str) -> str:
    return " ".join(text.split())


def test_without_a_plan_the_first_line_is_the_peak_and_whether_it_fits() -> None:
    text = memory_text(answer())
    assert flat(text).startswith(
        "resnet50 at batch 100 on Card holds 4 GiB at its peak, after 50% of its kernels, in the "
        "backward pass of head. Fits: 10.0 of 80 GiB."
    )
    assert "activations 3 GiB, weights 1 GiB (3 tensors)" in flat(text)
    assert "XLA asks for 3 GiB of temporaries as one piece" in flat(text)
    assert "conv1 (relu)" in text
    assert "(no layer)" in text


def test_the_plan_leads_with_the_chosen_option_marked() -> None:
    lines = memory_text(answer(plan())).splitlines()
    assert lines[0].startswith("resnet50: Should fit Card with mixed_float16 and batch 16 × 2")
    marked = [line for line in lines if line.startswith("*")]
    assert len(marked) == 1
    assert "16 × 2" in marked[0]
    assert "- Nothing was measured." in lines


def test_a_finding_stands_at_the_end_with_its_fix_and_exit_code() -> None:
    text = memory_text(answer(unfit(), findings=(FINDING,)))
    assert text.startswith("resnet50: Nothing that was weighed fits Card.")
    assert "tfdyno advise model.py" in text
    assert text.rstrip().endswith("exit 1")


def test_a_written_recipe_is_followed_by_the_command_that_trains_by_it() -> None:
    text = memory_text(answer(plan()), written="fit.toml")
    assert "Next: tfdyno train keras:ResNet50 --data FILE.py:FUNCTION --recipe fit.toml" in text
    assert "Next:" not in memory_text(answer(unfit()), written="fit.toml")


def test_several_cards_share_one_list_of_tensors() -> None:
    one = answer()
    other = replace(one.cards[0], estimate=replace(one.cards[0].estimate, gpu="other"))
    text = memory_text(replace(one, cards=(*one.cards, other)))
    assert text.count("largest at the peak") == 1
    assert text.count("at its peak") == 2


def test_no_line_is_wider_than_the_screen() -> None:
    found = answer(plan(), findings=(FINDING,))
    for width in (60, 80, 120):
        assert max(map(len, memory_text(found, width=width).splitlines())) <= width


def test_a_narrow_list_is_short_and_verbose_is_long() -> None:
    tensors = tuple(
        replace(memory_map().tensors[0], layer=f"layer_{n}", held_bytes=GIB) for n in range(40)
    )
    one = answer()
    card = replace(one.cards[0], map=memory_map(tensors=tensors))
    found = replace(one, cards=(card,))
    assert memory_text(found).count("layer_") == 10
    assert memory_text(found, verbose=True).count("layer_") == 40


@pytest.mark.parametrize(
    ("need", "words"),
    [
        (NEED, "4 GiB in use at most, 1 GiB more (20%) lie in fragments; the largest request is"),
        (replace(NEED, failed_bytes=1.75 * GIB),
         "1.75 GiB find no piece: 2 GiB are free, in fragments, the largest piece 1.50 GiB"),
        (replace(NEED, failed_bytes=3 * GIB), "2 GiB are free, too little, the largest piece"),
    ],
)  # fmt: skip
def test_what_the_allocator_makes_of_a_step(need: AllocatorNeed, words: str) -> None:
    assert fragment_words(need).startswith(words) or words in fragment_words(need)


def test_a_log_is_held_against_the_estimate() -> None:
    oom = OomReport(kind="gpu", in_use_bytes=int(9 * GIB), limit_bytes=int(10 * GIB),
                    requested_bytes=int(2 * GIB))  # fmt: skip
    found = answer(oom=oom, log=Diagnosis(findings=()))
    assert log_sentence(found) == (
        "In the log 9 GiB of 10 GiB were in use when 2 GiB more were asked for; the estimate of "
        "this workload is 10.0 GiB (10.0–10.0)."
    )
    assert log_sentence(answer()) == ""
