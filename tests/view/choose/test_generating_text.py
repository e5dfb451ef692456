"""What generating text or images takes, in words: the answer first, units on every number."""

from __future__ import annotations

import json
from dataclasses import replace

from tests.advice import GIB, estimate, exactly
from tests.core.choose.test_generating import generation, images
from tests.view.choose.test_estimate_text import TRACE

from tfdyno.view.choose.generating_text import (
    image_generation_document,
    image_generation_text,
    text_generation_document,
    text_generation_text,
)
from tfdyno.words.base.language import speaking

MADE = generation()
PREFILL = replace(TRACE, title="gpt2_base_en, filling the cache")
NAMES = {"card": "NVIDIA L4"}


def test_the_first_sentence_is_the_answer() -> None:
    text = text_generation_text([MADE], PREFILL, NAMES)
    assert " ".join(text.split("\n\n")[0].split()) == (
        "gpt2_base_en on L4 makes 100 tokens from a prompt of 512, 4 at a time, in 2.5 s (2 s to "
        "3.1 s): 160 tokens per second. Fits: 10.0 of 80 GiB, unverified on a device."
    )


def test_what_does_not_fit_is_no_good_answer() -> None:
    none = replace(MADE, token=estimate(fits="no", device_memory_bytes=exactly(90 * GIB)))
    told = " ".join(text_generation_text([none], PREFILL, NAMES).split())
    assert "tokens per second. Does not fit: 90.0 of 80 GiB" in told


def test_what_it_rests_on_is_told() -> None:
    text = text_generation_text([MADE], PREFILL, NAMES, notes=("A note.",))
    told = " ".join(text.split())
    assert "Keys and values of the batch take 977 KiB." in told
    assert "the prefill works on all 612 tokens." in told
    assert "No making of text was measured on a card" in told
    assert "A note." in told


def test_every_card_has_a_row_with_both_calls() -> None:
    slow = replace(MADE, gpu="other", token=estimate(step_s=exactly(0.2), max_batch_size=3))
    text = text_generation_text([MADE, slow], PREFILL, {**NAMES, "other": "NVIDIA T4"})
    rows = [line.split() for line in text.splitlines() if line.startswith(("L4", "T4"))]
    assert [row[:4] for row in rows] == [
        ["L4", "400–625", "16–25", "160"], ["T4", "400–625", "200–200", "20"],
    ]  # fmt: skip
    assert [row[6] for row in rows] == ["800", "3"]


def test_the_json_has_both_calls_and_both_traces() -> None:
    found = json.loads(json.dumps(text_generation_document([MADE], PREFILL, PREFILL)))
    (one,) = found["generation"]
    assert one["whole_s"]["best"] == MADE.whole_s.best
    assert one["prefill"]["step_s"]["best"] == 0.5
    assert one["token"]["step_s"]["best"] == 0.02
    assert one["max_batch_size"] == 800
    assert found["prefill_trace"]["title"] == PREFILL.title


def test_it_is_told_in_chinese() -> None:
    with speaking("zh"):
        text = text_generation_text([MADE], PREFILL, NAMES)
    assert text.startswith("gpt2_base_en 在 L4 上由 512 个 token 的提示生成 100 个 token")


def test_images_are_told_with_their_steps_and_how_many_a_minute_makes() -> None:
    step = replace(TRACE, title="stable_diffusion_3_medium, one step of diffusion")
    told = " ".join(image_generation_text([images()], step, NAMES).split())
    assert told.startswith(
        "stable_diffusion_3_medium on L4 makes 2 images at a time in 28 steps of diffusion, in "
        "2.9 s (2.3 s to 3.6 s): 42 images per minute. Fits: 10.0 of 80 GiB, unverified on a "
        "device."
    )
    assert "Each step works on two prompts" in told
    one = replace(images(), batch_size=1, guidance=False)
    alone = image_generation_text([one], step, NAMES)
    assert alone.startswith("stable_diffusion_3_medium on L4 makes an image in 28 steps")
    assert "two prompts" not in alone
    with speaking("zh"):
        chinese = image_generation_text([one], step, NAMES)
    assert chinese.startswith("stable_diffusion_3_medium 在 L4 上以 28 步扩散生成一张图像")


def test_the_json_of_images_has_the_three_calls() -> None:
    found = json.loads(json.dumps(image_generation_document([images()], TRACE, ("A note.",))))
    (one,) = found["generation"]
    assert [one[name]["step_s"]["best"] for name in ("text", "denoise", "image")] == [
        0.01,
        0.1,
        0.05,
    ]
    assert (one["steps"], one["guidance"], one["max_batch_size"]) == (28, True, 800)
    assert found["denoise_trace"]["title"] == TRACE.title
    assert found["notes"] == ["A note."]
