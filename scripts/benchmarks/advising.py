"""``tfdyno advise`` from nothing and again, beside a former version of itself in turns."""

from __future__ import annotations

import io
import json
import os
import re
import statistics
import subprocess
import tarfile
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.clock import Cost, Failed, run, tfdyno
from benchmarks.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).parents[2]
PHOTOS = ROOT / "tests" / "data" / "scripts" / "photos.py"
RESNET = (
    *("keras:ResNet50", "--batch-size", "64", "--precision", "mixed_float16"),
    *("--epochs", "90", "--samples", "1281167"),
)
AGAIN_S = 1.0
"""The most that an answer may take whose trace is kept; from the issue, as those of a case."""
ROUNDS = 3
_STAGE = re.compile(r"^ *([\d.]+) s  (\w+)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A workload and its targets."""

    title: str
    words: tuple[str, ...]
    first_s: float
    whole_s: float
    is_script: bool = False
    """Then its own start does not count, and a comment of it is changed."""


CASES = (
    Case(title="ResNet-50", words=RESNET, first_s=10.0, whole_s=30.0),
    Case(title="script", words=("photos.py",), first_s=15.0, whole_s=60.0, is_script=True),
)


@dataclass(slots=True, kw_only=True)
class Times:
    """Seconds of one version, round by round."""

    first_s: list[float] = field(default_factory=list)
    whole_s: list[float] = field(default_factory=list)
    again_s: list[float] = field(default_factory=list)
    comment_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    start_s: list[float] = field(default_factory=list)
    """What the script itself took until its ``fit``."""
    stages: str = ""


def advice(quick: bool, *, former: str = "") -> Iterator[Figure]:
    """Measure each case in every round: this version, then the former one.

    Args:
        quick: One round of the first case.
        former: The commit to compare with; empty: none.
    """
    with _sources(former) as sources:
        for case in CASES[: 1 if quick else None]:
            times = [Times() for _ in sources]
            try:
                for _ in range(1 if quick else ROUNDS):
                    for made, source in zip(times, sources, strict=True):
                        _round(case, source, made)
            except (Failed, OSError) as reason:
                name = f"{case.title}: first answer"
                yield Figure(group="advise", name=name, unit="s", value=None, note=str(reason))
                continue
            yield from _figures(case, *times)


def _round(case: Case, source: str, made: Times) -> None:
    """Ask with an empty cache, again, and after a changed comment."""
    with tempfile.TemporaryDirectory(prefix="tfdyno-bench-") as name:
        folder = Path(name)
        script = folder / PHOTOS.name
        script.write_bytes(PHOTOS.read_bytes())
        env = {
            "TFDYNO_CACHE": str(folder / "cache"),
            "PYTHONPATH": os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH")])),
            "PYTHONDONTWRITEBYTECODE": "",
        }
        cold = _advise(case, env, folder, "-v")
        made.first_s.append(cold.first_s)
        made.whole_s.append(cold.wall_s)
        made.cpu_s.append(cold.cpu_s)
        made.stages = ", ".join(f"{stage} {s} s" for s, stage in _STAGE.findall(cold.stderr))
        made.again_s.append(_advise(case, env, folder).wall_s)
        if case.is_script:
            told = json.loads(_advise(case, env, folder, "--json", "-q").stdout)
            made.start_s.append(told["trace"]["script_seconds_s"])
            script.write_bytes(b"# Another comment.\n" + PHOTOS.read_bytes())
            made.comment_s.append(_advise(case, env, folder).wall_s)


def _advise(case: Case, env: Mapping[str, str], folder: Path, *more: str) -> Cost:
    return run(tfdyno("advise", *case.words, *more), env, folder=folder)


def _figures(case: Case, own: Times, former: Times | None = None) -> Iterator[Figure]:
    def figure(
        what: str, of: str, *, target: float | None = None, note: str = "", less: str = ""
    ) -> Figure:
        values = [_median(each, of, less) if each else None for each in (own, former)]
        return Figure(
            group="advise", name=f"{case.title}: {what}", unit="s", value=values[0],
            former=values[1], target=target, runs=len(own.first_s), note=note,
        )  # fmt: skip

    cpu = f"{statistics.median(own.cpu_s):.1f} s of CPU"
    if former:
        cpu += f", {statistics.median(former.cpu_s):.1f} s before"
    stages = f"begun after the start: {own.stages}"
    if case.is_script:
        start = f"its own start of {statistics.median(own.start_s):.1f} s not counted; "
        yield figure(
            "first answer", "first_s", target=case.first_s, note=start + stages, less="start_s"
        )
    else:
        yield figure("first answer", "first_s", target=case.first_s, note=stages)
    yield figure("whole, nothing kept", "whole_s", target=case.whole_s, note=cpu)
    yield figure("again", "again_s", target=AGAIN_S)
    if case.is_script:
        yield figure("after a changed comment", "comment_s")


def _median(times: Times, of: str, less: str) -> float:
    values: list[float] = getattr(times, of)
    taken: list[float] = getattr(times, less) if less else [0.0] * len(values)
    return statistics.median(a - b for a, b in zip(values, taken, strict=True))


@contextmanager
def _sources(former: str) -> Iterator[list[str]]:
    """Give the folder of this version's modules, and of the former one's."""
    own = str(ROOT / "src")
    if not former:
        yield [own]
        return
    command = ["git", "-C", str(ROOT), "archive", former, "src"]
    packed = subprocess.run(command, check=True, capture_output=True).stdout
    with tempfile.TemporaryDirectory(prefix="tfdyno-former-") as folder:
        with tarfile.open(fileobj=io.BytesIO(packed)) as files:
            files.extractall(folder, filter="data")
        yield [own, str(Path(folder) / "src")]
