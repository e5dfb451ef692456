"""When the steps that count ran, and on which cards: for who watches these from outside."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tfdyno.core.messages.diagnose import SteadySpan

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tfdyno.core.measure.step_facts import StepFacts


def steady(span_s: tuple[float, float], facts: StepFacts) -> SteadySpan:
    """When and where the steps ran.

    Args:
        span_s: When they began and ended, by ``time.perf_counter``.
        facts: What was seen of them.
    """
    import tensorflow as tf

    ahead_s = time.monotonic() - time.perf_counter()
    visible = [each.name for each in tf.config.get_visible_devices("GPU")]
    is_divided = len(tf.config.list_logical_devices("GPU")) != len(visible)
    here = max(1, facts.replica_count // max(1, facts.worker_count))
    return SteadySpan(
        began_s=span_s[0] + ahead_s,
        ended_s=span_s[1] + ahead_s,
        cards=used_cards(visible, facts.devices, 0 if is_divided else here),
    )


def used_cards(visible: Sequence[str], variables: Iterable[str], replicas: int) -> tuple[int, ...]:
    """Return numbers of the cards that a training uses, in CUDA's order.

    TensorFlow opens every card that it sees, but trains on the first ones unless it is told.

    Args:
        visible: Physical devices: ``/physical_device:GPU:0``.
        variables: Devices of the variables, ``GPU:0``; of mirrored ones that of the first part.
        replicas: Of this process; 0: not known, all cards count.
    """
    numbers = tuple(int(name.rpartition(":")[2]) for name in visible)
    if not replicas:
        return numbers
    places = {int(each[len("GPU:") :]) for each in variables if each.startswith("GPU:")}
    first = min(places, default=0)
    places |= set(range(first, first + replicas))
    return tuple(number for place, number in enumerate(numbers) if place in places)
