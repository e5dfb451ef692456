from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.runtime.workload.tasks.learning import assert_does_not_learn, assert_learns

if TYPE_CHECKING:
    from tests.runtime.workload.tasks.learning import Trained


def test_trainable_weights_are_those_of_the_published_form(described: dict[str, Any]) -> None:
    assert described["resnet18-cifar10"]["trainable"] == 11_173_962


def test_the_image_gets_a_frame_of_two_pixels(described: dict[str, Any]) -> None:
    x = np.array(described["resnet18-cifar10"]["real"][0])
    assert described["resnet18-cifar10"]["real_kinds"] == ["float32[3,32,32,3]", "int32[3]"]
    assert np.argwhere(x[1, :, :, 0] == x.max()).tolist() == [[2, 2]]
    assert (x[..., 0] == x[..., 2]).all()
    assert x.min() == pytest.approx(-0.2860 / 0.3530, abs=1e-5)


WAYS = ("whole", "shuffled")


@pytest.mark.tf
@pytest.mark.slow
def test_it_learns(trained: Trained) -> None:
    assert_learns("resnet18-cifar10", trained, ways=WAYS)


@pytest.mark.tf
@pytest.mark.slow
def test_it_does_not_learn_from_shuffled_labels(trained: Trained) -> None:
    assert_does_not_learn("resnet18-cifar10", "shuffled", trained, ways=WAYS)
