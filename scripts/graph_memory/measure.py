"""Measures the cases of truth/own/graph_memory_cases.csv that graph_memory.csv has no row of."""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graph_memory.events import ALLOCATOR
from tfdyno.core.base.codec import write_atomic

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parents[2]
CASES = ROOT / "truth" / "own" / "graph_memory_cases.csv"
MEASURED = ROOT / "truth" / "own" / "graph_memory.csv"
KEY = ("model", "mode", "policy", "batch")
COLUMNS = (
    *KEY, "part", "resident_bytes", "tensor_peak_bytes", "requested_peak_bytes",
    "rounded_peak_bytes", "in_use_peak_bytes", "footprint_bytes", "allocator", "tensorflow",
    "keras", "source",
)  # fmt: skip
SOURCE = (
    "own run: scripts/graph_memory_truth measure, CPU of 2 cores, oneDNN off, median of 3 steps"
)
TIME_LIMIT_S = 290


def rows(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file; none if it does not exist."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def run(module: str, case: dict[str, str], *more: str) -> dict[str, Any]:
    """Run a module of this folder on a case in a process of its own: its last line, as JSON.

    Raises:
        SystemExit: It failed; its last words are told.
    """
    done = subprocess.run(
        [sys.executable, "-m", f"graph_memory.{module}", *(case[name] for name in KEY), *more],
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT_S,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "scripts")},
    )
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise SystemExit(f"{module} of {case['model']} failed: {last[0]}")
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def measure(case: dict[str, str], folder: Path) -> dict[str, str]:
    """Measure a case; the profile stays in ``folder``."""
    told = run("child", case, str(folder))
    return {
        **case,
        **{k: str(v) for k, v in told.items()},
        "allocator": ALLOCATOR,
        "source": SOURCE,
    }


def main(arguments: list[str]) -> None:
    """Measure what is missing, one case after the other; each row is written at once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--again", action="store_true", help="measure every case anew")
    parser.add_argument("--only", default="", help="only models whose name has this in it")
    parser.add_argument("--profiles", type=Path, help="keep the profiles here")
    chosen = parser.parse_args(arguments)
    order = [tuple(case[name] for name in KEY) for case in rows(CASES)]
    known = {tuple(row[name] for name in KEY): row for row in rows(MEASURED)}
    for case in rows(CASES):
        key = tuple(case[name] for name in KEY)
        if chosen.only not in case["model"] or (key in known and not chosen.again):
            continue
        with tempfile.TemporaryDirectory() as temporary:
            folder = (chosen.profiles or Path(temporary)) / "-".join(key)
            known[key] = measure(case, folder)
        print(*key, f"{int(known[key]['tensor_peak_bytes']) / 1e6:.1f} MB", flush=True)
        write(MEASURED, COLUMNS, [known[each] for each in order if each in known])


def write(path: Path, columns: Sequence[str], found: list[dict[str, str]]) -> None:
    """Write rows as a CSV file, all or nothing."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(found)
    write_atomic(path, text.getvalue().encode())


if __name__ == "__main__":
    main(sys.argv[1:])
