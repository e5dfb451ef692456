"""Whether a change leaves what is learned as it was: losses of two trainings with the same seed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from tfdyno.core.measure.fix_proof import Agreement
from tfdyno.rules.tables import read_rows
from tfdyno.words.base.language import spoken

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tfdyno.core.base.language import Language

FILE = "fix_agreement.csv"
NOISE_FACTOR = 2.0
"""Two draws from one spread lie this much further apart than two others, now and then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """How far two losses may lie apart to count as the same."""

    ratio: float
    why: str


def tolerance(settings: Iterable[str]) -> Tolerance:
    """Return the widest of those of the settings that differ, by flat name.

    A setting without a row of its own has that of its group (``input.*``), or of all others.
    """
    found = [_of(name) for name in settings] or [_rows(spoken())["*"]]
    return max(found, key=lambda one: one.ratio)


def agreement(
    before: Sequence[float],
    after: Sequence[float],
    allowed: Tolerance,
    *,
    again: Sequence[float] = (),
    steps: int = 0,
) -> Agreement:
    """Compare the losses of two trainings with the same seed, epoch by epoch.

        difference = max |before - after| / max(|before|, |after|)

    Where the unchanged training was run twice and does not repeat itself, twice the difference of
    those two is allowed too: no change can be told from what the training does by itself.

    Args:
        before: Loss of each epoch without the change.
        after: The same with it.
        allowed: How far they may lie apart.
        again: Without the change once more; empty: it was not run twice.
        steps: Of each training, told with the answer.
    """
    apart = difference_ratio(before, after)
    own = difference_ratio(before, again) if again else None
    limit = allowed.ratio
    if own is not None and math.isfinite(own):
        limit = max(limit, NOISE_FACTOR * own)
    return Agreement(
        agrees=apart <= limit,
        difference_ratio=apart,
        tolerance_ratio=limit,
        why=allowed.why,
        unchanged_ratio=own,
        steps=steps,
        values=min(len(before), len(after)),
    )


def difference_ratio(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the largest difference of two losses of the same epoch, over the larger of them.

    Infinite where there is none to compare, or one of them is no number.
    """
    if not one or len(one) != len(other) or not all(map(math.isfinite, (*one, *other))):
        return math.inf
    scales = [max(abs(a), abs(b)) for a, b in zip(one, other, strict=True)]
    return max(
        abs(a - b) / scale if scale else 0.0 for a, b, scale in zip(one, other, scales, strict=True)
    )


def _of(name: str) -> Tolerance:
    rows = _rows(spoken())
    group = f"{name.partition('.')[0]}.*"
    return rows.get(name) or rows.get(group) or rows["*"]


@cache
def _rows(language: Language) -> dict[str, Tolerance]:
    columns = ("setting", "tolerance_ratio", "why", "why_zh", "source")
    why = "why_zh" if language == "zh" else "why"
    return {
        row["setting"]: Tolerance(ratio=float(row["tolerance_ratio"]), why=row[why])
        for row in read_rows(FILE, columns)
    }
