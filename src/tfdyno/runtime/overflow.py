"""How many batches were left out because a gradient overflowed in float16, without a look per step.

Keras' ``LossScaleOptimizer`` calls its inner optimizer only where all gradients are finite, and the
inner optimizer counts those calls, batches that only accumulate included. So

    left out = calls of apply - calls that the inner optimizer counted

which is one number to read at the end, and holds with accumulation: ``iterations`` divides by the
accumulation, the variable behind it does not.
"""

from __future__ import annotations

import math
from typing import Any


class Overflows:
    """Counts from when it is made: before the first step, or after a checkpoint was restored."""

    def __init__(self, optimizer: Any) -> None:  # noqa: ANN401
        """Remember where ``optimizer`` stands; one without loss scaling leaves nothing out."""
        self._optimizer = optimizer
        self._inner = getattr(optimizer, "inner_optimizer", None)
        self._applied, self._scale = self._state()

    def left_out(self, attempts: int) -> int:
        """Batches (or updates, where several batches make one call) that were left out so far.

        Args:
            attempts: Calls of the optimizer's ``apply`` since this was made: one per batch in
                Keras' own train step.

        Returns:
            The count. The scale of the loss, halved by each overflow and doubled at most once in
            ``dynamic_growth_steps``, bounds it, for a custom ``train_step`` that calls ``apply``
            more or less often than told.

        Source:
            keras/src/optimizers/loss_scale_optimizer.py and base_optimizer.py of Keras 3.15.1.
        """
        if self._inner is None:
            return 0
        applied, scale = self._state()
        applied -= self._applied
        counted = max(0, attempts - applied)
        if not (math.isfinite(scale) and scale > 0):
            return counted
        low = round(math.log2(self._scale / scale))
        high = low + applied // max(1, int(self._optimizer.dynamic_growth_steps))
        return max(0, min(max(counted, low), high))

    def _state(self) -> tuple[int, float]:
        """Calls that the inner optimizer counted, and the scale."""
        if self._inner is None:
            return 0, 1.0
        from keras import ops

        applied = int(ops.convert_to_numpy(self._inner._iterations))
        if not self._optimizer.built:
            return applied, float(self._optimizer.initial_scale)
        return applied, float(ops.convert_to_numpy(self._optimizer.dynamic_scale))
