"""cli/jax_options: a layout goes along as words, and wrong use is one sentence with exit code 2."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

import pytest
from tests.cli.typed import typed

from tfdyno.cli.main import main
from tfdyno.cli.train.jax_options import JaxOptions, jax_plan, jax_words
from tfdyno.core.train.device_mesh import read_mesh
from tfdyno.core.train.jax_plan import JaxPlan
from tfdyno.core.train.layout import Rule

if TYPE_CHECKING:
    from pathlib import Path

PLAN = JaxPlan(
    mesh=read_mesh("data=2,model=2"),
    rules=(Rule(pattern=r"dense(_\d+)?/kernel", axes=("", "model")),),
    host_devices=2,
    write_layout="kept.toml",
)
LAYOUT = "[rules]\n'dense(_\\d+)?/kernel' = ['', 'model']\n"
JAX = ["launch", "train.py", "--backend", "jax", "--dry-run"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    (tmp_path / "train.py").write_text("print('never runs')\n")
    (tmp_path / "layout.toml").write_text(LAYOUT)
    return tmp_path


def test_words_bring_the_same_plan_to_a_node() -> None:
    assert jax_plan(typed(JaxOptions, *jax_words(PLAN))) == PLAN
    assert jax_words(None) == ()
    assert jax_plan(typed(JaxOptions)) is None
    assert jax_plan(typed(JaxOptions), found="jax") == JaxPlan()
    assert jax_plan(typed(JaxOptions, "--backend", "tensorflow"), found="jax") is None


@pytest.mark.parametrize("engine", ["local", "slurm"])
def test_every_engine_gets_the_rules_themselves(
    engine: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--nodes", "2", "--host-devices", "2", "--mesh", "model=2", "--layout", "layout.toml"]
    assert main([*JAX, "--on", engine, *words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    rule = ["--rule", r"dense(_\d+)?/kernel=-,model"]
    assert found["plan"]["options"] == [
        "--backend", "jax", "--mesh", "model=2", *rule, "--host-devices", "2",
    ]  # fmt: skip
    assert shlex.join(rule) in found["file"]
    assert "layout.toml" not in found["file"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--backend", "tensorflow", "--mesh", "model=2"],
         "--mesh does nothing on the TensorFlow backend: keras.distribution splits weights on JAX"),
        (["--backend", "tensorflow", "--layout", "layout.toml"], "--layout does nothing on"),
        (["--backend", "torch"], "backend 'torch' is not one of tensorflow, jax"),
        (["--mesh", "data=2,model=2"], "has 4 places, and all processes together have 1 device;"),
        (["--mesh", "model=3", "--host-devices", "4"], "the mesh model=3 does not fit"),
        (["--mesh", "model=2", "--gpus-per-node", "8", "--mesh", "model=3"], "have 8 devices"),
        (["--layout", "layout.toml"], "there is no mesh"),
        (["--mesh", "modl=2", "--host-devices", "2", "--layout", "layout.toml"],
         "axis of the rule 'dense(_\\d+)?/kernel' 'model' is not one of data, modl; did you mean"),
        (["--mesh", "model=1", "--layout", "none.toml"], "none.toml does not exist"),
        (["--set", "threads_intra=4"], "threads_intra = 4 means nothing on the JAX backend"),
        (["--set", "strategy=mirrored"], "strategy = mirrored means nothing on the JAX backend"),
        (["--tensorboard"], "--tensorboard does not go with the JAX backend"),
    ],
)  # fmt: skip
def test_wrong_use_is_one_sentence(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*JAX, *words]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_a_script_that_only_tensorflow_trains_is_told_before_it_is_submitted(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    (folder / "train.py").write_text("import tensorflow as tf\n\nwith tf.GradientTape(): pass\n")
    assert main([*JAX, "--on", "slurm"]) == 2
    assert "train.py cannot train on the JAX backend: line 3, tf.GradientTape: " in (
        capsys.readouterr().err
    )
