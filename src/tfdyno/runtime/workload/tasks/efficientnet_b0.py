"""EfficientNet-B0 of ``keras.applications`` with 1000 classes, images of 224 × 224."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras
import numpy as np

from tfdyno.runtime.workload.tasks import images

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Tensor

BATCH_SIZES = (128, 16)
SAMPLES_PER_EPOCH = 1_281_167
GOAL_STEPS = 16
SIDE, CLASSES = 224, 1000
RATE, RATE_BATCH_SIZE = 0.016, 256


def compiled(batch_size: int) -> keras.Model:
    """Return the model with RMSprop, whose rate grows in proportion to the batch."""
    base = keras.applications.EfficientNetB0(weights=None, classifier_activation=None)
    model = images.classifier(base.inputs[0], base.outputs[0], "efficientnet-b0")
    rate = RATE * batch_size / RATE_BATCH_SIZE
    optimizer = keras.optimizers.RMSprop(rate, rho=0.9, momentum=0.9, epsilon=1e-3)
    return images.compile_classifier(model, optimizer)


def random_examples(generator: np.random.Generator, count: int) -> tuple[Any, Any]:
    """Return noise with random classes, as pixels: the model itself divides by 255."""
    pixels, labels = images.random_images(generator, count, SIDE, CLASSES)
    return np.clip(pixels * 64 + 128, 0, 255), labels


def examples(pictures: Tensor, labels: Tensor) -> tuple[Any, Any]:
    """Return real images enlarged eight times; of the classes only the first ten occur."""
    return images.enlarged(pictures, 8), labels
