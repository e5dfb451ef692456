"""How many bytes are alive at each step of a schedule, affine in the batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Protocol

from tfdyno.core.base.interval import Scaled
from tfdyno.core.choose.program import Buffer

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

CURVE_POINTS = 200


@dataclass(slots=True, kw_only=True)
class Life:
    """A buffer and the first and last step (both included) of the schedule that need it."""

    start: int
    end: int
    buffer: Buffer
    size: Scaled = field(init=False)

    def __post_init__(self) -> None:
        """Take the size of the buffer."""
        self.size = self.buffer.bytes


class Span(Protocol):
    """A buffer and the first and last step (both included) that need it."""

    start: int
    end: int
    size: Scaled


def live_bytes(spans: Iterable[Span], steps: int) -> list[Scaled]:
    """Return bytes of all spans during each of ``steps`` steps."""
    fixed, growing = [0.0] * (steps + 1), [0.0] * (steps + 1)
    for span in spans:
        fixed[span.start] += span.size.fixed
        fixed[span.end + 1] -= span.size.fixed
        growing[span.start] += span.size.per_sample
        growing[span.end + 1] -= span.size.per_sample
    totals = zip(accumulate(fixed), accumulate(growing), strict=True)
    return [Scaled(fixed=a, per_sample=b) for a, b in totals][:steps]


def envelope(live: Iterable[Scaled]) -> list[Scaled]:
    """Keep the moments that are the peak at some batch: the upper hull of lines over the batch."""
    hull: list[Scaled] = []
    for line in sorted(live, key=lambda item: (item.per_sample, item.fixed)):
        while hull and (hull[-1].fixed <= line.fixed or _hidden(hull, line)):
            hull.pop()
        hull.append(line)
    return hull


def curve(
    live: Sequence[Scaled], resident: Scaled, batch_size: int
) -> tuple[tuple[float, Scaled], ...]:
    """Return the highest live bytes of each of at most ``CURVE_POINTS`` stretches of the step."""
    total = [line + resident for line in live]
    width = max(1, -(-len(total) // CURVE_POINTS))
    last = max(1, len(total) - 1)
    return tuple(
        (start / last, max(total[start : start + width], key=lambda moment: moment.at(batch_size)))
        for start in range(0, len(total), width)
    )


def _hidden(hull: list[Scaled], line: Scaled) -> bool:
    """Return whether the last line of the hull is nowhere above its neighbours."""
    if len(hull) < 2:
        return False
    before, middle = hull[-2], hull[-1]
    return (line.fixed - before.fixed) * (middle.per_sample - before.per_sample) >= (
        middle.fixed - before.fixed
    ) * (line.per_sample - before.per_sample)
