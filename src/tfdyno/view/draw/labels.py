"""Greedy placement of labels in pixel space: the important first, none over another thing."""

from __future__ import annotations

import math
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.view.draw.svg import FONT_PX

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Mean advance of a character as a share of the font size, in DejaVu Sans: the widest of the faces
# that the page may meet, on a Linux that has no other.
_NARROW, _NORMAL, _BROAD, _WIDE = 0.34, 0.62, 0.78, 1.0
_LINE = 1.25
_LINE_COST, _POINT_COST, _LABEL_COST = 1.0, 5.0, 50.0
_FAR_COST_PER_PX = 0.02
"""A label crosses a line rather than stand 50 px farther from its point."""
_GRID_PX = 10.0
_RINGS_PX = (6.0, 12.0, 20.0, 30.0, 42.0, 56.0, 72.0)
_DIRECTIONS = (
    (1.0, 0.0),
    (-1.0, 0.0),
    (0.0, -1.0),
    (0.0, 1.0),
    (0.85, -0.9),
    (0.85, 0.9),
    (-0.85, -0.9),
    (-0.85, 0.9),
    (0.45, -1.0),
    (0.45, 1.0),
    (-0.45, -1.0),
    (-0.45, 1.0),
)
LEADER_PX = 15.0
"""A label farther than this from its point gets a line to it."""


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in pixels; y grows downwards."""

    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: Box) -> bool:
        """Return whether the two share an area."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )

    def inside(self, other: Box) -> bool:
        """Return whether this box lies within ``other``."""
        return (
            self.left >= other.left
            and self.right <= other.right
            and self.top >= other.top
            and self.bottom <= other.bottom
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """A point that wants a label."""

    x: float
    y: float
    text: str
    radius: float = 4.0
    bold: bool = False
    rings: int = 2
    """How far from its point the label may stand: rings of 6, 12, 20, 30, 42, 56, 72 px."""
    must: bool = False
    """Placed even where nothing is free: at the least bad place, never dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A label with its place; ``leader`` ends at the label when it stands away from its point."""

    text: str
    x: float
    y: float
    bold: bool
    leader: tuple[float, float, float, float] | None


def text_width(text: str, font_px: float, *, bold: bool = False) -> float:
    """Estimate the width of ``text`` in pixels, a little on the wide side."""
    total = 0.0
    for char in text:
        if char in " .,:;|'()iljtfI1·":
            total += _NARROW
        elif unicodedata.east_asian_width(char) in "WF":
            total += _WIDE
        elif char.isupper() or char in "mw%×–":
            total += _BROAD
        else:
            total += _NORMAL
    return total * font_px * (1.13 if bold else 1.0)


def place(
    anchors: Sequence[Anchor],
    *,
    frame: Box,
    obstacles: Iterable[Box],
) -> tuple[Placed, ...]:
    """Place labels in the order given; drop those without a free place unless they must stand.

    Points of all anchors are obstacles too, as is every label already placed. A label that must
    stand covers a line before it covers a point, and a point before another label.
    """
    taken = [(box, _LINE_COST) for box in obstacles]
    taken += [(_dot(anchor), _POINT_COST) for anchor in anchors]
    placed = []
    for anchor in anchors:
        box = _free(anchor, frame, taken) if anchor.text else None
        if box is None:
            continue
        taken.append((box, _LABEL_COST))
        placed.append(_label(anchor, box))
    return tuple(placed)


def along(x1: float, y1: float, x2: float, y2: float, *, step: float = 6.0) -> list[Box]:
    """Cover a straight line with small boxes, as obstacles."""
    parts = max(1, math.ceil(math.hypot(x2 - x1, y2 - y1) / step))
    points = [(x1 + (x2 - x1) * k / parts, y1 + (y2 - y1) * k / parts) for k in range(parts + 1)]
    return [Box(x - 2, y - 2, x + 2, y + 2) for x, y in points]


def _dot(anchor: Anchor) -> Box:
    reach = anchor.radius
    return Box(anchor.x - reach, anchor.y - reach, anchor.x + reach, anchor.y + reach)


def _free(anchor: Anchor, frame: Box, taken: list[tuple[Box, float]]) -> Box | None:
    best, least = None, math.inf
    for box in _candidates(anchor):
        if not box.inside(frame):
            continue
        cost = sum(cost for other, cost in taken if box.overlaps(other))
        if cost == 0:
            return box
        if cost < least:
            best, least = box, cost
    if not anchor.must or least < _POINT_COST:
        return best if anchor.must else None
    return min(
        (box for box in (best, *_anywhere(anchor, frame)) if box),
        key=lambda box: (
            sum(cost for other, cost in taken if box.overlaps(other))
            + _FAR_COST_PER_PX * math.hypot(*_offset(anchor, box))
        ),
        default=None,
    )


def _anywhere(anchor: Anchor, frame: Box) -> Iterable[Box]:
    """Yield places all over the frame, for a label that finds none near its point."""
    width = text_width(anchor.text, FONT_PX, bold=anchor.bold)
    height = FONT_PX * _LINE
    across = int((frame.right - frame.left - width) // _GRID_PX) + 1
    down = int((frame.bottom - frame.top - height) // _GRID_PX) + 1
    for row in range(max(0, down)):
        for column in range(max(0, across)):
            left, top = frame.left + column * _GRID_PX, frame.top + row * _GRID_PX
            yield Box(left, top, left + width, top + height)


def _offset(anchor: Anchor, box: Box) -> tuple[float, float]:
    """Return the offset from the anchor to the nearest point of the box."""
    return (
        min(max(anchor.x, box.left), box.right) - anchor.x,
        min(max(anchor.y, box.top), box.bottom) - anchor.y,
    )


def _candidates(anchor: Anchor) -> Iterable[Box]:
    """Try right, left, above, below, then between these; the same on wider rings."""
    width = text_width(anchor.text, FONT_PX, bold=anchor.bold)
    height = FONT_PX * _LINE
    for ring in _RINGS_PX[: anchor.rings]:
        gap = anchor.radius + ring
        across, up = gap + width / 2, gap + height / 2
        for right, down in _DIRECTIONS:
            x, y = anchor.x + right * across, anchor.y + down * up
            yield Box(x - width / 2, y - height / 2, x + width / 2, y + height / 2)


def _label(anchor: Anchor, box: Box) -> Placed:
    near_x = min(max(anchor.x, box.left), box.right)
    near_y = min(max(anchor.y, box.top + 3), box.bottom - 3)
    distance = math.hypot(near_x - anchor.x, near_y - anchor.y)
    leader = None
    if distance - anchor.radius > LEADER_PX:
        share = (anchor.radius + 1) / distance  # from the rim of the point, not its middle
        start_x = anchor.x + (near_x - anchor.x) * share
        start_y = anchor.y + (near_y - anchor.y) * share
        leader = (start_x, start_y, near_x, near_y)
    return Placed(
        text=anchor.text,
        x=box.left,
        y=(box.top + box.bottom) / 2,
        bold=anchor.bold,
        leader=leader,
    )
