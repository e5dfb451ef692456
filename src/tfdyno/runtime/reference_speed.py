"""How fast the machine is right now: a fixed computation of our own, timed beside the steps.

Two benches of one workload differ when the machine does: another process, a lower clock, a
neighbour on the same host. The same computation before and after the steps tells that apart.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

import tensorflow as tf

if TYPE_CHECKING:
    from collections.abc import Callable

LIMIT_S = 0.2
"""Of one series; there are two."""
LEAST = 3
_SIZES = {"cpu": (512, 2, 4 << 20), "gpu": (2048, 16, 32 << 20)}
"""Per kind of device: width of the square matrices, products in a row, float32 values copied."""
BESIDE_EVERY_S = 0.25
_BESIDE = {"cpu": (16, 32, 32), "gpu": (64, 56, 64)}
"""Per kind of device: pictures, their width and height, channels in and out of a convolution."""
_BESIDE_TIMES = 3


class ReferenceSpeed:
    """Times the fixed computation on the device that the steps use."""

    def __init__(self) -> None:
        """Build it; nothing is timed."""
        self.device = "gpu" if tf.config.list_logical_devices("GPU") else "cpu"
        self._seconds: list[float] = []
        self._convolution = _convolution(self.device)

    def beside(self) -> float:
        """Seconds of one small convolution, now: the middle one of three.

        On a shared machine with two CPUs steps of a convolutional network swung by 13 % (standard
        deviation over windows of 8 s); this followed with a correlation of 0.99, a matrix product
        or a copy with 0.9 and less. 0.0 where the memory does not suffice.
        """
        with contextlib.suppress(tf.errors.ResourceExhaustedError, tf.errors.InternalError):
            return sorted(_timed(self._convolution) for _ in range(_BESIDE_TIMES))[1]
        return 0.0

    @property
    def quartile_s(self) -> float:
        """Lower quartile of all that was timed; 0.0 where nothing could be.

        A neighbour on the machine takes its turns in bursts, which only ever make it slower: on a
        shared machine with two CPUs the median of one series swings fourfold, this one far less.
        """
        ordered = sorted(self._seconds)
        return ordered[len(ordered) // 4] if ordered else 0.0

    def measure(self) -> None:
        """Time one series, in at most about ``LIMIT_S``, and free its memory again."""
        # Of no interest where the card is full: the steps themselves are measured all the same.
        with contextlib.suppress(tf.errors.ResourceExhaustedError, tf.errors.InternalError):
            work = _computation(self.device)
            work()
            began = time.perf_counter()
            series: list[float] = []
            while len(series) < LEAST or time.perf_counter() - began < LIMIT_S:
                series.append(_timed(work))
            self._seconds += series


def synchronise() -> None:
    """Wait until every device has done what it was asked for."""
    tf.test.experimental.sync_devices()


def _convolution(device: str) -> Callable[[], object]:
    pictures, width, channels = _BESIDE[device]

    @tf.function(jit_compile=False, autograph=False)
    def run() -> tf.Tensor:
        with tf.device(f"/{device.upper()}:0"):
            image = tf.ones((pictures, width, width, channels))
            return tf.nn.conv2d(image, tf.ones((3, 3, channels, channels)), 1, "SAME")

    return run


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    synchronise()
    return time.perf_counter() - began


def _computation(device: str) -> Callable[[], object]:
    width, products, values = _SIZES[device]
    with tf.device(f"/{device.upper()}:0"):
        matrix = tf.fill((width, width), 1.0 / width)
        memory = tf.zeros(values)

    @tf.function(jit_compile=False, autograph=False)
    def run(matrix: tf.Tensor, memory: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        product = matrix
        for _ in range(products):
            product = tf.matmul(product, matrix)
        return product, memory + 1.0

    return lambda: run(matrix, memory)
