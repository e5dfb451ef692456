"""What the long runs of ``scripts/`` share: rows that outlast a kill, and a document of them."""

from __future__ import annotations

import contextlib
import json
import time
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from tfdyno.core.measure.software import Software
from tfdyno.probe.machine.fingerprint import environment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Row = dict[str, Any]


def kept_rows(path: Path) -> Iterator[Row]:
    """Rows of a file of JSON lines, where there is one; a line that a kill cut short is none."""
    for line in path.read_text().splitlines() if path.exists() else ():
        with contextlib.suppress(ValueError):
            yield json.loads(line)


def about() -> dict[str, Any]:
    """The day, the machine and the versions."""
    tensorflow = _version("tensorflow") or _version("tensorflow-cpu")
    software = Software(device="cpu", tensorflow=tensorflow, keras=_version("keras"))
    place = environment(software)
    names = ("cpu", "cpu_count", "system", "tensorflow", "keras", "tfdyno")
    return {"date": time.strftime("%Y-%m-%d"), **{name: getattr(place, name) for name in names}}


def json_text(document: Row) -> str:
    """``about`` and ``rows``, one line for each row, so that a change shows which."""
    rows = ",\n".join(json.dumps(row, ensure_ascii=False) for row in document["rows"])
    return f'{{"about": {json.dumps(document["about"])},\n"rows": [\n{rows}\n]}}\n'


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
