"""``doctor --code PATH --to jax``: one sentence first, every line, and what is refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tfdyno.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

OWN = """import keras
import tensorflow as tf


class Own(keras.layers.Layer):
    def call(self, x):
        return tf.nn.relu(x) + tf.reduce_mean(x)
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(OWN)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["doctor", "--quiet", *words])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize(
    ("source", "sentence", "code"),
    [
        ("import keras\nm = keras.Sequential()\n", "train.py moves to the JAX backend as it is", 0),
        (OWN, "after: tfdyno migrate train.py --to jax (train.py:7).", 1),
        (OWN.replace("reduce_mean", "boolean_mask"), "without rewriting train.py:7.", 1),
        (OWN + "import sonnet\n" * 2, "does not move|unknown", 1),
        ("import keras\nimport sonnet\n", "is unknown: train.py:2 could not be judged.", 1),
    ],
)
def test_the_first_sentence_is_the_answer(
    source: str, sentence: str, code: int, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "train.py").write_text(source)
    found, out, err = run(capsys, "--code", "train.py", "--to", "jax")
    first = " ".join(out.split("\n\n")[0].split())
    assert (found, err) == (code, "")
    assert any(one in first for one in sentence.split("|"))


def test_every_line_is_told_though_they_are_alike(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = "".join("        x = tf.nn.relu(x)\n" for _ in range(12))
    (here / "train.py").write_text(OWN.replace("        return", f"{lines}        return"))
    _, out, _ = run(capsys, "--code", "train.py", "--to", "jax")
    assert all(f"train.py:{line}: x = tf.nn.relu(x)" in out for line in range(7, 19))
    assert "Stops the move: tf.nn.relu, tf.reduce_mean: operations" in " ".join(out.split())


def test_json_has_the_answer_and_the_effect_of_each_place(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, out, _ = run(capsys, "--code", "train.py", "--to", "jax", "--json")
    move = json.loads(out)["move"]
    assert (move["target"], move["answer"]) == ("jax", "after_migrate")
    assert move["sentence"].startswith("train.py moves to the JAX backend after: tfdyno migrate")
    assert [(one["name"], one["effect"], one["instead"]) for one in move["obstacles"]] == [
        ("tf.nn.relu", "stops", "keras.ops.relu"),
        ("tf.reduce_mean", "stops", "keras.ops.mean"),
    ]


def test_the_commands_name_the_script_as_it_was_given(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "my code").mkdir()
    (here / "my code" / "train.py").write_text(OWN)
    _, out, _ = run(capsys, "--code", "my code/train.py", "--to", "jax")
    assert "\n              tfdyno migrate 'my code/train.py' --to jax\n" in out
    _, out, _ = run(capsys, "--code", "train.py", "--to", "jax")
    assert "\n              tfdyno migrate train.py --to jax\n" in out


def test_it_speaks_chinese(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "--code", "train.py", "--to", "jax", "--lang", "zh")
    assert out.startswith(
        "! train.py 在执行 tfdyno migrate train.py --to jax 之后可迁移到 JAX 后端"
    )
    assert "阻止迁移：" in out


def test_what_a_script_imports_from_beside_it_is_judged_too(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "own.py").write_text(OWN)
    (here / "train.py").write_text("import keras\nfrom own import Own\nOwn()(keras.Input((3,)))\n")
    _, out, _ = run(capsys, "--code", "train.py", "--to", "jax", "--json")
    assert {one["source"] for one in json.loads(out)["move"]["obstacles"]} == {"own.py:7"}


def test_what_keras_3_itself_lacks_stops_the_move(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "train.py").write_text("import keras\nm = keras.Sequential()\nm.fit_generator(x)\n")
    code, out, _ = run(capsys, "--code", "train.py", "--to", "jax")
    assert code == 1
    assert "does not move to the JAX backend without rewriting train.py:3" in out


def test_a_file_that_is_no_python_is_unknown_or_refused(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "broken.py").write_text("import keras\nthis is no Python\n")
    assert run(capsys, "--code", "broken.py", "--to", "jax")[0] == 2
    code, out, _ = run(capsys, "--code", ".", "--to", "jax")
    assert code == 1
    (here / "train.py").write_text("import keras\n")
    code, out, _ = run(capsys, "--code", ".", "--to", "jax")
    assert (code, "is unknown: broken.py" in " ".join(out.split())) == (1, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--code", "train.py", "--to", "torch"], "no script is moved to 'torch'"),
        (["--code", "train.py", "--to", "jaxx"], "did you mean jax?"),
        (["--to", "jax"], "--to has no use alone; it goes with --code"),
        (["--code", "train.py", "--to", "jax", "--env", "a"], "--env has no use with --to"),
        (["--code", "none.py", "--to", "jax"], "none.py"),
        (["--code", "notes.txt", "--to", "jax"], "notes.txt"),
    ],
)
def test_wrong_use_is_one_sentence(
    words: list[str], said: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "notes.txt").write_text("none")
    code, out, err = run(capsys, *words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err
