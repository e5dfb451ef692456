"""Whether the cards of a bench have room: one sentence before minutes of work."""

from __future__ import annotations

from typing import Any

from tfdyno.core.errors import ToolError
from tfdyno.core.units import format_bytes
from tfdyno.probe import cards

NEARLY_FULL_RATIO = 0.05
"""Less of a card's memory than this is no room for TensorFlow's own context and libraries."""


def check_room(visible: str | None, *, library: Any = None) -> None:  # noqa: ANN401
    """Refuse a card whose memory others hold; a machine without cards passes.

    Args:
        visible: ``CUDA_VISIBLE_DEVICES`` of the run; None: all cards.
        library: Something shaped like ``pynvml``; that package when None.

    Raises:
        ToolError: Less than ``NEARLY_FULL_RATIO`` of a card's memory is free; names who holds it.
    """
    with cards.opened(library) as nvml:
        for index, handle in cards.handles(nvml, visible) if nvml else ():
            now = cards.reading(nvml, handle)
            total_bytes = cards.card(nvml, handle, lambda _name: "").memory_bytes
            if now.memory_bytes is None or not total_bytes:
                continue
            free_bytes = total_bytes - now.memory_bytes
            if free_bytes < NEARLY_FULL_RATIO * total_bytes:
                pids = ", ".join(str(pid) for pid, _ in now.processes or ())
                raise ToolError(
                    f"GPU {index} has {format_bytes(free_bytes)} of {format_bytes(total_bytes)} "
                    "of memory free",
                    why=f"other processes hold the rest{f' ({pids})' if pids else ''}",
                    remedy="end them, or choose another card with --set visible_devices=N",
                )
