"""``tfdyno.diagnose`` gives what the command gives, as nouns, page, text and notebook."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.jobs import bench_child, diagnose_child
from tests.jobs.records import record, written
from tests.runtime.forks import forked
from tests.view.diagnoses import DIAGNOSIS, FACTS, LEAK, SERIAL, only

import tfdyno
from tfdyno.core.base.codec import to_builtins
from tfdyno.core.messages.diagnose import Limits
from tfdyno.core.messages.wire import decode
from tfdyno.core.recipe.recipe import from_settings

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Value

ROOT = Path(__file__).parents[1]
PROFILE = ROOT / "tests/data/profiles/keras_fit_stalled.xplane.pb.gz"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a script, whose steps, runs and losses are made up."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(ROOT), str(ROOT / "src"))))
    monkeypatch.setenv("TFDYNO_DATA", str(tmp_path / "data"))
    monkeypatch.setattr("tfdyno.jobs.diagnose.diagnose.LOOK", diagnose_child.MADE_UP)
    monkeypatch.setattr("tfdyno.jobs.bench.run.RUN", bench_child.MADE_UP)
    (tmp_path / "train.py").write_text("model.fit(x)\n")
    (tmp_path / "seen.json").write_text(json.dumps({"facts": to_builtins(FACTS)}))
    return tmp_path


def judged_as(monkeypatch: pytest.MonkeyPatch, diagnosis: object) -> None:
    def judge(_facts: object) -> object:
        return diagnosis

    monkeypatch.setattr("tfdyno.rules.bottleneck.diagnose", judge)


def asked() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path("asked.json").read_text())
    return found


def test_a_script_is_looked_at_as_the_command_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    judged_as(monkeypatch, DIAGNOSIS)
    Path("seen.json").write_text(json.dumps({"facts": to_builtins(FACTS), "sleep_s": 1.5}))
    monkeypatch.setattr("tfdyno.cli.progress.PATIENCE_S", 0.0)
    result = tfdyno.diagnose("train.py", recipe={"seed": 3}, steps=12, seconds=3,
                             script_arguments=("--lr", "0.1"))  # fmt: skip
    assert isinstance(result, tfdyno.DiagnoseResult)
    assert (result.primary, result.findings) == (DIAGNOSIS.primary, DIAGNOSIS.findings)
    assert result.facts.batch_size == 256
    assert result.recipe == result.base == from_settings({"seed": "3"})
    assert asked()["workload"]["script_arguments"] == ["--lr", "0.1"]
    limits = Limits(own_s=0.0, most_s=3.0, least_steps=12)
    assert decode(asked()["limits"], Limits) == limits
    assert "12 steps, median 52.1 ms" in capsys.readouterr().err
    tfdyno.diagnose("train.py", progress=False)
    assert capsys.readouterr() == ("", "")


def test_the_result_is_a_page_a_text_and_a_cell_of_a_notebook(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    judged_as(monkeypatch, DIAGNOSIS)
    result = tfdyno.diagnose("train.py", progress=False)
    assert "<h1>The step waits for input: 61% of its time</h1>" in result.html()
    assert result.text().startswith("The step waits for input: 61 % of its time.\n")
    assert max(map(len, result.text(40).splitlines()[:2])) <= 40
    cell = result._repr_html_()
    assert cell.startswith("<p><strong>The step waits for input: 61 % of its time.</strong></p>")
    assert "ds.map(parse, num_parallel_calls=tf.data.AUTOTUNE)" in cell
    assert "<td>2.3–2.6x</td><td>not measured</td>" in cell


def test_a_cell_escapes_what_a_user_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    judged_as(monkeypatch, only(replace(LEAK, summary="<b>", place="<i>.py")))
    cell = tfdyno.diagnose("train.py", progress=False)._repr_html_()
    assert "<b>" not in cell
    assert "<i>" not in cell
    assert "&lt;b&gt;" in cell


def test_a_fix_is_proven_and_the_steps_are_looked_at_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from types import SimpleNamespace

    def train(_request: object, **_ways: object) -> Value:
        return SimpleNamespace(outcome=SimpleNamespace(history={"loss": [1.0, 0.5]}, stopped=""))

    monkeypatch.setattr("tfdyno.jobs.diagnose.same_losses.train", train)
    judged_as(monkeypatch, only(SERIAL))
    plan = {str(at): {"step_s": 0.1 if side == "A" else 0.05} for at, side in enumerate("ABBAABBA")}
    Path("plan.json").write_text(json.dumps(plan))
    result = tfdyno.diagnose("train.py", fix=True, output="results", progress=False)
    assert result.proofs[0].kept
    assert result.primary.proven_gain
    assert result.primary.proven_gain.best == pytest.approx(2.0)
    assert result.recipe == from_settings(SERIAL.settings)
    assert result.base == tfdyno.Recipe()
    assert result.after
    assert "2.00x (" in result._repr_html_()
    assert Path("results/results.sqlite").exists()


def test_a_profile_and_a_record_are_told_as_well() -> None:
    assert tfdyno.diagnose(str(PROFILE), progress=False).primary.bottleneck_class == "input"
    written(Path("run"), record())
    result = tfdyno.diagnose("run", progress=False)
    assert result.primary.cause == "callback.validation_each_epoch"
    assert result.look == "tfdyno diagnose train.py -- --lr 0.1"
    assert result.look in result.text()


@pytest.mark.parametrize(
    ("subject", "ways", "said"),
    [
        ("gone.py", {}, "there is no file gone.py"),
        (3, {}, "int cannot be diagnosed: its steps run in a fresh process"),
        ("train.py", {"steps": 0}, "steps 0 is not possible"),
        ("train.py", {"seconds": float("nan")}, "seconds nan is not"),
        ("train.py", {"output": "r"}, "output needs fix"),
        ("train.py", {"recipe": {"sed": 3}}, "did you mean seed"),
        ("train.py", {"recipe": {"remat": "blocks"}}, "remat cannot be set"),
        (str(PROFILE), {"fix": True}, "fix cannot go with"),
        (str(PROFILE), {"python": "python3"}, "python cannot go with"),
    ],
)
def test_wrong_use_is_refused_before_any_work(
    subject: object, ways: dict[str, Any], said: str
) -> None:
    with pytest.raises(tfdyno.UsageError, match=said):
        tfdyno.diagnose(subject, progress=False, **ways)
    assert not Path("asked.json").exists()


def test_a_script_that_fails_and_one_that_is_stopped_raise() -> None:
    Path("seen.json").write_text(json.dumps({"fail": "KeyError: no label"}))
    with pytest.raises(tfdyno.UsageError, match="failed at step 3"):
        tfdyno.diagnose("train.py", progress=False)
    found = {"facts": to_builtins(FACTS), "stopped": "SIGTERM"}
    Path("seen.json").write_text(json.dumps(found))
    with pytest.raises(KeyboardInterrupt):
        tfdyno.diagnose("train.py", progress=False)


def test_a_workload_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    judged_as(monkeypatch, DIAGNOSIS)
    tfdyno.diagnose(tfdyno.Workload(reference="train.py", kind="script"), progress=False,
                    fit_number=2)  # fmt: skip
    assert asked()["workload"]["fit_number"] == 2


@pytest.mark.tf
def test_a_model_is_told_where_its_data_and_its_step_can_be_looked_at() -> None:
    code = """
import keras, tfdyno
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(2)])
try:
    tfdyno.diagnose(model, progress=False)
except tfdyno.UsageError as error:
    print(error)
"""
    assert forked(code).splitlines()[-1] == (
        "Sequential cannot be diagnosed: its steps run in a fresh process, which has no way to the "
        "data and callbacks of this; give the script that trains it, or 'file.py:function' that "
        "returns (model, data); model.save('model.keras') and 'model.keras' tell of its step "
        "alone, on a random batch."
    )


def test_a_backend_that_there_is_not_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("model.fit(x)\n")
    with pytest.raises(tfdyno.UsageError, match="is not one of tensorflow, jax"):
        tfdyno.diagnose(tmp_path / "train.py", backend="torch", progress=False)  # type: ignore[arg-type]
