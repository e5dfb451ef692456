"""``tfdyno tune`` as a user types it: one sentence for wrong use, text or JSON for an answer."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.jobs import tune_child
from tests.jobs.tune.test_tune import same_losses

from tfdyno.cli import main as cli

ROOT = Path(__file__).parents[3]
SPACE = ["--space", "batch_size=64,128", "--space", "execution=graph,xla",
         "--space", "steps_per_execution=own", "--space", "precision=own", "--space",
         "input.prefetch=own", "--space", "input.parallel_calls=own", "--space",
         "input.cache=own"]  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a script, whose runs and losses are made up."""
    monkeypatch.chdir(tmp_path)
    path = os.pathsep.join((str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")))
    monkeypatch.setenv("PYTHONPATH", path)
    monkeypatch.setattr("tfdyno.jobs.bench.run.RUN", tune_child.MADE_UP)
    monkeypatch.setattr("tfdyno.jobs.tune._place.PLACE", tune_child.MADE_UP_PLACE)
    monkeypatch.setattr("tfdyno.jobs.diagnose.same_losses.train", same_losses)
    (tmp_path / "train.py").write_text("model.fit(x)\n")
    (tmp_path / "law.json").write_text("{}")
    return tmp_path


def run(*words: str) -> int:
    return cli.main(["tune", "train.py", *words])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--space", "batchsize=64"], "did you mean batch_size?"),
        (["--space", "ema=0.9"], "ema is not tuned"),
        (["--set", "presicion=float32"], "did you mean precision?"),
        (["--set", "remat=blocks"], "remat cannot be set"),
        (["--gpu", "l4"], "--gpu needs --dry-run"),
        (["--dry-run"], "--dry-run needs --gpu"),
        (["--dry-run", "--gpu", "l4", "--resume"], "--resume cannot go with --dry-run"),
        (["--dry-run", "--gpu", "rtx-4091"], "did you mean rtx-4090"),
        (["--address", "here:1"], "--address needs --on ray"),
        (["--on", "slurm"], "engine 'slurm' is not one of local, ray"),
        (["--memory-limit", "1e400"], "--memory-limit 1e400 is not possible"),
        (["--runs", "1"], "give a whole number, 2 or more"),
        (["--trials", "0"], "trials 0 is not possible"),
        (["--resume"], "there is nothing to resume in tfdyno-tuning"),
        (["--data", "synthetic", "--space", "input.cache=true"], "cannot be tuned with made-up"),
        (["--keep-batch", "--space", "accumulation=1,2"],
         "do not go together"),
        (["--backend", "torch"], "backend 'torch' is not one of tensorflow, jax"),
        (["--backend", "jax", "--space", "threads_intra=2"],
         "threads_intra = 2 means nothing on the JAX backend: XLA takes the cores"),
        (["--backend", "jax", "--space", "execution=xla,graph"], "JAX compiles every step"),
        (["--backend", "jax", "--set", "strategy=mirrored"], "strategy cannot be set"),
        (["--backend", "jax", "--dry-run", "--gpu", "l4", "--space", "threads_inter=2"],
         "threads_inter = 2 means nothing on the JAX backend"),
    ],
)  # fmt: skip
def test_wrong_use_is_one_sentence_and_leaves_nothing(
    words: list[str], said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("-q", *words) == 2
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1
    assert sorted(one.name for one in folder.iterdir()) == ["law.json", "train.py"]


def test_without_optuna_the_way_to_have_it_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import importlib.util

    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *a: None if name == "optuna" else found(name, *a)
    )
    assert run("-q") == 2
    assert 'pip install "tfdyno[tune]"' in capsys.readouterr().err


def test_text_and_files_have_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("-q", "--trials", "4", *SPACE, "--output", "out") == 0
    text = capsys.readouterr().out
    assert text.startswith("1.")
    assert "  warning   It changes the batch of an update from 64 to 128 samples" in text
    assert "tfdyno train train.py --recipe out" in text
    assert "batch_size = 128" in Path("out/recipe.toml").read_text()


def test_without_an_answer_the_exit_code_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    Path("law.json").write_text('{"most": 0}')
    words = ["-q", "--trials", "2", *SPACE[6:], "--set", "batch_size=64", "--output", "out"]
    assert run(*words) == 1
    assert capsys.readouterr().out.startswith("No trial could be measured to its end.")
    assert not Path("out/recipe.toml").exists()


def test_json_is_the_document_and_progress_is_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--json", "--trials", "2", *SPACE, "--output", "out") == 0
    captured = capsys.readouterr()
    told: dict[str, Any] = json.loads(captured.out)
    assert told["workload"] == "train.py"
    assert told["space_size"] == 4
    kept = json.loads(Path("out/tuning.json").read_text())
    assert {**kept, "made_at": ""} == {**told, "made_at": ""}


def test_a_study_on_jax_says_so_everywhere_and_stays_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The variable names the backend, as it does for plain Keras."""
    monkeypatch.setattr("tfdyno.jobs.tune._place.PLACE_ON_JAX", tune_child.MADE_UP_PLACE)
    law = {"software": {"jax": "0.11.2"}, "task": {"backend": "jax", "execution": "xla"}}
    Path("law.json").write_text(json.dumps(law))
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    words = ["--trials", "2", *SPACE[:2], *SPACE[4:], "--output", "out"]
    assert run(*words) == 0
    captured = capsys.readouterr()
    assert "It trains on JAX, which KERAS_BACKEND names." in captured.err
    assert "Keras on JAX" in captured.out
    assert "execution is not tuned: JAX compiles every step with XLA." in captured.out
    assert "tfdyno train train.py --backend jax --recipe out" in captured.out
    assert json.loads(Path("out/tuning.json").read_text())["backend"] == "jax"
    assert (
        Path("out/recipe.toml")
        .read_text()
        .startswith("# Made by tfdyno tune train.py --backend jax.\n")
    )
    monkeypatch.delenv("KERAS_BACKEND")
    assert run("-q", *words, "--resume") == 2
    assert (
        "out holds a study on JAX, not on TensorFlow; go on with it by" in capsys.readouterr().err
    )
    assert run("-q", *words, "--resume", "--backend", "jax") == 0


def test_optuna_is_not_loaded_for_the_help() -> None:
    import subprocess

    heavy = "{'optuna', 'sqlalchemy', 'ray', 'numpy'} & set(sys.modules)"
    code = f"import sys; from tfdyno.cli.main import main; main(['tune', '-h']); print({heavy})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "set()"
