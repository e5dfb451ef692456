"""ResNet-50 of ``keras.applications`` with 1000 classes, images of 224 × 224."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras

from tfdyno.runtime.workload.tasks import images

if TYPE_CHECKING:
    import numpy as np

    from tfdyno.core.base.untyped import Tensor

BATCH_SIZES = (256, 8)
SAMPLES_PER_EPOCH = 1_281_167
GOAL_STEPS = 16
SIDE, CLASSES = 224, 1000
RATE, RATE_BATCH_SIZE = 0.032, 256


def compiled(batch_size: int) -> keras.Model:
    """Return the model with SGD, whose rate grows in proportion to the batch."""
    base = keras.applications.ResNet50(weights=None, classifier_activation=None)
    model = images.classifier(base.inputs[0], base.outputs[0], "resnet50-imagenet")
    rate = RATE * batch_size / RATE_BATCH_SIZE
    return images.compile_classifier(model, keras.optimizers.SGD(rate, momentum=0.9))


def random_examples(generator: np.random.Generator, count: int) -> tuple[Any, Any]:
    """Return noise with random classes."""
    return images.random_images(generator, count, SIDE, CLASSES)


def examples(pictures: Tensor, labels: Tensor) -> tuple[Any, Any]:
    """Return real images enlarged eight times; of the classes only the first ten occur."""
    return images.standardised(images.enlarged(pictures, 8)), labels
