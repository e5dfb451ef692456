"""How fast the CPUs are right now: a small computation of our own, timed between samples.

Two benches of one workload differ when the machine does: another process, a lower clock, a
neighbour on the same host. The same computation beside the steps tells that apart. A GPU is seldom
shared and tells its clocks and its other processes itself, so nothing is timed beside its steps.
"""

from __future__ import annotations

import time

import tensorflow as tf

from tfdyno.model.measure.statistics import median

EVERY_S = 0.1
SHARE_RATIO = 0.2
"""The share of the time of the steps."""
_PICTURES, _WIDTH, _CHANNELS = 16, 32, 32
_BUSY_RATIO = 0.03
"""The share of one CPU: more work than this of the workload's own threads, while no step runs,
disturbs."""
_FEWEST_LOOKS = 5
_SETTLE_S, _LOOK_S = 0.001, 0.003


class ReferenceSpeed:
    """The gradient of a small convolution on the CPUs that the steps use.

    Steps of a convolutional network on a shared machine with two CPUs swung by 8 % between runs of
    8 s. The time of this followed them with a correlation of 0.97 and left 1.9 %; a convolution
    without its gradient left 2.8 %, a matrix product 3.3 %, this at a quarter of the times 3.0 %.
    """

    def __init__(self) -> None:
        """Build it and run it once; nothing is timed."""
        with tf.device("/CPU:0"):
            self._image = tf.ones((_PICTURES, _WIDTH, _WIDTH, _CHANNELS))
            self._kernel = tf.ones((3, 3, _CHANNELS, _CHANNELS))
        self._gradient = tf.function(_gradient, jit_compile=False, autograph=False)
        self._gradient(self._image, self._kernel)
        self._busy_ratios: list[float] = []

    def measure(self, budget_s: float) -> float:
        """Return seconds of one, the mean of as many as the budget allows; 0.0: it is disturbed.

        One more comes first and does not count: the steps left their own data in the caches.
        """
        if self.is_disturbed:
            return 0.0
        self._busy_ratios.append(_busy_ratio())
        self._gradient(self._image, self._kernel)
        began, count, spent_s = time.perf_counter(), 0, 0.0
        while not count or spent_s < budget_s:
            self._gradient(self._image, self._kernel)
            count += 1
            spent_s = time.perf_counter() - began
        return spent_s / count

    @property
    def is_disturbed(self) -> bool:
        """Whether the workload itself works on between its steps, as a data pipeline may.

        It would then slow down this computation, as if the machine were slower; and what it
        prepares meanwhile, the steps need not wait for.
        """
        looks = self._busy_ratios
        return len(looks) >= _FEWEST_LOOKS and median(looks) > _BUSY_RATIO


def is_needed() -> bool:
    """Return whether the steps run on CPUs."""
    return not tf.config.list_logical_devices("GPU")


def synchronise() -> None:
    """Wait until every device has done what it was asked for."""
    tf.test.experimental.sync_devices()


def _busy_ratio() -> float:
    """Return CPU time of this process while its main thread sleeps, over one CPU's time."""
    time.sleep(_SETTLE_S)  # threads of TensorFlow spin a little after their work
    began_s, used_s = time.perf_counter(), time.process_time()
    time.sleep(_LOOK_S)
    return (time.process_time() - used_s) / (time.perf_counter() - began_s)


def _gradient(image: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
    with tf.GradientTape() as tape:
        tape.watch(kernel)
        activation = tf.nn.relu(tf.nn.conv2d(image, kernel, 1, "SAME"))
    return tape.gradient(activation, kernel)
