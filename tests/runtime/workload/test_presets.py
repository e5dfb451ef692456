"""Presets of KerasHub: GPT-2's variables counted by hand, with and without adapters."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tfdyno
from tfdyno.catalog.gpus import find
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.units import GIB
from tfdyno.core.choose.workload import FineTune
from tfdyno.jobs.choose.estimate import EstimateRequest, estimate
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.jobs.choose.trace import trace

if TYPE_CHECKING:
    from tfdyno.core.choose.workload import Mode, Trace

SOURCE = Path(__file__).parents[3] / "src"
WIDTH, HEADS, HEAD, LAYERS = 768, 12, 64, 12
PARAMETERS = 124_439_808
"""As OpenAI's GPT-2 small has; the head is the embedding of the words once more."""
RANK = 8
ADAPTED = LAYERS * 2 * (WIDTH * HEADS * RANK + RANK * HEAD + WIDTH)
"""Query and value of each layer: a kernel (width, heads, head) as (width, heads, rank) times
(rank, head), and the bias, which stays trained."""
KERNELS = LAYERS * 12 * WIDTH**2 + 50_257 * WIDTH
"""Parameters that quantize holds otherwise: four projections of attention, two layers four times as
wide, and the embedding of the words."""
HEAD = 128 * 2 + 2
"""Parameters of the classes on BERT's tiny sister."""
COUNTERS = 8
"""Bytes of the optimizer's counter of steps and learning rate."""

hub = pytest.mark.skipif(find_spec("keras_hub") is None, reason="KerasHub is not installed")


@cache
def traced(name: str, asked: FineTune, mode: Mode = "train") -> Trace:
    return trace(parse_reference(f"keras_hub:{name}", mode=mode, fine_tune=asked)).trace


def bytes_of(found: Trace, *roles: str) -> int:
    return sum(one.bytes for one in found.tensors if one.role in roles)


def shapes_of(found: Trace, role: str) -> dict[str, tuple[tuple[int, ...], str]]:
    own = [one for one in found.tensors if one.role == role]
    return {one.name: (one.shape[1:], one.dtype) for one in own}


@hub
def test_a_full_fine_tune_trains_every_weight_with_two_states_of_adamw() -> None:
    found = traced("gpt2_base_en", FineTune(sequence_length=64))
    assert (found.title, found.path, found.optimizer) == ("gpt2_base_en", "jax", "adam_w")
    assert found.parameter_count == found.trainable_parameter_count == PARAMETERS
    assert bytes_of(found, "weight") == 4 * PARAMETERS
    assert bytes_of(found, "optimizer") == 8 * PARAMETERS + COUNTERS


@hub
def test_adapters_alone_are_trained_and_have_states() -> None:
    found = traced("gpt2_base_en", FineTune(sequence_length=64, lora_rank=RANK))
    assert found.title == "gpt2_base_en (LoRA 8)"
    assert found.trainable_parameter_count == ADAPTED == 1_800_192
    assert bytes_of(found, "weight") == 4 * ADAPTED
    assert bytes_of(found, "optimizer") == 8 * ADAPTED + COUNTERS
    biases = LAYERS * 2 * WIDTH
    assert found.parameter_count == PARAMETERS + ADAPTED - biases


@hub
@pytest.mark.parametrize(("mode", "per_byte"), [("int8", 1), ("int4", 2)])
def test_a_quantized_model_holds_its_kernels_in_a_byte_or_half_a_one(
    mode: str, per_byte: int
) -> None:
    asked = FineTune(sequence_length=64, lora_rank=RANK, quantize=mode)
    found = traced("gpt2_base_en", asked)
    packed = [one for one in found.tensors if one.dtype == "int8"]
    kernels = [one.bytes for one in packed if not one.name.endswith("_zero")]
    assert sum(kernels) * per_byte == KERNELS
    assert found.trainable_parameter_count == ADAPTED
    assert bytes_of(found, "optimizer") == 8 * ADAPTED + COUNTERS


@hub
def test_what_is_quantized_is_not_trained_without_adapters() -> None:
    alone = traced("gpt2_base_en", FineTune(sequence_length=64, quantize="int8"))
    assert alone.trainable_parameter_count == PARAMETERS - KERNELS
    assert alone.warnings[-1].startswith("Weights in int8 are not trained: --lora trains")


@hub
def test_a_batch_is_what_the_preprocessing_of_a_language_model_gives() -> None:
    found = traced("gpt2_base_en", FineTune(sequence_length=64))
    tokens = ((64,), "int32")
    assert shapes_of(found, "input") == {
        "input/token_ids": tokens,
        "input/padding_mask": tokens,
    }
    assert shapes_of(found, "target") == {"target": tokens}
    assert shapes_of(found, "sample_weight") == {"sample_weight": ((64,), "bool")}
    assert found.loss == "sparse_categorical_crossentropy"


@hub
def test_samples_are_as_long_as_kerashub_cuts_them() -> None:
    gpt2 = traced("gpt2_base_en", FineTune(lora_rank=4))
    assert shapes_of(gpt2, "target") == {"target": ((1024,), "int32")}
    # Its preprocessing names the decoder's length, and that of the encoder apart.
    bart = traced("bart_base_en", FineTune())
    assert shapes_of(bart, "target") == {"target": ((1024,), "int32")}
    assert "Assumed samples of 1,024 tokens, as KerasHub cuts them" in " ".join(bart.warnings)


@hub
def test_a_model_without_a_head_for_words_is_a_classifier_of_two_by_itself() -> None:
    found = traced("bert_tiny_en_uncased", FineTune())
    assert shapes_of(found, "target") == {"target": ((), "int32")}
    assert not shapes_of(found, "sample_weight")
    assert {shape for shape, _ in shapes_of(found, "input").values()} == {(512,)}
    assert found.warnings[0] == (
        "Assumed samples of 512 tokens, as KerasHub cuts them; --seq names another length."
    )
    assert found.parameter_count == 4_385_920 + HEAD


@hub
def test_a_notebook_names_a_preset_as_the_command_line_does() -> None:
    name = "keras_hub:bert_tiny_en_uncased"
    rank, heads, head, layers = 4, 2, 64, 2
    adapted = layers * 2 * (128 * heads * rank + rank * head + heads * head)
    found = tfdyno.trace(name, fine_tune=tfdyno.FineTune(lora_rank=rank)).trace
    assert found.trainable_parameter_count == adapted + HEAD
    whole = tfdyno.estimate(name, gpu="l4", batch_size=4)
    assert whole.trace.trainable_parameter_count == 4_385_920 + HEAD


@hub
def test_hidden_tokens_are_guessed_at_as_many_places_as_kerashub_hides() -> None:
    found = traced("bert_tiny_en_uncased", FineTune(task="masked_lm", sequence_length=128))
    assert shapes_of(found, "input")["input/mask_positions"] == ((96,), "int32")
    assert shapes_of(found, "input")["input/token_ids"] == ((128,), "int32")
    assert shapes_of(found, "target") == {"target": ((96,), "int32")}
    assert shapes_of(found, "sample_weight") == {"sample_weight": ((96,), "float32")}
    assert found.loss == "sparse_categorical_crossentropy"
    # A short sample has no 96 tokens to hide.
    short = traced("bert_tiny_en_uncased", FineTune(task="masked_lm", sequence_length=32))
    assert shapes_of(short, "target") == {"target": ((32,), "int32")}


@hub
def test_a_segmenter_has_a_label_for_every_pixel() -> None:
    found = traced("segformer_b1_ade20k_512", FineTune())
    assert shapes_of(found, "target") == {"target": ((512, 512, 21), "float32")}
    assert found.loss == "categorical_crossentropy"
    assert found.warnings[0] == "Assumed 21 classes."


@hub
def test_a_detector_learns_boxes_and_their_classes_by_kerashubs_two_losses() -> None:
    found = traced("retinanet_resnet50_fpn_coco", FineTune())
    assert shapes_of(found, "target") == {
        "target/boxes": ((100, 4), "float32"), "target/labels": ((100,), "int32"),
    }  # fmt: skip
    assert found.loss == "huber_loss, binary_focal_crossentropy"
    assert found.warnings[0] == "Assumed 80 classes and 100 places for boxes in an image."
    # The head of COCO's 91 classes gives keras-hub's own count; 11 classes less, 9 anchors each.
    assert found.parameter_count == 34_121_239 - 11 * 9 * (3 * 3 * 256 + 1)


@hub
def test_of_what_makes_images_the_diffusion_transformer_alone_is_trained() -> None:
    found = traced("stable_diffusion_3_medium", FineTune(lora_rank=8))
    latents = ((128, 128, 16), "float32")
    assert shapes_of(found, "input") == {
        "input/latent": latents,
        "input/context": ((154, 4096), "float32"),
        "input/pooled_projection": ((2048,), "float32"),
        "input/timestep": ((1,), "float32"),
    }
    assert shapes_of(found, "target") == {"target": latents}
    # Width 1536, 24 blocks of two streams: a kernel to three times the width and its bias, and one
    # back to the width, which the last block has for one stream only.
    wide, rank = 1536, 8
    to, back = rank * (wide + 3 * wide) + 3 * wide, rank * (wide + wide) + wide
    assert found.trainable_parameter_count == 48 * to + 47 * back == 3_807_744
    assert found.warnings[0].startswith("KerasHub has no fit for it: the step is that of its diffu")


@hub
def test_a_backbone_without_a_task_answers_for_its_features_alone() -> None:
    found = traced("dinov2_small", FineTune(), "infer")
    assert shapes_of(found, "input") == {"input/images": ((518, 518, 3), "float32")}
    with pytest.raises(UsageError, match="KerasHub has no task for keras_hub:dinov2_small among"):
        traced("dinov2_small", FineTune())
    with pytest.raises(UsageError, match="a backbone of keras_hub:dinov2_small is not trained"):
        traced("dinov2_small", FineTune(task="backbone"))


@hub
@pytest.mark.parametrize(
    ("name", "asked", "said"),
    [
        ("deeplab_v3_plus_resnet50_pascalvoc", FineTune(quantize="int8"),
         "--quantize int8 changes nothing of keras_hub:deeplab_v3_plus_resnet50_pascalvoc: Keras"),
        ("retinanet_resnet50_fpn_coco", FineTune(quantize="int8"),
         "Keras cannot quantize keras_hub:retinanet_resnet50_fpn_coco: Cannot quantize a layer"),
        ("stable_diffusion_3_medium", FineTune(sequence_length=64),
         "--seq has no use for keras_hub:stable_diffusion_3_medium: its prompts are cut"),
    ],
)  # fmt: skip
def test_what_changes_nothing_is_refused(name: str, asked: FineTune, said: str) -> None:
    with pytest.raises(UsageError, match=f"^{said}"):
        traced(name, asked)


@hub
def test_the_forward_pass_has_no_labels() -> None:
    found = traced("bert_tiny_en_uncased", FineTune(sequence_length=32), "infer")
    assert {one.role for one in found.tensors} <= {"weight", "state", "input"}
    assert found.warnings == ()


@hub
def test_blocks_that_compute_again_hold_what_xla_holds_of_them() -> None:
    asked = FineTune(sequence_length=512, lora_rank=RANK)
    own = parse_reference("keras_hub:gpt2_base_en", fine_tune=asked)
    held = {}
    for remat in ("", "blocks"):
        question = EstimateRequest(
            workload=replace(own, remat=remat), gpus=(find("rtx-4090"),), batch_size=8,
            route="quick",
        )  # fmt: skip
        (one,) = estimate(question).estimates
        held[remat] = one.peak_memory_bytes
    # Compiled by XLA for this card: 6.062 and 2.170 GiB.
    for remat, compiled in (("", 6.062), ("blocks", 2.170)):
        assert held[remat].best / GIB == pytest.approx(compiled, rel=0.02)
        assert held[remat].low / GIB <= compiled <= held[remat].high / GIB


@hub
def test_a_task_that_a_model_has_not_is_one_sentence() -> None:
    with pytest.raises(UsageError) as told:
        traced("gpt2_base_en", FineTune(task="classifier"))
    assert str(told.value) == (
        "KerasHub has no classifier for keras_hub:gpt2_base_en; give --task causal_lm."
    )


@hub
def test_adapters_that_no_layer_takes_are_one_sentence() -> None:
    with pytest.raises(UsageError) as told:
        traced("f_net_base_en", FineTune(lora_rank=4))
    assert str(told.value) == (
        "--lora trains nothing of keras_hub:f_net_base_en: KerasHub finds no layer of it that it "
        "adapts; leave --lora out, or give a script that names layers to enable_lora."
    )


def test_without_kerashub_a_sentence_says_what_to_install() -> None:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    probe = [sys.executable, "-c", "import importlib.util as u, sys; "
             "sys.exit(u.find_spec('keras_hub') is not None)"]  # fmt: skip
    if subprocess.run(probe, env=environment, check=False).returncode:
        pytest.skip("KerasHub is installed beside tfdyno")
    words = "estimate keras_hub:gpt2_base_en --gpu l4 --quiet".split()
    done = subprocess.run(
        [sys.executable, "-m", "tfdyno", *words],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("tfdyno: keras_hub:gpt2_base_en needs KerasHub: the package ")
    assert "pip install 'tfdyno[hub]'" in done.stderr
