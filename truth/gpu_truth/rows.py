"""The form of a measured step as one line of JSON, and what is wrong with one that has another."""

from __future__ import annotations

import json
import math
import os
import re
import statistics
from typing import TYPE_CHECKING, Any, cast

from gpu_truth.plan import EXECUTIONS, FRAMEWORKS, MODES, PRECISIONS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SCHEMA = 1
DEVICES = ("gpu", "cpu")

TEXT, FLAG = "a text", "true or false"
COUNT, NUMBER = "a whole number, 0 or more", "a finite number"
NUMBERS, TABLE = "a list of numbers above 0", "a table of counts"
ALWAYS = {
    "schema": COUNT, "date": TEXT, "source": TEXT, "device": TEXT, "gpu": TEXT,
    "model": TEXT, "precision": TEXT, "batch": COUNT, "execution": TEXT, "mode": TEXT,
    "backend": TEXT, "framework_version": TEXT, "keras_version": TEXT,
    "params_m": NUMBER, "step_ms": NUMBER, "window_ms": NUMBERS, "steps": COUNT,
    "build_s": NUMBER, "first_step_s": NUMBER, "side_by_side": COUNT, "cores": COUNT,
}  # fmt: skip
OF_A_CARD = {"driver": TEXT, "peak_bytes": COUNT, "current_bytes": COUNT}
MAYBE = {
    "python_version": TEXT, "numpy_version": TEXT, "jaxlib_version": TEXT, "xla_flags": TEXT,
    "cuda": TEXT, "cudnn": TEXT, "ptxas": TEXT, "compute_capability": TEXT, "host_cpu": TEXT,
    "memory_total_bytes": COUNT, "power_limit_w": NUMBER, "power_w": NUMBER, "sm_mhz": NUMBER,
    "memory_mhz": NUMBER, "used_bytes": COUNT, "process_bytes": COUNT, "shared": FLAG,
    "loss_3": NUMBER, "loss_end": NUMBER, "xla_memory": TABLE,
}  # fmt: skip
CHOICES = {
    "precision": PRECISIONS,
    "execution": EXECUTIONS,
    "mode": MODES,
    "backend": FRAMEWORKS,
    "device": DEVICES,
}
DATE = re.compile(r"20\d\d-[01]\d-[0-3]\d(T[0-2]\d:[0-5]\d:[0-5]\dZ)?")


class RowError(ValueError):
    """A row is damaged or is none of a measured step; the text says what is wrong with it."""


def check_row(row: Mapping[str, object], *, device: str = "gpu") -> None:
    """Say what is wrong with a row, if anything is.

    Args:
        row: One line of a file of measured steps.
        device: Where it has to be measured; a step on a CPU is no truth about a card.

    Raises:
        RowError: The row is damaged, or of another form, or of another device.
    """
    if row.get("schema") != SCHEMA:
        raise RowError(f"schema is {row.get('schema')!r}, not {SCHEMA}: no row of gpu_truth")
    fields = ALWAYS | OF_A_CARD | MAYBE
    required = ALWAYS | (OF_A_CARD if row.get("device") != "cpu" else {})
    missing = [name for name in required if name not in row]
    if missing:
        raise RowError(f"{', '.join(missing)} missing")
    foreign = [name for name in row if name not in fields]
    if foreign:
        raise RowError(f"unknown field {', '.join(foreign)}")
    for name, value in row.items():
        _check_kind(name, value, fields[name])
    for name, known in CHOICES.items():
        if row[name] not in known:
            raise RowError(f"{name} is {row[name]!r}, not one of {', '.join(known)}")
    if row["device"] != device:
        raise RowError(f"measured on a {row['device']}, not on a {device}")
    if not DATE.fullmatch(str(row["date"])):
        raise RowError(f"date is {row['date']!r}, not like 2026-11-26 or 2026-11-26T14:05:00Z")
    _check_sense(row)


def _check_kind(name: str, value: object, kind: str) -> None:
    if kind == TEXT:
        good = isinstance(value, str) and (value != "" or name == "xla_flags")
    elif kind == FLAG:
        good = isinstance(value, bool)
    elif kind == COUNT:
        good = _is_count(value)
    elif kind == NUMBER:
        good = _is_number(value)
    elif kind == NUMBERS:
        good = isinstance(value, list) and bool(value)
        good = good and all(_is_number(each) and each > 0 for each in cast("list[Any]", value))
    else:
        good = isinstance(value, dict) and all(_is_count(each) for each in value.values())
    if not good:
        raise RowError(f"{name} is {value!r}, not {kind}")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _check_sense(row: Mapping[str, Any]) -> None:
    for name in ("batch", "steps", "side_by_side", "cores"):
        if row[name] < 1:
            raise RowError(f"{name} is {row[name]}, not 1 or more")
    median_ms = statistics.median(row["window_ms"])
    if not math.isclose(row["step_ms"], median_ms, rel_tol=1e-3, abs_tol=1e-4):
        raise RowError(f"step_ms is {row['step_ms']}, but the median of window_ms {median_ms}")
    peak_bytes = row.get("peak_bytes", 0)
    if peak_bytes < row.get("current_bytes", 0):
        raise RowError("current_bytes is above peak_bytes")
    if peak_bytes > row.get("memory_total_bytes", math.inf):
        raise RowError("peak_bytes is above memory_total_bytes")


def read_rows(path: Path, *, device: str = "gpu") -> list[dict[str, Any]]:
    """All rows of a file; of one that is not there, none.

    Raises:
        RowError: A line is damaged; file and line are named.
    """
    rows = []
    for number, row in read_lines(path):
        try:
            check_row(row, device=device)
        except RowError as error:
            raise RowError(f"{path}:{number}: {error}") from error
        rows.append(row)
    return rows


def read_lines(path: Path) -> list[tuple[int, dict[str, Any]]]:
    """The tables of a file with one a line, with the numbers of their lines.

    Raises:
        RowError: A line is no table, or the last one is cut off.
    """
    if not path.exists():
        return []
    found: list[tuple[int, dict[str, Any]]] = []
    text = path.read_text(encoding="utf-8", errors="replace")
    for number, line in enumerate(text.splitlines(), 1):
        try:
            row = json.loads(line)
        except ValueError as error:
            raise RowError(f"{path}:{number}: no JSON ({error})") from error
        if not isinstance(row, dict):
            raise RowError(f"{path}:{number}: no table of fields")
        found.append((number, row))
    if text and not text.endswith("\n"):
        raise RowError(f"{path}:{len(found)}: the line has no end")
    return found


def append_row(path: Path, row: Mapping[str, object]) -> None:
    """Add one line in one piece, so that neither a kill nor a second writer can tear it."""
    line = json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n"
    place = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(place, line.encode())
        os.fsync(place)
    finally:
        os.close(place)


def identity(row: Mapping[str, object]) -> tuple[str, ...]:
    """What two measurements of the same have in common: step, card, versions, flags of XLA."""
    step = [str(row[n]) for n in ("model", "precision", "batch", "execution", "mode", "backend")]
    versions = [_version(row[name]) for name in ("framework_version", "keras_version")]
    return (*step, *versions, str(row["gpu"]), str(row.get("xla_flags", "")))


def _version(text: object) -> str:
    """A version without the builder's mark, however it is punctuated (2.22.0-dev1, 2.22.0.dev1)."""
    return re.sub(r"[^0-9a-z]+", ".", str(text).partition("+")[0])
