"""ResNet-18 in its form for CIFAR-10: a 3 × 3 stem and no pooling before the first stage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras
from keras import layers, ops

from tfdyno.runtime.workload.tasks import images

if TYPE_CHECKING:
    import numpy as np

    from tfdyno.core.base.untyped import Tensor, Value

BATCH_SIZES = (128, 32)
SAMPLES_PER_EPOCH = 50_000
GOAL_STEPS = 8
SIDE, CLASSES = 32, 10
RATE, RATE_BATCH_SIZE = 0.1, 128


def compiled(batch_size: int) -> keras.Model:
    """Return the model with SGD, whose rate grows in proportion to the batch."""
    rate = RATE * batch_size / RATE_BATCH_SIZE
    return images.compile_classifier(_model(), keras.optimizers.SGD(rate, momentum=0.9))


def _model() -> keras.Model:
    inputs = keras.Input((SIDE, SIDE, 3))
    x = layers.ReLU()(_convolution(inputs, 64))
    for stage, width in enumerate((64, 128, 256, 512)):
        x = _block(_block(x, width, 2 if stage else 1), width, 1)
    x = layers.GlobalAveragePooling2D()(x)
    return images.classifier(inputs, layers.Dense(CLASSES)(x), "resnet18-cifar10")


def _block(x: Tensor, width: int, stride: int) -> Value:
    y = layers.ReLU()(_convolution(x, width, stride=stride))
    y = _convolution(y, width)
    if stride > 1 or x.shape[-1] != width:
        x = _convolution(x, width, size=1, stride=stride)
    return layers.ReLU()(layers.Add()([x, y]))


def _convolution(x: Tensor, width: int, *, size: int = 3, stride: int = 1) -> Value:
    start = keras.initializers.HeNormal()
    x = layers.Conv2D(
        width, size, stride, padding="same", use_bias=False, kernel_initializer=start
    )(x)
    return layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)


def random_examples(generator: np.random.Generator, count: int) -> tuple[Any, Any]:
    """Return noise with random classes."""
    return images.random_images(generator, count, SIDE, CLASSES)


def examples(pictures: Tensor, labels: Tensor) -> tuple[Any, Any]:
    """Put real images in a frame of two pixels."""
    frame = ((0, 0), (2, 2), (2, 2), (0, 0))
    return images.standardised(ops.pad(images.enlarged(pictures, 1), frame)), labels
