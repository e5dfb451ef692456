"""Train digits.py on two nodes of this machine in several ways, in turns; lines and seconds.

``--rounds N`` trains each N times (3), ``--write`` puts the table into README.md.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
TABLE = re.compile(r"(?<=<!-- compare\.py --write -->\n\n).*?\n(?=\n<!-- end -->)", re.S)
SAID = re.compile(r"5/5: loss ([\d.]+), val_loss ([\d.]+)")
HEAD = ("| way | lines written | seconds | loss on other digits |", "| --- | --: | --: | --: |")
NODES = 2


@dataclass(frozen=True)
class Way:
    """How the same network is trained on two nodes."""

    title: str
    script: str
    """Of which the lines are counted."""
    trained: Callable[[Path], float]
    """Trains in a folder; gives the last validation loss."""
    needs: str = ""
    """A package."""


def by_launch(engine: str) -> Callable[[Path], float]:
    """``tfdyno launch`` on an engine."""

    def trained(folder: Path) -> float:
        words = ["launch", str(HERE / "digits.py"), "--on", engine, "--nodes", str(NODES)]
        words += ["--set", "seed=1", "--output", "run", "--json", "--quiet"]
        answer = json.loads(said_by([sys.executable, "-m", "tfdyno", *words], folder))
        return float(answer["history"]["val_loss"][-1])

    return trained


def by_tf_config(folder: Path) -> float:
    """The same with TF_CONFIG and an own loop."""
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        ports = [str(each.getsockname()[1]) for each in (one, other)]
    return last_loss([sys.executable, str(HERE / "bare_tf_config.py"), "run", *ports], folder)


def by_ray(folder: Path) -> float:
    """The same with Ray Train and an own loop."""
    return last_loss([sys.executable, str(HERE / "bare_ray_train.py"), "run"], folder)


WAYS = (
    Way("`tfdyno launch --on local`", "digits.py", by_launch("local")),
    Way("bare `TF_CONFIG`", "bare_tf_config.py", by_tf_config),
    Way("`tfdyno launch --on ray`", "digits.py", by_launch("ray"), needs="ray"),
    Way("bare Ray Train", "bare_ray_train.py", by_ray, needs="ray"),
)


def said_by(words: list[str], folder: Path) -> str:
    """What a command prints; raises ``RuntimeError`` where it fails."""
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr[-2000:]}")
    return done.stdout


def last_loss(words: list[str], folder: Path) -> float:
    """The validation loss that a script prints at its end."""
    found = SAID.search(said_by(words, folder))
    if found is None:
        raise RuntimeError(f"{words[1]} did not come to its end")
    return float(found[2])


def lines_of(script: Path) -> int:
    """Lines of code that a user writes: without empty ones, comments and the first docstring."""
    text = re.sub(r'\A""".*?"""\n', "", script.read_text(), flags=re.S)
    lines = [line.strip() for line in text.splitlines()]
    return sum(bool(line) and not line.startswith("#") for line in lines)


def timed(ways: tuple[Way, ...], rounds: int) -> dict[str, list[tuple[float, float]]]:
    """Seconds from the command to its end and the last loss of each way, in turns."""
    found: dict[str, list[tuple[float, float]]] = {way.title: [] for way in ways}
    for number in range(rounds):
        for way in ways if number % 2 == 0 else reversed(ways):
            with tempfile.TemporaryDirectory() as folder:
                began_s = time.perf_counter()
                loss = way.trained(Path(folder))
            found[way.title].append((time.perf_counter() - began_s, loss))
            print(f"{way.title}: {found[way.title][-1][0]:.1f} s, val_loss {loss:.3f}", flush=True)
    return found


def row(way: Way, runs: list[tuple[float, float]]) -> str:
    """A line of the table."""
    seconds = [each for each, _ in runs]
    losses = [loss for _, loss in runs]
    return (
        f"| {way.title} | {lines_of(HERE / way.script)} | {statistics.median(seconds):.0f} "
        f"({min(seconds):.0f}-{max(seconds):.0f}) | {statistics.median(losses):.2f} |"
    )


def main() -> None:
    """Train in all ways that can be gone here."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    ways = tuple(way for way in WAYS if not way.needs or importlib.util.find_spec(way.needs))
    for way in set(WAYS) - set(ways):
        print(f"{way.title}: left out, {way.needs} is not installed")
    found = timed(ways, given.rounds)
    lines = [
        "| way | lines written | seconds | loss on other digits |",
        "| --- | --: | --: | --: |",
    ]
    lines += [row(way, found[way.title]) for way in ways]
    print("\n".join(lines))
    if given.write:
        page = HERE / "README.md"
        page.write_text(TABLE.sub("\n".join(lines) + "\n", page.read_text()))


if __name__ == "__main__":
    main()
