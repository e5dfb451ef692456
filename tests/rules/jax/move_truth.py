"""What becomes of scripts when they are run: each in a process forked from one with Keras."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.runtime.forks import NO_GPU, SERVER

from tfdyno.core.doctor.move import MoveAnswer, move_of
from tfdyno.rules.jax.project import judged, obstacles
from tfdyno.rules.jax.rewrite import moved

FOLDER = Path(__file__).parents[2] / "data" / "move_to_jax"
TABLE = FOLDER / "truth.csv"
COLUMNS = ("script", "tensorflow", "jax", "migrated")
Row = dict[str, str]


def scripts() -> list[Path]:
    """Return all scripts, by name."""
    return sorted(FOLDER.glob("*.py"))


def verdict(path: Path) -> MoveAnswer:
    """Return what the doctor says of a script."""
    found, notes = judged([path.name], lambda _name: path.read_text())
    assert notes == ()
    return move_of(path.name, "jax", obstacles(found)).answer


def migrated(path: Path) -> str:
    """Return what migrate writes; empty where it writes nothing."""
    (one,), _ = judged([path.name], lambda _name: path.read_text())
    found = moved(one, path.name)
    return "" if found.hands else found.after


def answer_of(row: Row) -> MoveAnswer:
    """Return the verdict that what was seen asks for."""
    if row["jax"] == "runs":
        return "moves"
    return "after_migrate" if row["migrated"] == "runs" else "rewrite"


def stored() -> list[Row]:
    """Return the table as it is kept."""
    with TABLE.open(newline="") as lines:
        return list(csv.DictReader(lines))


def measured() -> list[Row]:
    """Run every script on both backends, and what migrate writes of it on JAX."""
    names = [path.name for path in scripts()]
    source = {path.name: path.read_text() for path in scripts()}
    new = {path.name: text for path in scripts() if (text := migrated(path))}
    on_tensorflow = runs("tensorflow", source)
    on_jax = runs("jax", source | {f"new {name}": text for name, text in new.items()})
    return [
        {
            "script": name, "tensorflow": on_tensorflow[name], "jax": on_jax[name],
            "migrated": on_jax.get(f"new {name}", "none"),
        }
        for name in names
    ]  # fmt: skip


def runs(backend: str, sources: dict[str, str]) -> dict[str, str]:
    """Return of each source whether it runs to its end."""
    environment = {
        **os.environ, **NO_GPU, "KERAS_BACKEND": backend, "JAX_PLATFORMS": "cpu",
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }  # fmt: skip
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER], env=environment, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert server.stdin
    assert server.stdout
    found = {}
    for name, code in sources.items():
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder, "script.py")  # AutoGraph reads the source of functions
            script.write_text(code)
            said = [Path(folder, each) for each in ("stdout", "stderr")]
            for path in said:
                path.touch()
            start = "import runpy; runpy.run_path('script.py', run_name='__main__')"
            request = {
                "code": start, "words": ["script.py"], "folder": folder,
                "said": [str(path) for path in said], "environment": environment,
            }  # fmt: skip
            server.stdin.write(json.dumps(request) + "\n")
            server.stdin.flush()
            status = server.stdout.readline().strip()
            found[name] = "runs" if status == "0" else "fails"
            if "-v" in sys.argv:
                print(name, found[name], said[1].read_text()[-300:] if status != "0" else "")
    server.communicate()
    return found


if __name__ == "__main__":
    with TABLE.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(measured())
