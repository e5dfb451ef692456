"""What each planted cause is worth: every script as it is, and with its cause removed, in turns.

A healthy script is run with each lever instead. One process imports TensorFlow and forks for each
run, so that none inherits another's settings. Seconds per step are those of the second half of the
steps that were seen; where the other side has more samples in a step, the ratio takes it in.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
import tempfile
import tomllib
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from bottleneck_suite.cases import FOLDER
from bottleneck_suite.clock import Clock, Enough, hook

if TYPE_CHECKING:
    from collections.abc import Sequence

REMOVED = FOLDER / "removed.toml"
OWN = "own"
REMOVAL = "removed"
_TOLD = {"step_s": "ms", "best_s": "best_ms", "cpu_s": "cpu_ms"}


def removed_source(name: str, table: dict[str, Any], source: str) -> str:
    """The script without its cause.

    Raises:
        ValueError: A text to be replaced is not there.
    """
    return _replaced(name, table[name]["replace"], source)


def sources(name: str, table: dict[str, Any], source: str) -> dict[str, str]:
    """The script as it is, then without its cause, or with each lever if it is healthy."""
    levers = table[name].get("levers")
    if levers is None:
        return {OWN: source, REMOVAL: removed_source(name, table, source)}
    return {OWN: source} | {
        lever: _replaced(name, pairs, source) for lever, pairs in levers.items()
    }


def _replaced(name: str, pairs: list[list[str]], source: str) -> str:
    for old, new in pairs:
        if old not in source:
            raise ValueError(f"{name}: not in the script: {old}")
        source = source.replace(old, new)
    return source


def run(path: Path, source: str, arguments: list[str], limit_s: float) -> dict[str, Any]:
    """Run the source in a fork; what its clock told, or why it failed."""
    with tempfile.NamedTemporaryFile(mode="r", suffix=".json") as answer:
        child = os.fork()
        if child == 0:
            _in_fork(path, source, arguments, limit_s, answer.name)
        os.waitpid(child, 0)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # workers that the script started
        text = answer.read()
    return dict(json.loads(text)) if text else {"error": "the process died"}


def _in_fork(path: Path, source: str, arguments: list[str], limit_s: float, answer: str) -> None:
    os.setpgid(0, 0)
    told: dict[str, Any]
    clock = Clock(limit_s)
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    try:
        hook(clock)
        sys.argv = [str(path), *arguments]
        code = compile(source, str(path), "exec")
        with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
            exec(code, {"__name__": "__main__", "__file__": str(path)})
        told = clock.told()
    except Enough:
        told = clock.told()
    except BaseException as error:
        import traceback

        told = {"error": f"{type(error).__name__}: {error}"[:300], "trace": traceback.format_exc()}
    Path(answer).write_text(json.dumps(told))
    os._exit(0)


def main(words: Sequence[str] | None = None) -> int:
    """Print a line of JSON for each script: its steps on each side, and their ratios."""
    parser = argparse.ArgumentParser(prog="scripts/bottlenecks --factor", description=__doc__)
    parser.add_argument("names", nargs="+", metavar="SCRIPT")
    parser.add_argument("--seconds", type=float, default=6.0, help="of steps in a run, at most")
    parser.add_argument("--rounds", type=int, default=1, help="runs of each side, in turns")
    given = parser.parse_args(words)
    import keras  # noqa: F401, before the forks
    import tensorflow  # noqa: F401

    table = tomllib.loads(REMOVED.read_text())
    for name in given.names:
        path = FOLDER / f"{name}.py"
        sides = sources(name, table, path.read_text())
        told: dict[str, list[dict[str, Any]]] = {side: [] for side in sides}
        for _ in range(given.rounds):
            for side, text in sides.items():
                told[side].append(run(path, text, table[name].get("arguments", []), given.seconds))
        row = answer(told, table[name].get("samples_ratio", {}))
        print(json.dumps({"name": name, **row}), flush=True)
    return 0


def answer(
    told: dict[str, list[dict[str, Any]]], samples_ratio: dict[str, float]
) -> dict[str, Any]:
    """Of each side its steps, and how many times as fast as the script itself it is."""
    errors = {side: row["error"] for side, rows in told.items() for row in rows if "error" in row}
    if errors:
        return {"errors": errors}
    times = {side: {shown: 1e3 * median(row[key] for row in rows) for key, shown in _TOLD.items()}
             for side, rows in told.items()}  # fmt: skip
    for side, rows in told.items():
        times[side]["best_ms"] = 1e3 * min(row["best_s"] for row in rows)
    ratios = {
        name: {side: round(times[OWN][shown] / times[side][shown] * samples_ratio.get(side, 1), 2)
               for side in told if side != OWN}
        for name, shown in (("factor", "ms"), ("best_factor", "best_ms"))
    }  # fmt: skip
    for side, rows in told.items():
        times[side]["kib_per_step"] = median(row["bytes_per_step"] for row in rows) / 1024
        times[side]["steps"] = rows[0]["steps"]
    rounded = {side: {name: round(value, 2) for name, value in of_side.items()}
               for side, of_side in times.items()}  # fmt: skip
    return ratios | rounded


if __name__ == "__main__":
    sys.exit(main())
