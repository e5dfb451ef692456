"""What a preset is trained for: the tasks, their labels and how long a sample is."""

from __future__ import annotations

from importlib.util import find_spec
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.workload import HUB_TASKS, FineTune, HubModel
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.runtime.workload.preset_tasks import BASES, CLASSES, Task, labels_of, length_of, task_of

if TYPE_CHECKING:
    from tfdyno.core.choose.workload import Mode

hub = pytest.mark.skipif(find_spec("keras_hub") is None, reason="KerasHub is not installed")


class Preprocessor:
    """As KerasHub's: what it cuts to stands in its arguments."""

    def __init__(self, tokenizer: object, sequence_length: int = 256) -> None: ...


def task(name: str) -> Task:
    return Task(name=name, model=SimpleNamespace(preprocessor_cls=Preprocessor))


def model(longest: int = 512, **chosen: object) -> HubModel:
    fine_tune = FineTune(**chosen)  # type: ignore[arg-type]
    return HubModel(backbone="BertBackbone", config="{}", longest=longest, fine_tune=fine_tune)


def test_every_task_that_a_user_may_name_has_a_class_of_kerashub() -> None:
    assert set(HUB_TASKS) == {*BASES, "backbone"}
    assert set(CLASSES) <= set(BASES)
    assert [name for name in BASES if task(name).writes] == ["causal_lm", "masked_lm"]
    assert [name for name in BASES if task(name).takes_classes] == list(CLASSES)


@pytest.mark.parametrize(
    ("given", "length"),
    [(model(), 256), (model(longest=128), 128), (model(sequence_length=64), 64)],
)
def test_a_sample_is_as_long_as_named_or_cut_and_no_longer_than_the_model(
    given: HubModel, length: int
) -> None:
    assert length_of(given, task("causal_lm")) == length


def test_labels_have_the_shapes_that_kerashub_makes() -> None:
    pixels = SimpleNamespace(output=SimpleNamespace(shape=(None, 32, 32, 21)))
    (tokens, weights), (guessed, weighed), (mask, none) = (
        labels_of(pixels, model(), task(name)) for name in ("causal_lm", "masked_lm", "segmenter")
    )
    assert (tokens.shape, weights.dtype) == ((256,), "bool")
    assert (guessed.shape, weighed.dtype) == ((96,), "float32")
    assert (mask.shape, none) == ((32, 32, 21), None)
    boxes, _ = labels_of(pixels, model(), task("detector"))
    assert {name: leaf.shape for name, leaf in boxes.items()} == {
        "boxes": (100, 4),
        "labels": (100,),
    }


@hub
@pytest.mark.tf
@pytest.mark.parametrize(
    ("name", "mode", "found"),
    [("gpt2_base_en", "train", "causal_lm"), ("bert_tiny_en_uncased", "train", "classifier"),
     ("segformer_b1_ade20k_512", "train", "segmenter"), ("dinov2_small", "infer", "backbone"),
     ("retinanet_resnet50_fpn_coco", "infer", "detector"),
     ("stable_diffusion_3_medium", "train", "text_to_image")],
)  # fmt: skip
def test_without_a_task_it_is_the_first_that_kerashub_has(
    name: str, mode: Mode, found: str
) -> None:
    given = parse_reference(f"keras_hub:{name}", mode=mode, fine_tune=FineTune())
    assert task_of(given).name == found


@hub
@pytest.mark.tf
def test_a_task_that_kerashub_has_not_names_one_that_it_has() -> None:
    asked = FineTune(task="detector")
    given = parse_reference("keras_hub:bert_tiny_en_uncased", fine_tune=asked)
    with pytest.raises(UsageError, match=r"no detector for .*; give --task classifier"):
        task_of(given)
