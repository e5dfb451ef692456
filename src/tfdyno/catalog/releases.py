"""TensorFlow releases and CUDA toolkits: what they need, read from the shipped tables."""

from __future__ import annotations

import datetime
import functools
import re

from tfdyno.catalog.tables import DATA, Row, read_table
from tfdyno.core.choose.software import Behind, BehindBy, CudaDriver, Release

_COMPAT_COLUMNS = (
    "tf_version", "python_versions", "cuda", "cudnn", "min_driver_linux", "min_driver_windows",
    "gpu_wheel", "native_windows_gpu", "keras_version", "numpy_limit",
    "compute_capabilities_built", "and_cuda_cudnn_pin", "and_cuda_nccl_pin", "first_wheel",
    "last_wheel", "notes", "source", "date",
)  # fmt: skip
_DRIVER_COLUMNS = (
    "cuda_version", "toolkit_driver_linux_x86_64", "toolkit_driver_windows",
    "minor_compat_min_linux", "minor_compat_min_windows", "source",
)  # fmt: skip
AGED_DAYS = 180
"""Releases came 4 to 7 months apart from 2.16 (2024-03) to 2.22.0rc0 (2026-09)."""
_VERSION = re.compile(r"\d+(?:\.\d+)+|\d+")


def all_releases() -> tuple[Release, ...]:
    """Return every TensorFlow release of the table that is out, oldest first.

    Raises:
        ToolError: The shipped table is corrupt.
    """
    return tuple(one for one in known_releases() if not one.is_candidate)


def candidate() -> Release | None:
    """Return the release candidate after them; None where the table has none."""
    return next((one for one in known_releases() if one.is_candidate), None)


def release_of(tensorflow: str) -> Release | None:
    """Return the release of a version such as ``2.21.0``; None where it is unknown or not told."""
    numbers = re.match(r"(\d+)\.(\d+)", tensorflow)
    minor = f"{numbers[1]}.{numbers[2]}" if numbers else ""
    return next((one for one in known_releases() if one.tensorflow == minor), None)


def behind(tensorflow: str, today: datetime.date) -> Behind | None:
    """Return why these tables may not hold for a release; None: they are as new as it.

    Args:
        tensorflow: Version, ``2.21.0``; empty: none in particular.
        today: The day that their age is counted to.
    """
    last = known_releases()[-1]
    numbers = re.match(r"(\d+)\.(\d+)", tensorflow)
    found = (int(numbers[1]), int(numbers[2])) if numbers else (0, 0)
    newest, release = last.tensorflow.split("."), release_of(tensorflow)
    date = max(one.date for one in known_releases())
    age_days = (today - datetime.date.fromisoformat(date)).days
    if found > (int(newest[0]), int(newest[1])):
        why: BehindBy = "release"
    elif release and release.is_candidate and "rc" not in tensorflow:
        why = "candidate"
    elif age_days > AGED_DAYS:
        why = "age"
    else:
        return None
    return Behind(why=why, date=date, last=last.last_wheel, age_days=age_days)


@functools.lru_cache(maxsize=1)
def cuda_drivers() -> tuple[CudaDriver, ...]:
    """Return the first release of every CUDA toolkit, newest first.

    Raises:
        ToolError: The shipped table is corrupt.
    """
    path = DATA / "cuda_driver.csv"
    rows = read_table(path, _DRIVER_COLUMNS, key=("cuda_version",), ordered=False)
    by_cuda = {one.cuda: one for one in map(_cuda_driver, rows)}
    return tuple(by_cuda.values())


@functools.lru_cache(maxsize=1)
def known_releases() -> tuple[Release, ...]:
    """Return every release of the table, oldest first, the candidate too.

    Raises:
        ToolError: The shipped table is corrupt.
    """
    rows = read_table(DATA / "compat.csv", _COMPAT_COLUMNS, key=("tf_version",), ordered=False)
    return tuple(_release(row) for row in rows)


def _release(row: Row) -> Release:
    return Release(
        tensorflow=row.text("tf_version"),
        python_versions=tuple(row.text("python_versions").partition("(")[0].split()),
        cuda=row.text("cuda"),
        cudnn=row.text("cudnn"),
        min_driver_linux=_first(row.text("min_driver_linux")),
        min_driver_windows=_first(row.text("min_driver_windows")),
        requirement=row.text("gpu_wheel").partition(" ")[0],
        has_native_windows_gpu=row.yes("native_windows_gpu"),
        keras=row.text("keras_version"),
        numpy_limit=row.text("numpy_limit"),
        compute_capabilities=tuple(
            re.findall(r"(?:sm|compute)_\d+a?", row.text("compute_capabilities_built"))
        ),
        first_wheel=row.text("first_wheel"),
        last_wheel=row.text("last_wheel"),
        source=row.text("source"),
        date=row.text("date"),
    )


def _cuda_driver(row: Row) -> CudaDriver:
    """A later update of a toolkit comes first in the table; the dictionary keeps the last, GA."""
    linux, windows = row.text("toolkit_driver_linux_x86_64"), row.text("toolkit_driver_windows")
    oldest = row.text("minor_compat_min_linux"), row.text("minor_compat_min_windows")
    return CudaDriver(
        cuda=row.text("cuda_version").split()[0],
        linux=_first(linux),
        windows=_first(windows),
        oldest_linux=_first(oldest[0]) if oldest[0][:1].isdigit() else _first(linux),
        oldest_windows=_first(oldest[1]) if oldest[1][:1].isdigit() else _first(windows),
        source=row.text("source"),
    )


def _first(text: str) -> str:
    found = _VERSION.match(text)
    return found[0] if found else ""
