"""What it costs to explain a log: megabytes a second and peak memory."""

from __future__ import annotations

import json
import random
import tempfile
from itertools import count, cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.clock import Failed, run, tfdyno
from benchmarks.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

MOST_MB = 150.0
"""Peak memory that is accepted, however long the log is."""
CASES = sorted((Path(__file__).parents[2] / "tests" / "data").glob("doctor*_cases.jsonl"))
EXPLAINED = frozenset({0, 1, 4})
"""Exit codes of a log without errors, with a known one, with an unknown one."""
_VOWELS, _CONSONANTS = "aeiou", "bcdfghjklmnprstvz"


def explained(quick: bool) -> Iterator[Figure]:
    """Logs of few kinds of lines, of hundreds that the rules know, and of none like another."""
    kinds: tuple[tuple[str, Callable[[], Iterable[str]], int, float | None], ...] = (
        ("training log, progress bars", _bars, 256, 30.0),
        ("a line a step", _steps, 64, 30.0),
        ("recorded logs over and over", _recorded, 64, None),
        ("JSON of texts, no line like another", _texts, 32, None),
    )
    for name, lines, size_mb, least in kinds:
        yield from _figures(name, lines, size_mb // 8 if quick else size_mb, least)


def _figures(
    name: str, lines: Callable[[], Iterable[str]], size_mb: int, least: float | None
) -> Iterator[Figure]:
    group = "explain"
    with tempfile.TemporaryDirectory(prefix="tfdyno-bench-") as folder:
        path = Path(folder) / "train.log"
        _write(path, lines(), size_mb)
        try:
            cost = run(tfdyno("doctor", "--explain", str(path), "--json"), {}, good=EXPLAINED)
        except Failed as reason:
            yield Figure(group=group, name=name, unit="MB/s", value=None, note=str(reason))
            return
    speed, peak = size_mb / cost.cpu_s, cost.peak_bytes / 1e6
    note = f"{size_mb} MB"
    yield Figure(group=group, name=name, unit="MB/s", value=speed, target=least, note=note)
    peak_name = f"{name}: peak memory"
    yield Figure(group=group, name=peak_name, unit="MB", value=peak, target=MOST_MB, note=note)


def _write(path: Path, lines: Iterable[str], size_mb: int) -> None:
    left = size_mb * 1_000_000
    with path.open("w", encoding="ascii", newline="") as file:
        for line in lines:
            left -= file.write(line[:left])
            if not left:
                return


def _bars() -> Iterator[str]:
    """Twelve thousand steps over and over, as Keras draws them."""
    lines = [
        f"{step % 400}/400 [{'=' * (step % 30)}>{'.' * (30 - step % 30)}] - ETA: {step % 60}s - "
        f"loss: 0.{step * 7919 % 10_000:04d} - accuracy: 0.{step * 104_729 % 10_000:04d}\r"
        for step in range(12_000)
    ]
    return cycle(lines)


def _steps() -> Iterator[str]:
    """Lines that hold what rules look for, and are none of it."""
    for step in count():
        loss = step * 7919 % 10_000 / 10_000
        yield f"{_time(step)} step {step} loss: {loss:.4f}, gpu memory {step % 80} GB\n"


def _recorded() -> Iterator[str]:
    """Every line of the recorded cases, each under a time stamp."""
    cases = [
        json.loads(line)["log"] for file in CASES for line in file.read_text("utf-8").splitlines()
    ]
    lines = [line for log in cases for line in log.encode("ascii", "ignore").decode().splitlines()]
    for number, line in enumerate(cycle(lines)):
        yield f"{_time(number)} {line}\n"


def _time(second: int) -> str:
    return f"2026-11-27 {second // 3600 % 24:02d}:{second // 60 % 60:02d}:{second % 60:02d}"


def _texts() -> Iterator[str]:
    """Lines of random words of a vocabulary as large as that of a language."""
    chance = random.Random(1)
    words = ["".join(islice(_letters(chance), chance.randint(3, 9))) for _ in range(20_000)]
    while True:
        text = " ".join(chance.choices(words, k=25))
        yield json.dumps({"id": chance.randrange(10**9), "text": text}) + "\n"


def _letters(chance: random.Random) -> Iterator[str]:
    while True:
        yield chance.choice(_CONSONANTS)
        yield chance.choice(_VOWELS)
