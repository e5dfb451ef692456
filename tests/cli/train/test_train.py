"""cli/train: options become a question, an answer is told, and what is wrong is one sentence."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.forks import NO_GPU

from tfdyno.cli.main import main

SCRIPT = """
import keras, numpy as np
x = np.random.default_rng(0).normal(size=(256, 8)).astype("float32")
y = x.sum(1, keepdims=True)
def build(rate=0.01):
    m = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1, name="head")], name="line")
    m.compile(keras.optimizers.SGD(rate), "mse", metrics=["mae"])
    return m
def data():
    import tensorflow as tf
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(32)
if __name__ == "__main__":
    build().fit(x, y, epochs=2, validation_data=(x, y))
    print("the script's own words")
"""
DIVERGING = SCRIPT.replace("build().fit", "build(1e30).fit")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, value in NO_GPU.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "train.py").write_text(SCRIPT)
    return tmp_path


def tfdyno(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tfdyno", *words],
        capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The one sentence of a refusal; nothing may be left behind."""
    before = sorted(str(path) for path in Path().rglob("*"))
    assert main(["train", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("tfdyno: ")
    assert err.count("\n") == 1, err
    assert "defect" not in err
    assert sorted(str(path) for path in Path().rglob("*")) == before
    return err


@pytest.mark.tf
def test_an_unmodified_script_is_trained_under_a_recipe(folder: Path) -> None:
    (folder / "fast.toml").write_text('precision = "mixed_bfloat16"\nseed = 5\n')
    done = tfdyno("train", "train.py", "--recipe", "fast.toml", "--set", "clip_norm=1",
                  "--epochs", "3", "--json")  # fmt: skip
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    assert set(told["history"]) == {"loss", "mae", "val_loss", "val_mae"}
    assert [len(values) for values in told["history"].values()] == [3] * 4
    assert (told["recipe"]["precision"], told["recipe"]["clip_norm"]) == ("mixed_bfloat16", 1.0)
    assert (told["seed"], told["steps"], told["stopped"]) == (5, 24, "")
    assert Path(told["output"]).parent == folder / "tfdyno-runs"
    assert Path(told["model"]).exists()
    assert all(Path(path).exists() for path in told["checkpoints"])
    assert {"applied", "environment", "telemetry", "findings", "notes"} <= set(told)
    assert "the script's own words" in done.stderr
    assert "epoch 3/3" in done.stderr

    again = tfdyno("train", "train.py", "--recipe", told["output"], "--epochs", "3", "-q",
                   "--no-model", "--output", "again")  # fmt: skip
    assert again.returncode == 0, again.stderr
    assert again.stderr == ""
    assert again.stdout.startswith("train.py: loss ")
    assert "after 3 epochs (24 steps) in " in " ".join(again.stdout.split())
    kept = json.loads((folder / "again" / "run.json").read_text())
    assert kept["outcome"]["history"] == told["history"]
    assert not (folder / "again" / "model.keras").exists()


@pytest.mark.tf
def test_a_loss_that_is_no_number_is_an_answer_with_a_finding(folder: Path) -> None:
    (folder / "train.py").write_text(DIVERGING)
    done = tfdyno("train", "train.py", "--output", "run", "--json")
    assert done.returncode == 1, done.stderr
    told = json.loads(done.stdout)
    assert told["stopped"] == "NaN loss"
    assert [one["severity"] for one in told["findings"]] == ["error"]
    assert told["checkpoints"]
    assert "the script's own words" not in done.stderr


@pytest.mark.slow  # test_train_load has the same without the command
@pytest.mark.tf
def test_a_model_and_its_data_can_come_from_two_places(folder: Path) -> None:
    done = tfdyno("train", "train.py:build", "--data", "train.py:data", "--set",
                  "batch_size=64", "--checkpoint-every", "2", "--keep", "2", "--output", "run",
                  "--json")  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["steps"], told["workload"]) == (4, "train.py:build")
    assert len(told["checkpoints"]) == 2
    assert "The last batch() of the dataset makes batches of another size." in told["notes"]


@pytest.mark.tf
def test_a_failure_is_one_sentence_with_what_is_kept(folder: Path) -> None:
    (folder / "train.py").write_text("raise KeyError('no such row')\n")
    done = tfdyno("train", "train.py", "--output", "run")
    assert done.returncode == 2
    assert done.stdout == ""
    last = done.stderr.splitlines()[-1]
    assert last == (
        "tfdyno: train.py failed: line 1: KeyError: 'no such row'. "
        "No checkpoint was written; the logs are in run."
    )


@pytest.mark.tf
def test_a_dry_run_tells_the_plan_and_writes_nothing(folder: Path) -> None:
    done = tfdyno("train", "train.py", "--dry-run", "--gpu", "l4", "--set", "precision=float32")
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    assert text.startswith("line would train for 2 epochs of 8 steps, about ")
    assert "precision = float32" in text
    assert "Nothing was trained or written" in text
    assert sorted(path.name for path in folder.iterdir()) == ["train.py"]
    as_json = json.loads(tfdyno("train", "train.py", "--dry-run", "--gpu", "l4", "--json").stdout)
    assert (as_json["dry_run"], as_json["steps_per_epoch"]) == (True, 8)


@pytest.mark.tf
def test_chinese_is_for_the_reader_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The script, the log and the record stay as they are."""
    monkeypatch.delenv("TFDYNO_LANG", raising=False)
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    words = ("--set", "batch_size=64", "--epochs", "1", "--output", "run", "--no-model")
    done = tfdyno("train", "train.py:build", "--data", "train.py:data", *words)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("train.py：1 轮（4 步）后 loss ")
    assert "  说明    数据集最后一个 batch() 改用另一批大小。" in done.stdout
    assert "第 1/1 轮  loss " in done.stderr
    kept = json.loads((folder / "run" / "run.json").read_text())
    assert kept["outcome"]["notes"][0] == (
        "The last batch() of the dataset makes batches of another size."
    )
    plan = tfdyno("train", "train.py", "--dry-run", "--lang", "zh").stdout
    assert plan.startswith("line 将训练 2 轮，每轮 8 步。")


@pytest.mark.tf
def test_a_dry_run_chooses_the_recipe_for_the_card_that_it_estimates(folder: Path) -> None:
    done = tfdyno("train", "train.py", "--recipe", "auto", "--set", "seed=3", "--dry-run",
                  "--gpu", "l4", "--json")  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["recipe"]["seed"] == 3
    assert (told["estimate"]["gpu"], "execution" in told["reasons"]) == ("l4", True)
    assert "The recipe is for L4." in told["notes"]
    assert "Planned for L4, not for this machine." in told["notes"]
    assert sorted(path.name for path in folder.iterdir()) == ["train.py"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("train.py", "--set", "precison=float32"), "did you mean precision?"),
        (("train.py", "--set", "precision=float31"), "did you mean float32?"),
        (("train.py", "--set", "batch_size"), "write key=value"),
        (("train.py", "--set", "deterministic=true", "--set", "execution=xla"), "do not go"),
        (("train.py", "--set", "strategy=ps", "--set", "accumulation=4"), "do not go together"),
        (("train.py", "--recipe", "none.toml"), "none.toml does not exist"),
        (("trian.py",), "there is no file trian.py; did you mean train.py?"),
        (("model.keras", "x"), "model.keras takes no arguments"),
        (
            ("keras:ResNet50", "--dry-run"),
            "keras:ResNet50 brings no data, and train needs data; name",
        ),
        (("train.py", "--epochs", "0"), "epochs 0 is not possible"),
        (("train.py", "--checkpoint-every", "often"), "write a number of steps, as 500, or a"),
        (("train.py", "--checkpoint-every", "0"), "--checkpoint-every 0 is not possible"),
        (("train.py", "--checkpoint-every", "0min"), "--checkpoint-every 0 is not possible"),
        (("train.py", "--keep", "1.5"), "checkpoints 1.5 is not possible"),
        (("train.py", "--resume"), "--resume needs the folder of a run; name it with --output"),
        (("train.py", "--resume", "--output", "none"), "there is no run in it"),
        (("train.py", "--output", "train.py"), "cannot write to train.py: it is a file"),
        (("train.py", "--gpu", "l4"), "--gpu goes with --dry-run"),
        (("train.py", "--dry-run", "--gpu", "l5"), "l5"),
        (("train.py", "--spot", "aws1"), "did you mean aws?"),
        (("train.py", "--data", "train.py:data"), "--data train.py:data is not possible here"),
        (("train.py:build", "--data", "train.py"), "--data train.py is not possible here"),
        (("train.py", "--python", "no-such-python"), "--python no-such-python cannot be run"),
        (("train.py", "--output", ""), "--output is empty"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], text: str
) -> None:
    assert text in refused(capsys, *words)
