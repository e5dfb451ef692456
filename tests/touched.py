"""Which of the long tests one run takes: those next to what has changed.

``tests/long.csv`` has the tests that take longest, or whole files whose tests share what takes
long. A run takes all others, and of these the ones whose files name a changed file, or name one
that names it and so on: the closest first, until their seconds are spent. ``--all`` takes all.

``scripts/test --all --measure seconds.csv`` and ``python -m tests.touched seconds.csv`` write the
list anew: the longest, until the others take no more than ``BASE_S``.
"""

from __future__ import annotations

import csv
import functools
import re
import subprocess
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

ROOT = Path(__file__).parents[1]
LIST = Path(__file__).with_name("long.csv")
BUDGET_S = 100.0
"""Of the long tests of one stage of ``scripts/test``, on one core."""
BASE_S = 1000.0
"""Of all tests that are not long, on one core: 12 minutes on two with what the long ones may take
and with reading all test files twice."""
SHARED_RATIO = 0.5
"""A test that makes what others use, and takes more of its file than this, makes the file long."""
CODE = ("src", "tests", "truth", "scripts")
DATA = "tests/data/"
"""What users would write: no test imports it, it is named by its file name."""
_DOTTED = re.compile(r"[\w-]+(?:\.[\w-]+)+")
_FROM = re.compile(r"^\s*from ([\w.]+) import (\([^)]*\)|.*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Seconds:
    """What a test took."""

    test: str
    """``file::function[parameters]``."""
    whole_s: float
    shared_s: float
    """Of what other tests may use too: its fixtures, and with TensorFlow all of it."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """Long tests."""

    taken: frozenset[str]
    left: frozenset[str]


def long_tests(path: Path = LIST) -> dict[str, float]:
    """Seconds of each long test, ``tests/jobs/choose/test_trace.py::test_name`` with all its
    parameters, or of a whole file.
    """
    with path.open(newline="") as file:
        return {row["test"]: float(row["seconds"]) for row in csv.DictReader(file)}


def chosen(
    names: Sequence[str],
    long: Mapping[str, float],
    distance: Mapping[str, int],
    budget_s: float = BUDGET_S,
) -> Chosen:
    """Choose among the tests that are long.

    Args:
        names: Of all tests, ``file::function[parameters]``.
        long: Seconds by ``file::function``.
        distance: Of the files that a change touches.
        budget_s: That may be taken.
    """
    rows = {name: row for name in names for row in (_function(name), _file(name)) if row in long}
    every, counts = [*rows], Counter(rows.values())
    taken: set[str] = set()
    spent_s = 0.0
    near = [name for name in every if _file(name) in distance]
    for name in sorted(near, key=lambda name: (distance[_file(name)], name)):
        seconds = long[rows[name]] / counts[rows[name]]
        if spent_s + seconds <= budget_s:
            taken.add(name)
            spent_s += seconds
    return Chosen(frozenset(taken), frozenset(every) - taken)


def longest(measured: Iterable[Seconds], base_s: float = BASE_S) -> dict[str, float]:
    """What has to be long so that the other tests take no more than ``base_s`` on one core."""
    functions: dict[str, float] = defaultdict(float)
    files: dict[str, float] = defaultdict(float)
    makes: dict[str, float] = defaultdict(float)
    for one in measured:
        functions[_function(one.test)] += one.whole_s
        files[_file(one.test)] += one.whole_s
        makes[_file(one.test)] = max(makes[_file(one.test)], one.shared_s)
    rows: dict[str, float] = {}
    for name, value in functions.items():
        file = _file(name)
        is_shared = makes[file] > SHARED_RATIO * files[file]
        rows[file if is_shared else name] = files[file] if is_shared else value
    found, rest_s = {}, sum(rows.values())
    for name, value in sorted(rows.items(), key=lambda row: -row[1]):
        if rest_s <= base_s:
            break
        found[name] = value
        rest_s -= value
    return dict(sorted(found.items()))


def write_long(measured: Path, path: Path = LIST) -> int:
    """Write the list anew from a file of ``--measure``; returns how many rows it has."""
    with measured.open(newline="") as file:
        rows = longest(Seconds(name, float(a), float(b)) for name, a, b in csv.reader(file))
    source = f"own run {date.today().isoformat()}, scripts/test --all --measure"
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("test", "seconds", "source"))
        writer.writerows((name, f"{value:.3g}", source) for name, value in rows.items())
    return len(rows)


def changed(root: Path = ROOT) -> frozenset[str]:
    """Files that are not as they were where this work began, those not committed included.

    It began where it left ``main``; on ``main``, with the last commit. Nothing where git tells of
    neither.
    """
    head = _git(root, "rev-parse", "HEAD")
    bases = (_git(root, "merge-base", "HEAD", name) for name in ("origin/main", "main"))
    base = next((one for one in bases if one and one != head), [])
    since = base or _git(root, "rev-parse", "--verify", "--quiet", "HEAD~1")
    if not since:
        return frozenset()
    new = _git(root, "ls-files", "--others", "--exclude-standard")
    return frozenset(_git(root, "diff", "--name-only", *since) + new)


def seed_of(root: Path = ROOT) -> str:
    """The commit at hand, by which tests draw what another commit draws anew; else ``0``."""
    return next(iter(_git(root, "rev-parse", "--short", "HEAD")), "0")


def distances(texts: Mapping[str, str], files: Iterable[str]) -> dict[str, int]:
    """How far each file is from those that changed: 0, it is one; 1, it names one; and so on.

    Args:
        texts: Of the files with code, by path.
        files: That changed.
    """
    starts = frozenset(files)
    by_name: dict[str, list[str]] = defaultdict(list)
    for path in {*texts, *starts}:
        by_name[_name_of(path)].append(path)
    named_by: dict[str, set[str]] = defaultdict(set)
    for path, text in texts.items():
        for name in set(_names(text)):
            for other in by_name.get(name, ()):
                named_by[other].add(path)
    found = dict.fromkeys(starts, 0)
    edge = list(starts)
    for path in edge:
        for other in named_by[path] - found.keys():
            found[other] = found[path] + 1
            edge.append(other)
    return found


@functools.cache
def code_texts(root: Path = ROOT) -> dict[str, str]:
    """Text of each Python file of the project, by its path from the root."""
    paths = (path for folder in CODE for path in (root / folder).rglob("*.py"))
    named = ((path.relative_to(root).as_posix(), path) for path in paths)
    return {name: path.read_text() for name, path in named if not name.startswith(DATA)}


def _name_of(path: str) -> str:
    """How other files name it: a module with its packages, and else the file's name."""
    if not path.endswith(".py") or path.startswith(DATA):
        return path.rpartition("/")[2]
    top, _, rest = path.removesuffix(".py").removesuffix("/__init__").partition("/")
    return (f"tests/{rest}" if top == "tests" else rest).replace("/", ".")


def _names(text: str) -> Iterator[str]:
    """All that may name a file: each dotted word with what it begins with, each imported name."""
    for word in _DOTTED.findall(text):
        parts = word.split(".")
        yield from (".".join(parts[:count]) for count in range(2, len(parts) + 1))
    for package, names in _FROM.findall(text):
        yield package
        yield from (f"{package}.{name}" for name in re.findall(r"\w+", names))


def _git(root: Path, *words: str) -> list[str]:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *words], capture_output=True, text=True, check=False
        )
    except OSError:
        return []
    return done.stdout.splitlines() if done.returncode == 0 else []


def _function(name: str) -> str:
    return name.partition("[")[0]


def _file(name: str) -> str:
    return name.partition("::")[0]


if __name__ == "__main__":
    print(f"{LIST}: {write_long(Path(sys.argv[1]))} rows")
