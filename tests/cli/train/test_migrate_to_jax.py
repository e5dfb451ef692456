"""``migrate --to jax`` shows, writes with the old file beside, or names what it cannot change."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tfdyno.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = """import tensorflow as tf


class Own(tf.keras.layers.Layer):
    def call(self, x):
        return tf.nn.relu(x)
"""
HAND = SCRIPT.replace("tf.nn.relu(x)", "tf.boolean_mask(tf.nn.relu(x), x > 0)")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(SCRIPT)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["migrate", "--to", "jax", *words])
    out, err = capsys.readouterr()
    return code, out, err


def test_without_write_a_diff_is_shown_and_nothing_written(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, "train.py", "--", "--epochs", "3")
    assert (code, err) == (0, "")
    assert "\n  tfdyno migrate train.py --to jax --write train.py\n" in out
    assert "\n  python train.py --epochs 3\n" in out
    assert "\n-        return tf.nn.relu(x)\n+        return keras.ops.relu(x)\n" in out
    assert [one.name for one in here.iterdir()] == ["train.py"]


def test_write_keeps_the_old_file_beside(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "train.py", "--write", "train.py")
    assert code == 0
    assert "(train.tensorflow.py is the old one)" in out
    assert (here / "train.tensorflow.py").read_text() == SCRIPT
    assert "keras.ops.relu(x)" in (here / "train.py").read_text()
    assert run(capsys, "train.py")[0] == 0  # nothing more to do
    code, _, err = run(capsys, "train.py", "--write", "train.py")
    assert (code, "train.tensorflow.py is there already" in err) == (2, True)


def test_what_cannot_be_changed_is_named_and_nothing_is_written(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "train.py").write_text(HAND)
    code, out, err = run(capsys, "train.py", "--write", "new.py")
    assert (code, err) == (1, "")
    assert out.startswith("1 place needs your hand before it moves to JAX; ")
    assert "new.py is not written." in out
    assert "train.py:6: return tf.boolean_mask(tf.nn.relu(x), x > 0)\n  tf.boolean_mask: " in out
    assert "keras.ops.where and weights" in " ".join(out.split())
    assert not (here / "new.py").exists()


def test_json_has_the_changes_and_what_is_left(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "train.py").write_text(HAND)
    code, out, _ = run(capsys, "train.py", "--json")
    told = json.loads(out)
    assert code == 1
    assert [one["line"] for one in told["hands"]] == [6]
    assert "tf.nn.relu" in [one["name"] for one in told["changes"]]
    assert told["written"] == []


def test_what_is_unknown_is_told_and_the_exit_code_1(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "train.py").write_text(SCRIPT + "import sonnet\n")
    code, out, _ = run(capsys, "train.py")
    assert code == 1
    assert "Look at train.py:7: Unknown: sonnet was not read." in out


def test_files_that_it_imports_are_named(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "own.py").write_text(SCRIPT)
    (here / "train.py").write_text("import keras\nimport own\n")
    _, out, _ = run(capsys, "train.py")
    assert "Migrate as well: " in out
    assert "own.py, which it imports." in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["none.py"], "there is no file none.py"),
        (["notes.txt"], "notes.txt is no Python file"),
        (["broken.py"], "broken.py cannot be read: line 1"),
        (["plain.py"], "plain.py imports neither TensorFlow nor Keras"),
        (["train.py", "--keep"], "--keep has no use with --to"),
        (["train.py", "--nodes", "4"], "--nodes has no use with --to"),
        (["train.py", "--to", "torch"], "no script is moved to 'torch'"),
    ],
)
def test_wrong_use_is_one_sentence(
    words: list[str], said: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in {"notes.txt": "a", "broken.py": "a b\n", "plain.py": "x = 1\n"}.items():
        (here / name).write_text(text)
    code = main(["migrate", *([] if "--to" in words else ["--to", "jax"]), *words])
    out, err = capsys.readouterr()
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err
