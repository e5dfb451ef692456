"""A folder or a file that train or bench wrote is told through the same rules as a look."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.jobs.records import CARD, on_card, record, written
from tests.view import benches
from tests.view.trainings import ENVIRONMENT

from tfdyno.core.base.errors import UsageError
from tfdyno.core.recipe.recipe import Recipe, from_settings
from tfdyno.jobs.diagnose.recorded_run import examined_run, is_run
from tfdyno.store.results import Results
from tfdyno.view.bench.export import json_text

BENCHED = Path(__file__).parents[2] / "data/measurements/a.json"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("model.fit(x)\n")
    return tmp_path


def stored(folder: str, **changed: object) -> str:
    """A folder of results with one measurement; its id."""
    one = benches.on_cpu(**changed)  # type: ignore[arg-type]
    Results(folder=Path(folder)).start(one, key="k")
    return one.id


def test_what_train_and_bench_write_is_known_by_its_files() -> None:
    written(Path("run"), record())
    name = stored("results")
    Path("b.json").write_bytes(BENCHED.read_bytes())
    Path("logs").mkdir()
    runs = ("run", "run/run.json", "results", "results/results.sqlite", f"results:{name[:4]}",
            "b.json")  # fmt: skip
    assert [one for one in runs if not is_run(one)] == []
    others = ("train.py", "train.py:build", "logs", "task:lstm", "gone", "x:y", "")
    assert [one for one in others if is_run(one)] == []


def test_a_json_file_that_is_not_there_is_told_as_a_file() -> None:
    Path("bench.json").write_bytes(BENCHED.read_bytes())
    assert is_run("bnch.json")
    with pytest.raises(UsageError, match=r"there is no 'bnch\.json'; did you mean bench\.json\?"):
        examined_run("bnch.json")


def test_logs_of_tensorboard_in_the_folder_of_a_run_make_it_no_profile() -> None:
    run = written(Path("run"), record())
    (run / "tensorboard").mkdir()
    (run / "tensorboard/events.out.tfevents.1").touch()
    assert is_run("run")


def test_validation_of_a_recorded_training_leads() -> None:
    written(Path("run"), record())
    found = examined_run("run").examined
    # 40 steps of 0.1 s and 2 + 1 + 0.1 s beside them: 7.1 s an epoch, 2 s of it validation
    assert found.diagnosis.primary.cause == "callback.validation_each_epoch"
    assert found.diagnosis.step_s == pytest.approx(7.1 / 40)
    assert found.diagnosis.split_s["validation"] == pytest.approx(2.0 / 40)
    assert found.diagnosis.split_s["callback"] == pytest.approx(0.5 / 40)
    # the step itself, and what is left of the end of an epoch: neither validation nor callbacks
    assert found.diagnosis.split_s["unseen"] == pytest.approx(0.1 + 0.5 / 40)
    assert sum(found.diagnosis.split_s.values()) == pytest.approx(found.diagnosis.step_s)
    assert found.environment == ENVIRONMENT


def test_a_card_that_waits_is_told_with_what_tells_more() -> None:
    place = replace(ENVIRONMENT, device="gpu", cards=(CARD,))
    one = record(environment=place, telemetry=on_card(0.3))
    written(Path("run"), replace(one, outcome={**one.outcome, "pace": {}}))
    assert examined_run("run").examined.diagnosis.primary.cause == "host.idle_card"


def test_what_is_typed_to_look_has_the_settings_that_a_look_can_have() -> None:
    recipe = from_settings({"seed": "3", "precision": "mixed_float16", "ema": "0.9",
                            "input.prefetch": "2", "memory_growth": "true"})  # fmt: skip
    written(Path("run"), record(), recipe)
    run = examined_run("run")
    assert run.settings == {
        "precision": "mixed_float16", "input.prefetch": 2, "memory_growth": True,
    }  # fmt: skip
    assert (run.reference, run.arguments) == ("train.py", ("--", "--lr", "0.1"))


def test_a_script_is_named_from_where_the_user_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    written(Path("run"), record())
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    assert examined_run("../run").reference == "../train.py"
    Path("../train.py").unlink()
    assert examined_run("../run").reference == "train.py"  # as it was typed then


def test_a_bench_is_told_from_the_folder_by_id_and_from_a_file() -> None:
    name = stored("results", recipe=Recipe(precision="mixed_float16"))
    for place in ("results", f"results:{name[:6]}"):
        run = examined_run(place)
        assert run.examined.diagnosis.title == "small_resnet"
        assert run.settings == {"precision": "mixed_float16"}
    assert examined_run(str(BENCHED)).reference == "train.py"


def test_of_two_sides_the_first_is_told() -> None:
    told, comparison = benches.pair()
    Path("ab.json").write_text(json_text(told, comparison))
    found = examined_run("ab.json").examined
    assert found.diagnosis.step_s == pytest.approx(0.052, rel=0.1)
    assert any("two sides: this is the first" in note for note in found.facts.notes)


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("run/run.json", '{"version": 1', "is not valid JSON"),
        ("run/run.json", json.dumps({"status": "finished"}), "workload"),
        ("x.json", "{}", "x.json is not a result of tfdyno bench"),
        ("x.json", "", "x.json is not valid JSON"),
        ("results.sqlite", "SQLite, but not really, and long enough to be read", "is not a file"),
    ],
)
def test_a_damaged_record_is_one_sentence(file: str, text: str, said: str) -> None:
    Path("run").mkdir()
    Path("run/recipe.toml").touch()
    Path(file).write_text(text)
    with pytest.raises(UsageError, match=said):
        examined_run("run" if file.startswith("run/") else file)
