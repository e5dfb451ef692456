"""A machine of the user's own, from a file that says how long its batches take."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import UsageError
from tfdyno.jobs.choose.serving_size import Measured

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.base.untyped import Value

KEY = "latency_s_by_batch"
MOST_ROWS = 65_536


def read_measured(path: Path, usd_per_h: float = 0.0) -> Measured:
    """Read ``{"name": "our CPU", "latency_s_by_batch": {"1": 0.007, "8": 0.02}}``.

    What ``tfdyno serve`` tells of its batching is such a file too.

    Raises:
        UsageError: It is no such file, or a time in it is not above 0.
    """
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read", why=error.strerror or str(error)) from None
    except ValueError:
        raise UsageError(f"{path} is no JSON", remedy=_REMEDY) from None
    table = _table(raw)
    if table is None:
        raise UsageError(f"{path} has no latency by batch", remedy=_REMEDY)
    name = raw.get("name") or path.stem
    if not isinstance(name, str):
        raise UsageError(f"the name in {path} is no text", remedy=_REMEDY)
    return Measured(
        name=name,
        latency_s=dict(sorted(_entry(path, rows, time) for rows, time in table.items())),
        usd_per_h=usd_per_h,
    )


_REMEDY = f'write {{"name": "our CPU", "{KEY}": {{"1": 0.007, "8": 0.02}}}}, in seconds'


def _table(raw: Value) -> dict[str, Any] | None:
    if not isinstance(raw, dict):
        return None
    for holder in (raw, raw.get("batching")):
        if isinstance(holder, dict) and isinstance(holder.get(KEY), dict) and holder[KEY]:
            found: dict[str, Any] = holder[KEY]
            return found
    return None


def _entry(path: Path, rows: str, time: Value) -> tuple[int, float]:
    number = isinstance(time, int | float) and not isinstance(time, bool)
    size = int(rows) if rows.isascii() and rows.isdecimal() and len(rows) < 9 else 0
    if not 1 <= size <= MOST_ROWS or not number or not 0.0 < time < float("inf"):
        raise UsageError(f"{path}: a batch of {rows} in {time} s is not possible", remedy=_REMEDY)
    return size, float(time)
