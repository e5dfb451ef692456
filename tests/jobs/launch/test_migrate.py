"""A Horovod script learns the same after its migration: by hand, and against Horovod itself."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.jobs.horovod_script import ARRAYS, SCRIPT, first_weights, learned

from tfdyno.core.base.errors import UsageError
from tfdyno.jobs.launch.migrate import migrate, written

PYTHON = os.environ.get("TFDYNO_HOROVOD_PYTHON", "")
"""Of an environment with Horovod 0.28.1 and TensorFlow 2.15."""
SINGLE = 2e-5
"""Losses in float32 against the same by hand in float64."""
SAME = 2e-6
"""Losses of two TensorFlow releases in float32."""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(SCRIPT)
    names = dict(zip("abcd", first_weights(), strict=True))
    np.savez(tmp_path / "first.npz", **names)  # type: ignore[arg-type]
    return tmp_path


def tfdyno(folder: Path, *words: str) -> None:
    command = [sys.executable, "-m", "tfdyno", *words]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=500
    )
    assert done.returncode == 0, done.stderr


def losses(path: Path) -> dict[str, list[float]]:
    found: dict[str, list[float]] = json.loads(path.read_text())
    return found


def test_the_script_itself_is_replaced_and_kept_beside(here: Path) -> None:
    (here / "train.py").chmod(0o755)
    found = migrate(Path("train.py"))
    assert found.hands == ()
    assert written(found, Path("train.py")) == (Path("train.py"), Path("train.horovod.py"))
    assert (here / "train.horovod.py").read_text() == SCRIPT
    assert (here / "train.py").read_text() == found.after
    assert stat.S_IMODE((here / "train.py").stat().st_mode) == 0o755
    assert "horovod" not in found.after.replace("Horovod 0.28", "").replace("# Horovod", "").lower()


def test_what_would_be_written_over_is_refused(here: Path) -> None:
    (here / "new.py").write_text("mine = 1\n")
    with pytest.raises(UsageError, match=r"new\.py is there already"):
        written(migrate(Path("train.py")), Path("new.py"))
    assert (here / "new.py").read_text() == "mine = 1\n"
    written(migrate(Path("train.py")), Path("train.py"))
    (here / "train.py").write_text(SCRIPT)
    with pytest.raises(UsageError, match=r"train\.horovod\.py is there already"):
        written(migrate(Path("train.py")), Path("train.py"))
    assert (here / "train.py").read_text() == SCRIPT


def test_a_script_with_places_for_a_person_is_not_written(here: Path) -> None:
    (here / "train.py").write_text(f"{SCRIPT}\nhvd.allreduce(1.0)\n")
    found = migrate(Path("train.py"))
    with pytest.raises(UsageError, match="1 place needs your hand first"):
        written(found, Path("new.py"))
    assert not (here / "new.py").exists()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "plain.py",
            "import keras\n",
            "does not use Horovod; run it as it is: tfdyno launch plain",
        ),
        (
            "graph.py",
            "import tensorflow as tf\nloss = tf.layers.dense(x, 10)\n",
            r"code of TensorFlow 1, not of 2: loss = tf\.layers\.dense.* doctor --code graph\.py",
        ),
        ("old.py", "print 'x'\nimport horovod\n", r"old\.py cannot be read: line 1"),
        ("train.txt", "", "is no Python file"),
        ("missing.py", None, r"there is no file missing\.py"),
    ],
)
def test_what_cannot_be_migrated_is_one_sentence(
    here: Path, name: str, text: str | None, message: str
) -> None:
    if text is not None:
        (here / name).write_text(text)
    with pytest.raises(UsageError, match=message):
        migrate(Path(name))


def test_modules_beside_it_that_use_horovod_too_are_named(here: Path) -> None:
    (here / "feed.py").write_text("import horovod.tensorflow as hvd\n")
    (here / "plain.py").write_text("import numpy\n")
    (here / "train.py").write_text(f"import feed\nimport plain\n{SCRIPT}")
    assert migrate(Path("train.py")).beside == ("feed.py",)


def test_what_else_keras_3_refuses_is_told(here: Path) -> None:
    (here / "train.py").write_text(f"{SCRIPT}\ntf.keras.backend.set_session(None)\n")
    (one,) = migrate(Path("train.py")).findings
    assert "session" in one.summary


@pytest.mark.tf
def test_the_migrated_script_learns_what_two_horovod_processes_learn_by_hand(here: Path) -> None:
    written(migrate(Path("train.py")), Path("new.py"))
    words = ("--set", "strategy=mirrored", "--set", "devices=2", "--output", "run", "-q")
    tfdyno(here, "train", "new.py", *words, "--", "found.json")
    found, expected = losses(here / "found.json"), learned(2)
    assert found["loss"] == pytest.approx(expected["loss"], rel=SINGLE)
    assert found["mae"] == pytest.approx(expected["mae"], rel=SINGLE)
    assert learned(1)["loss"] != pytest.approx(expected["loss"], rel=1e-2)  # it can be told apart


@pytest.mark.tf
@pytest.mark.slow
@pytest.mark.skipif(not PYTHON, reason="TFDYNO_HOROVOD_PYTHON names no Python with Horovod")
@pytest.mark.parametrize("script", [SCRIPT, ARRAYS], ids=["dataset", "arrays"])
def test_the_migrated_script_learns_what_horovod_learns(here: Path, script: str) -> None:
    """Both begin with the same weights and see the same rows: all that is drawn is in the files.

    Each process reads the weights: Horovod sends those of the first one only after the first step,
    in which the others still take part with their own.
    """
    (here / "train.py").write_text(script)
    run = [str(Path(PYTHON).with_name("horovodrun")), "--gloo", "--network-interfaces", "lo"]
    run += ["-np", "2", PYTHON, "train.py", "horovod.json"]
    done = subprocess.run(run, cwd=here, capture_output=True, text=True, check=False, timeout=500,
                          env={**os.environ, "PYTHONPATH": ""})  # fmt: skip
    assert done.returncode == 0, done.stderr
    written(migrate(Path("train.py")), Path("new.py"))
    tfdyno(here, "launch", "new.py", "--nodes", "2", "--output", "run", "-q", "--", "found.json")
    found, expected = losses(here / "found.json"), losses(here / "horovod.json")
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        assert found[name] == pytest.approx(values, rel=SAME)
