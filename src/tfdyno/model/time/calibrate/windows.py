"""The kernels of a sweep from the windows that its child wrote down, line by line."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.core.choose.card_file import Pace, SweptKernel
from tfdyno.core.messages.calibrate import LINES, Chain, Line, PaceTold, Release, Window
from tfdyno.core.messages.wire import decode
from tfdyno.model.measure.statistics import quantile

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tfdyno.core.messages.calibrate import Execution


QUIET = 0.25
"""Quantile of the windows that counts: a disturbance only ever adds to one. Where a quarter is
less than one window, the shortest counts: of two on an H200 one took nine times the other."""
SPREAD = (0.1, 0.4)
"""Quantiles whose distance is how far undisturbed windows lie from each other."""
LEAST_USED, MANY = 0.1, 12
"""The same of the time of processors, where there are fewer windows than ``MANY``: others lengthen
it by what they take of the caches, and few windows are without that."""
FREE = 0.9
"""Quantile of the processors in use at a time: so many an operation uses where it gets them."""
HIDING = 1.5
"""So many times the empty call a chain has to take on a GPU: shorter ones wait for the host."""
FEWEST = 2
"""Windows of a kernel: of one nobody can say whether it was disturbed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What the lines of a sweep say."""

    kernels: tuple[SweptKernel, ...]
    pace: Pace
    version: str = ""
    """The version of the framework."""


def read_windows(lines: Iterable[str]) -> Read:
    """Turn windows into kernels; a line that was cut off, as by the end of the child, is nothing.

    ::

        kernel = (undisturbed call - undisturbed empty call) / kernels of a call

    On a GPU the undisturbed call is a low quantile of the windows, and nothing is taken off: the
    host makes the next call while the card works, so a chain that is longer than the call hides it.
    On CPUs, which others use too, a window tells the time of all processors that it used, which
    others hardly add to. The undisturbed call is a low quantile of that over the processors that it
    had at a time at best.
    """
    about: dict[str, Chain] = {}
    windows: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    paces: dict[str, float] = {}
    version = ""
    for line in lines:
        told = _line(line)
        if isinstance(told, Release):
            version = told.version
        elif isinstance(told, PaceTold):
            paces[told.pace] = told.value
        elif isinstance(told, Window):
            windows[told.name].append((told.call_s, told.used_s))
        elif isinstance(told, Chain):
            about[told.name] = told
    quiet = {name: undisturbed(held) for name, held in windows.items() if len(held) >= FEWEST}
    calls = {one.execution: quiet[name][0] for name, one in about.items()
             if not one.count and name in quiet}  # fmt: skip
    found = (
        _kernel(one, len(windows[name]), about, quiet, calls)
        for name, one in about.items()
        if one.count and name in quiet
    )
    return Read(
        kernels=tuple(one for one in found if one is not None),
        pace=Pace(**{"call_s": min(calls.values(), default=0.0), **paces}),
        version=version,
    )


def undisturbed(windows: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return seconds of a call that nothing disturbed, and how far such calls differ, in log(time).

    Args:
        windows: Seconds of a call, and of all processors for it; 0: that was not told.
    """
    taken = [taken_s for taken_s, _ in windows]
    used = [used_s for _, used_s in windows]
    if not all(used):
        share = QUIET if QUIET * len(taken) >= 1.0 else 0.0
        return quantile(taken, share), _apart(taken, *SPREAD)
    free = quantile([used_s / taken_s for taken_s, used_s in windows], FREE)
    share = QUIET if len(used) >= MANY else LEAST_USED
    return quantile(used, share) / max(free, 1.0), _apart(used, *SPREAD)


def _apart(values: Sequence[float], low: float, high: float) -> float:
    return math.log(quantile(values, high) / max(quantile(values, low), 1e-12)) / 2.0


def _line(text: str) -> Line | None:
    try:
        raw = json.loads(text)
        return decode(raw, next(kind for field, kind in LINES.items() if field in raw))
    except (ValueError, TypeError, StopIteration):
        return None


def _kernel(
    one: Chain, count: int, about: Mapping[str, Chain],
    quiet: Mapping[str, tuple[float, float]], calls: Mapping[Execution, float],
) -> SweptKernel | None:  # fmt: skip
    """Return None where the call drowns it, or what has to be taken off was not measured."""
    call_s = calls.get(one.execution)
    if call_s is None or one.kernel is None:
        return None
    whole_s, spread = quiet[one.name]
    hidden = one.overlaps
    if hidden and whole_s < HIDING * call_s:
        return None
    call_s = 0.0 if hidden else call_s
    taken_s = (whole_s - call_s) / one.count
    if less := one.less:
        if less not in quiet or less not in about:
            return None
        taken_s -= (quiet[less][0] - call_s) / about[less].count
    if taken_s <= 0.0:
        return None
    # The call is in every window: what it varies by, the kernel seems to vary by the more.
    louder = min(10.0, whole_s / max(whole_s - call_s, 1e-12))
    return SweptKernel(
        kernel=one.kernel, execution=one.execution, tf32=one.tf32, kernel_s=taken_s,
        spread_ratio=spread * louder, windows=count,
    )  # fmt: skip
