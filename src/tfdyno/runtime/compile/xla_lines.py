"""What XLA's compiler says of its own rematerialisation, read from the lines that it writes.

Rematerialisation is XLA's way to hold a step in less memory: values are computed again instead of
kept. It starts by itself where the step passes the limit that XLA sets itself, about three quarters
of the card, and it is silent but for a warning where that was not enough. At the verbosity of
``VERBOSE`` it says in every case how much was held before and after, in bytes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.core.base.units import parse_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable

VERBOSE = "hlo_rematerialization=1"
"""The value for ``TF_CPP_VMODULE``, with ``TF_CPP_MIN_LOG_LEVEL`` 0."""
_NOTE = re.compile(r"^I\d{4} ")
_LIMIT = re.compile(r"HloRematerialization\(\) with memory limit of ([\d.]+[KMGT]?i?B)")
_COUNT = re.compile(r"Rematerialized (\d+) instructions in module ")
_PEAK = re.compile(r"Peak memory usage of module now \S+ \((\d+) bytes\), was \S+ \((\d+) bytes\)")
_UNMET = re.compile(
    r"Can't reduce memory use below \S+ \((\d+) bytes\) by rematerialization; "
    r"only reduced to \S+ \((\d+) bytes\), down from \S+ \((\d+) bytes\)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PassRun:
    """One run of the pass, in XLA's own account of bytes."""

    instruction_count: int
    """Computed again; 0 where only the warning was seen and does not say."""
    before_bytes: int
    after_bytes: int
    limit_bytes: int
    """What XLA aimed at; rounded to 0.01 of its unit where it was met."""
    limit_met: bool


def told(lines: Iterable[str]) -> PassRun | None:
    """Return the pass's last run that changed the program or failed; None where there was none.

    The warning alone is enough: it is what XLA writes at any verbosity.
    """
    limit = count = 0
    found = None
    for line in lines:
        if match := _LIMIT.search(line):
            limit, count = round(parse_bytes(match[1])), 0
        elif match := _COUNT.search(line):
            count = int(match[1])
        elif (match := _UNMET.search(line)) or (count and (match := _PEAK.search(line))):
            *unmet, after, before = map(int, match.groups())
            limit = unmet[0] if unmet else limit
            found = PassRun(
                instruction_count=count,
                before_bytes=before,
                after_bytes=after,
                limit_bytes=limit,
                limit_met=not unmet,
            )
    return found


def is_note(line: str) -> bool:
    """Return whether a line only informs: at that verbosity there are hundreds, not asked for."""
    return bool(_NOTE.match(line))
