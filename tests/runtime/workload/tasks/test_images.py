"""What the image classifiers share shows in each of them."""

from __future__ import annotations

from typing import Any

import pytest

IMAGE_TASKS = ["resnet18-cifar10", "resnet50-imagenet", "efficientnet-b0"]


@pytest.mark.parametrize("name", IMAGE_TASKS)
def test_random_images_look_like_standardised_or_like_pixels(
    name: str, described: dict[str, Any]
) -> None:
    low, high = described[name]["random_ends"][0]
    if name == "efficientnet-b0":
        assert (low, high) == (0, 255)
    else:
        assert -7 < low < -3
        assert 3 < high < 7


@pytest.mark.parametrize("name", [*IMAGE_TASKS, "lstm", "dlrm", "bert-base"])
def test_logits_are_float32_under_mixed_precision_too(name: str, described: dict[str, Any]) -> None:
    assert described[name]["output_dtype"] == "float32"
    assert described[name]["mixed_output_dtype"] == "float32"
