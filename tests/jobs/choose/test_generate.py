"""jobs/choose/generate: KerasHub's own calls as steps, and what is refused before."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib.util import find_spec

import pytest

from tfdyno.catalog.gpus import find
from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.workload import FineTune
from tfdyno.jobs.choose.estimate import EstimateRequest
from tfdyno.jobs.choose.generate import image_generation, makes_images, text_generation
from tfdyno.jobs.choose.reference import parse_reference

hub = pytest.mark.skipif(find_spec("keras_hub") is None, reason="KerasHub is not installed")
L4 = find("l4")


def asked(name: str = "gpt2_base_en", **fine_tune: object) -> EstimateRequest:
    workload = parse_reference(
        f"keras_hub:{name}",
        mode="infer",
        precision="bfloat16",
        fine_tune=FineTune(**fine_tune),  # type: ignore[arg-type]
    )
    return EstimateRequest(workload=workload, gpus=(L4,), precision="bfloat16")


@pytest.mark.parametrize(
    ("request_", "prompt", "new", "said"),
    [
        (asked(), 1000, 100,
         "keras_hub:gpt2_base_en takes no 1,100 tokens: prompt and new tokens together are 1,024 "
         "at most; give --new-tokens 24 or a shorter prompt."),
        (asked("stable_diffusion_3_medium"), 8, 8,
         "keras_hub:stable_diffusion_3_medium makes images, not text; leave --prompt out."),
        (asked(), 0, 1, "prompt 0"),
        (asked(), 8, 0, "new tokens 0"),
        (asked(sequence_length=64), 8, 8, "--seq does not go with --prompt"),
        (asked(task="classifier"), 8, 8, "--task classifier does not go with --prompt"),
        (replace(asked(), replicas=(2,)), 8, 8, "--prompt is for a preset of KerasHub"),
        (EstimateRequest(workload=parse_reference("keras:ResNet50", mode="infer"), gpus=(L4,)),
         8, 8, "--prompt is for a preset of KerasHub"),
    ],
)  # fmt: skip
def test_what_generates_no_text_is_refused_before_any_work(
    request_: EstimateRequest, prompt: int, new: int, said: str
) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(said)}"):
        text_generation(request_, prompt_tokens=prompt, new_tokens=new)


@hub
@pytest.mark.tf
def test_a_language_model_fills_its_cache_and_makes_tokens_with_it() -> None:
    request = replace(asked(), batch_size=4)
    (found,), prefill, token = text_generation(request, prompt_tokens=96, new_tokens=32)
    # 12 layers, keys and values, 128 places, 12 heads of 64, two bytes each, for 4 samples
    assert found.cache_bytes == 12 * 2 * 128 * 12 * 64 * 2 * 4
    assert prefill.trace.title == "gpt2_base_en, filling the cache"
    assert token.trace.title == "gpt2_base_en, one token"
    tokens = [one.shape[1:] for one in token.trace.tensors if one.name == "input/token_ids"]
    assert tokens == [(1,)]
    # A token reads every weight once: 124.4 million in two bytes, but for the table of places, at
    # no more than 300 GB/s
    assert found.token.step_s.best > 2 * 123.6e6 / 300e9
    assert found.prefill.step_s.best > found.token.step_s.best
    assert found.prefill.execution == found.token.execution == "xla"


@hub
@pytest.mark.tf
def test_a_model_without_a_cache_generates_nothing() -> None:
    with pytest.raises(UsageError, match="how keras_hub:bert_tiny_en_uncased generates text is"):
        text_generation(asked("bert_tiny_en_uncased"), prompt_tokens=8, new_tokens=8)


@pytest.mark.parametrize(
    "request_",
    [asked(), replace(asked("stable_diffusion_3_medium"), replicas=(2,)),
     asked("stable_diffusion_3_medium", task="backbone")],
)  # fmt: skip
def test_what_makes_no_images_on_one_card_is_refused_before_any_work(
    request_: EstimateRequest,
) -> None:
    with pytest.raises(UsageError, match=r"^--diffusion-steps is for a preset of KerasHub"):
        image_generation(request_, steps=28, guidance=True)


def test_the_number_of_steps_is_one_at_least() -> None:
    assert makes_images(asked("stable_diffusion_3_medium"))
    with pytest.raises(UsageError, match=r"^diffusion steps 0"):
        image_generation(asked("stable_diffusion_3_medium"), steps=0, guidance=True)


@hub
@pytest.mark.tf
@pytest.mark.slow
def test_a_second_prompt_doubles_the_work_of_each_step() -> None:
    request = asked("stable_diffusion_3_medium")
    (guided,), step = image_generation(request, steps=28, guidance=True)
    (alone,), _ = image_generation(request, steps=28, guidance=False)
    assert step.trace.title == "stable_diffusion_3_medium, one step of diffusion"
    assert alone.denoise.flops_per_step == pytest.approx(
        guided.denoise.flops_per_step / 2, rel=0.01
    )
    assert alone.text.flops_per_step == pytest.approx(guided.text.flops_per_step)
    # 24 blocks of width 1,536 with a stream for each of two kinds of places, 64 x 64 pieces of the
    # picture and 154 of the prompt: projections and layers of 12 width^2, and attention of all.
    wide, places = 1536, 64 * 64 + 154
    by_hand = 24 * (2 * 12 * wide**2 * places + 4 * places**2 * wide)
    assert alone.denoise.flops_per_step == pytest.approx(by_hand, rel=0.02)
    # Every weight stays on the card, in two bytes each.
    assert guided.device_memory_bytes.best > 2 * 2.987e9
