"""What the card, or the CPUs, did all day: once a second, into one CSV."""

from __future__ import annotations

import contextlib
import csv
import shutil
import subprocess
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.base.untyped import Value

PERIOD_S = 1.0
COLUMNS = ("at_s", "load_percent", "memory_mib", "power_w", "sm_mhz", "celsius")
QUERY = ("utilization.gpu", "memory.used", "power.draw", "clocks.sm", "temperature.gpu")
ANSWER_S = 10.0
KIB_A_MIB = 1024


@contextlib.contextmanager
def watched(file: Path, *, began_s: float, uuid: str | None) -> Iterator[str]:
    """Add a line a second to a CSV while the block runs; gives why nothing is watched, or nothing.

    Args:
        file: The CSV; its head is written where it is new.
        began_s: When the sitting began, on the monotonic clock.
        uuid: Of the card; None: the CPUs are watched.
    """
    ask = _cpus() if uuid is None else _card(uuid)
    if ask is None:
        yield "nvidia-smi is not installed: the card was not watched"
        return
    earlier = read(file)
    began_s -= earlier[-1]["at_s"] if earlier else 0.0  # a later sitting is drawn behind
    over = threading.Event()
    thread = threading.Thread(target=_write, args=(file, ask, began_s, over), daemon=True)
    thread.start()
    try:
        yield ""
    finally:
        over.set()
        thread.join(ANSWER_S)


def read(file: Path) -> list[dict[str, float]]:
    """The lines of the CSV, those that were cut short left out."""
    if not file.exists():
        return []
    with file.open(newline="", encoding="utf-8") as text:
        rows = []
        for row in csv.DictReader(text):
            with contextlib.suppress(ValueError, TypeError):
                rows.append({name: float(row[name]) for name in COLUMNS if row[name] != ""})
    return [row for row in rows if "at_s" in row]


def _write(file: Path, ask: Value, began_s: float, over: threading.Event) -> None:
    is_new = not file.exists()
    with file.open("a", newline="", encoding="utf-8") as text:
        writer = csv.writer(text)
        if is_new:
            writer.writerow(COLUMNS)
        while not over.wait(PERIOD_S):
            with contextlib.suppress(OSError, ValueError, subprocess.SubprocessError):
                writer.writerow([f"{time.monotonic() - began_s:.1f}", *next(ask)])
                text.flush()


def _card(uuid: str) -> Iterator[list[str]] | None:
    """Answers of ``nvidia-smi``, which every driver brings; what a card does not tell is empty."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    command = [program, "-i", uuid, f"--query-gpu={','.join(QUERY)}",
               "--format=csv,noheader,nounits"]  # fmt: skip
    return _answers(command)


def _answers(command: list[str]) -> Iterator[list[str]]:
    while True:
        cells = [""] * len(QUERY)
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=ANSWER_S, check=False
            )
            cells = [cell.strip() for cell in done.stdout.strip().split(",")]
        yield [cell if cell.replace(".", "", 1).isdigit() else "" for cell in cells]


def _cpus() -> Iterator[list[str]]:
    """Load of all CPUs and memory in use, by ``/proc``."""
    before = _times()
    while True:
        now = _times()
        total = max(now[1] - before[1], 1e-9)
        load = 100.0 * (now[0] - before[0]) / total
        before = now
        yield [f"{load:.0f}", f"{_used_mib():.0f}", "", "", ""]


def _times() -> tuple[float, float]:
    """Busy time and all time of the machine's CPUs, in ticks."""
    numbers = [float(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    idle = numbers[3] + numbers[4]
    return sum(numbers) - idle, sum(numbers)


def _used_mib() -> float:
    lines = Path("/proc/meminfo").read_text().splitlines()
    told = {line.split(":")[0]: float(line.split()[1]) for line in lines}
    return (told["MemTotal"] - told["MemAvailable"]) / KIB_A_MIB
