"""Whether a cache of the input has room: diagnose's rule, before any pipeline is looked at."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from tfdyno.probe.base.host import this_host
from tfdyno.probe.machine.fingerprint import memory_bytes
from tfdyno.rules.bottleneck.tables import limits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.choose.workload import Trace

_INPUT = re.compile(r"([a-z]+)(\d*)\[([\d,]*)\]")
_BITS = {"bool": 8}
"""The bits of types whose names do not say them."""


def data_bytes(inputs: Sequence[str], samples: int) -> float:
    """Return bytes of an epoch as the model is given it; 0: not known.

    Args:
        inputs: ``float32[224,224,3]`` of every input, without the batch.
        samples: Of an epoch; 0: not known.
    """
    sizes = [_sample_bytes(one) for one in inputs]
    return math.fsum(sizes) * samples if sizes and all(sizes) else 0.0


def traced_bytes(trace: Trace) -> float:
    """Return the same of a trace."""
    of_batch = math.fsum(one.bytes for one in trace.tensors if one.role == "input")
    return of_batch / trace.batch_size * trace.samples_per_epoch


def room_bytes(*, is_here: bool, limit_bytes: float = 0.0) -> float:
    """Return memory that a cache may take, by the limits of ``diagnose``.

    Args:
        is_here: Whether it is this machine's, whose free memory can be read.
        limit_bytes: Of a run; 0: none.
    """
    import psutil

    if not is_here:
        return limits()["cache_blind_bytes"]
    sizes = (psutil.virtual_memory().available, memory_bytes(this_host()), limit_bytes)
    return limits()["cache_of_free_ratio"] * min(size for size in sizes if size)


def _sample_bytes(text: str) -> float:
    found = _INPUT.fullmatch(text)  # a size that differs stands there as ?
    if not found:
        return 0.0
    bits = int(found[2] or _BITS.get(found[1], 0))
    return bits / 8 * math.prod(int(size) for size in found[3].split(",") if size)
