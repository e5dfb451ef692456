"""What ``fit`` adds to a step: the batch's way from the host's memory, and Keras' own work.

TensorFlow copies a batch when its step asks for it, and lets the copy wait for what the card still
computes (``gpu_util.cc``, ``CopyCPUTensorToGPU``): nothing hides it, unless the pipeline copies
ahead (``tf.data.experimental.prefetch_to_device``). Memory of NumPy and of tf.data is not pinned,
which halves what the bus could do, and more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.interval import Interval

if TYPE_CHECKING:
    from tfdyno.core.choose.estimate import Estimate
    from tfdyno.core.choose.generation import Software
    from tfdyno.core.choose.time_model import Swept

BYTES_PER_S = Interval(low=4e9, best=6.5e9, high=1.2e10)
"""The rate from memory that is not pinned. On an H200 (PCIe 5.0 x16, virtual machine, 2026-11-27)
single tensors of 64 and 256 MiB came at 7.0 and 6.3 GB/s, batches of a dataset at 5.5 and 7.8."""
KERAS_S = Interval(low=0.0002, best=0.001, high=0.0025)
"""Between two steps of ``fit``: the iterator, callbacks, the call. On an H200 (virtual machine,
2026-11-27) small networks took 1.8 ms (batch 128) and 0.9 ms (1,024) longer than step and copy; on
two cores of a server without a card it is 0.4 ms."""
SWEPT_RATIO = 1.25
"""How far a copy is from what a sweep measured of one tensor, either way; judgement."""
INPUTS = "inputs"


def copy_s(found: Estimate, software: Software | None, swept: Swept | None) -> Interval | None:
    """Return seconds that a batch is on its way to the card; None where nothing is known of that.

    Args:
        found: The step.
        software: What trains; only TensorFlow's ``fit`` is known.
        swept: The sweep of the card, if there is one that measured the way.
    """
    is_known = software is not None and software.framework == "tensorflow"
    moved_bytes = found.memory_parts_bytes.get(INPUTS, 0.0)
    if not is_known or found.mode != "train" or moved_bytes <= 0.0:
        return None
    rate = BYTES_PER_S
    if swept and (told := swept.card.pace.to_card_bytes_per_s):
        rate = Interval(low=told / SWEPT_RATIO, best=told, high=told * SWEPT_RATIO)
    return rate.under(moved_bytes)


def fit_step_s(found: Estimate) -> Interval | None:
    """Return the seconds of a step of ``fit`` with data in host memory; None: nothing is known.

    A longer ``steps_per_execution`` hides what Keras does itself, ``prefetch_to_device`` the copy.

    Args:
        found: The step, with what its batch takes to the card.
    """
    if found.copy_s is None:
        return None
    return found.step_s.together(found.copy_s).together(KERAS_S)
