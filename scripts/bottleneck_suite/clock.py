"""Times the steps of a script, whichever way it trains."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Instance, Logs, Value

LEAST_STEPS = 12
WINDOW = 12
"""Steps of which the fastest run is told."""


class Enough(BaseException):
    """Leaves the script; no ``except Exception`` of the user stops it."""


class Clock:
    """Time and resident memory at each step, whichever way the script trains."""

    def __init__(self, limit_s: float) -> None:
        """Stop ``limit_s`` seconds after the first step."""
        self.limit_s = limit_s
        self.marks: list[tuple[float, int, int, float]] = []
        self.is_fit = False

    def tick(self, steps: int = 1) -> None:
        """So many steps are done."""
        now_s = time.perf_counter()
        done = self.marks[-1][1] + steps if self.marks else 0
        self.marks.append((now_s, done, _resident_bytes(), time.process_time()))
        if now_s - self.marks[0][0] > self.limit_s and done > LEAST_STEPS:
            raise Enough

    def told(self) -> dict[str, float]:
        """Seconds and bytes per step of the second half, and the steps that were seen."""
        half = self.marks[len(self.marks) // 2 :]
        steps = half[-1][1] - half[0][1]
        return {
            "step_s": (half[-1][0] - half[0][0]) / steps,
            "best_s": self._best_s(),
            "cpu_s": (half[-1][3] - half[0][3]) / steps,
            "bytes_per_step": (half[-1][2] - half[0][2]) / steps,
            "steps": self.marks[-1][1],
            "seconds": self.marks[-1][0] - self.marks[0][0],
        }

    def _best_s(self) -> float:
        """Seconds per step in the fastest run of steps: what others on the machine left alone."""
        late = self.marks[len(self.marks) // 4 :]
        width = min(WINDOW, len(late) - 1)
        pairs = zip(late, late[width:], strict=False)
        return min((b[0] - a[0]) / (b[1] - a[1]) for a, b in pairs)


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def hook(clock: Clock) -> None:
    """Tick at each batch of ``fit``, else at each call of a ``tf.function`` or of an optimizer."""
    import keras
    import tensorflow as tf
    from tensorflow.python.eager.polymorphic_function import polymorphic_function as polymorphic

    class Ticks(keras.callbacks.Callback):  # type: ignore[misc]
        async_safe = True

        def __init__(self) -> None:
            super().__init__()
            self.last = -1

        def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
            self.last = -1

        def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
            clock.tick(batch - self.last)
            self.last = batch

    fit = keras.Model.fit
    depth = [0]

    def counted_fit(self: Instance, *args: Any, **options: Any) -> Value:
        clock.is_fit = True
        options["callbacks"] = [*(options.get("callbacks") or []), Ticks()]
        return fit(self, *args, **options)

    keras.Model.fit = counted_fit
    call = polymorphic.Function.__call__

    def counted_call(self: Instance, *args: Any, **options: Any) -> Value:
        outer = depth[0] == 0 and tf.executing_eagerly() and "step" in str(self._name)
        depth[0] += 1
        try:
            return call(self, *args, **options)
        finally:
            depth[0] -= 1
            if outer and not clock.is_fit:
                clock.tick()

    polymorphic.Function.__call__ = counted_call
    update = keras.optimizers.Optimizer.apply

    def counted_update(self: Instance, *args: Any, **options: Any) -> Value:
        result = update(self, *args, **options)
        if tf.executing_eagerly() and not clock.is_fit and depth[0] == 0:
            clock.tick()
        return result

    keras.optimizers.Optimizer.apply = counted_update
