"""``tfdyno.tune``: the command for Python, with nouns as results."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.jobs import tune_child
from tests.jobs.tune.test_tune import same_losses

import tfdyno

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = os.pathsep.join((str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")))
    monkeypatch.setenv("PYTHONPATH", path)
    monkeypatch.setattr("tfdyno.jobs.bench.run.RUN", tune_child.MADE_UP)
    monkeypatch.setattr("tfdyno.jobs.tune._place.PLACE", tune_child.MADE_UP_PLACE)
    monkeypatch.setattr("tfdyno.jobs.diagnose.same_losses.train", same_losses)
    (tmp_path / "train.py").write_text("model.fit(x)\n")
    (tmp_path / "law.json").write_text("{}")
    return tmp_path


def test_a_study_gives_the_recipe_its_proof_and_files() -> None:
    found = tfdyno.tune(
        "train.py", space={"batch_size": [64, 128], "input.cache": [False]}, trials=2, runs=2,
        seconds=1, output="out", progress=False,
    )  # fmt: skip
    assert found.proof
    assert found.recipe in (found.start, found.trial(found.best or 0).recipe)
    assert Path("out/recipe.toml").exists()
    assert found.text().splitlines()[0] in found._repr_html_().replace("&quot;", '"')
    more = tfdyno.tune(
        "train.py", space={"batch_size": [64, 128], "input.cache": [False]}, trials=3, runs=2,
        seconds=1, output="out", resume=True, progress=False,
    )  # fmt: skip
    assert len(more.trials) >= len(found.trials)


def test_what_cannot_be_tuned_is_said() -> None:
    with pytest.raises(tfdyno.UsageError, match="object cannot be tuned"):
        tfdyno.tune(object(), progress=False)
    with pytest.raises(tfdyno.UsageError, match="did you mean batch_size"):
        tfdyno.tune("train.py", space={"batchsize": [1]}, progress=False)
    with pytest.raises(tfdyno.UsageError, match="batch_size '6,4' is not a number"):
        tfdyno.tune("train.py", space={"batch_size": "6,4"}, progress=False)
    with pytest.raises(tfdyno.UsageError, match="option 'tirals' is not one of"):
        tfdyno.tune("train.py", tirals=3, progress=False)
    with pytest.raises(tfdyno.UsageError, match="backend 'torch' is not one of tensorflow, jax"):
        tfdyno.tune("train.py", backend="torch", progress=False)  # type: ignore[arg-type]
    with pytest.raises(
        tfdyno.UsageError, match="threads_intra = 2 means nothing on the JAX backend"
    ):
        tfdyno.tune("train.py", backend="jax", recipe={"threads_intra": 2}, progress=False)
    with pytest.raises(tfdyno.UsageError, match="seed -1"):
        tfdyno.tune("train.py", seed=-1, progress=False)
    with pytest.raises(tfdyno.UsageError, match="trials 0"):
        tfdyno.tune("train.py", trials=0, progress=False)


@pytest.mark.parametrize("value", [128, "128"])
def test_a_single_value_is_one(value: object) -> None:
    found = tfdyno.tune(
        "train.py", space={"batch_size": value, "precision": [""]}, trials=1, runs=2, seconds=1,
        seed=1, output="out", progress=False,
    )  # fmt: skip
    assert found.space.choices["batch_size"] == (64, 128)
    assert "precision" not in found.space.choices


def test_the_backend_that_the_environment_names_is_used_and_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    found = tfdyno.tune(
        "train.py", space={"batch_size": 128}, trials=1, runs=2, seconds=1, output="out"
    )  # fmt: skip
    assert found.backend == "jax"
    assert "It trains on JAX, which KERAS_BACKEND names." in capsys.readouterr().err
