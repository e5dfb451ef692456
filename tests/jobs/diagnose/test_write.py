"""jobs/diagnose_write: the recipe of what was kept, and a diff that applies to the user's file."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tests.view.diagnoses import FACTS, SETTINGS, fixed

from tfdyno.core.base.errors import UsageError
from tfdyno.core.measure.fix_proof import ProvenDiagnosis
from tfdyno.core.measure.step_facts import InputFacts, StageFacts, StepFacts
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.recipe.recipe_file import read_recipe
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.jobs.diagnose.write import DIFF_NAME, check_folder, suggestion, written

SCRIPT = """\
import tensorflow as tf

ds = tf.data.Dataset.range(9).map(parse)
model.fit(ds.batch(3))
"""
CHANGED = SCRIPT.replace("map(parse)", "map(parse, num_parallel_calls=tf.data.AUTOTUNE)").replace(
    "ds.batch(3)", "ds.batch(3).prefetch(tf.data.AUTOTUNE)"
)


def facts(place: str = "train.py") -> StepFacts:
    stages = (
        StageFacts(title="range", kind="range", place=f"{place}:3"),
        StageFacts(title="map(parse)", kind="map", place=f"{place}:3"),
        StageFacts(title="batch", kind="batch", place=f"{place}:4"),
    )
    return replace(FACTS, input=InputFacts(batch_s=(0.2,), stages=stages))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(SCRIPT)
    return tmp_path


def test_the_recipe_is_written_with_what_each_setting_gained(folder: Path) -> None:
    (folder / "out").mkdir()
    workload = parse_reference("train.py")
    files = written(Path("out"), fixed().proven, Recipe(), facts(), workload)
    assert files == (Path("out/recipe.toml"), Path("out") / DIFF_NAME)
    assert read_recipe(files[0]) == fixed().proven.recipe
    text = files[0].read_text()
    assert "# input.sequential_map: 2.41x as fast (2.35 to 2.47)." in text
    assert text.startswith("# What tfdyno diagnose has proven")


def test_the_diff_is_of_the_script_and_not_of_a_file_of_its_name_elsewhere(folder: Path) -> None:
    (folder / "deep").mkdir()
    (folder / "deep" / "train.py").write_text(SCRIPT)
    (folder / "train.py").write_text(SCRIPT.replace("model.fit", "other.fit"))
    found = suggestion(SETTINGS, facts(), parse_reference("deep/train.py"))
    assert "a/deep/train.py" in found
    assert "other.fit" not in found


@pytest.mark.parametrize(("old", "new"), [("\n", "\r\n"), ("import", "\x0cimport")])
def test_the_diff_applies_whatever_ends_the_lines(folder: Path, old: str, new: str) -> None:
    (folder / "train.py").write_bytes(SCRIPT.replace(old, new).encode())
    found = suggestion(SETTINGS, facts(), parse_reference("train.py"))
    (folder / "s.diff").write_bytes(found.encode())
    done = subprocess.run(["git", "apply", "s.diff"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (folder / "train.py").read_bytes() == CHANGED.replace(old, new).encode()


def test_the_diff_applies_to_the_script(folder: Path) -> None:
    (folder / "s.diff").write_text(suggestion(SETTINGS, facts(), parse_reference("train.py")))
    done = subprocess.run(["git", "apply", "s.diff"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (folder / "train.py").read_text() == CHANGED


def test_a_file_without_a_last_line_end_has_a_diff_too(folder: Path) -> None:
    (folder / "train.py").write_text(SCRIPT.rstrip("\n"))
    text = suggestion({"input.prefetch": -1}, facts(), parse_reference("train.py"))
    assert text.count("\\ No newline at end of file\n") == 2
    (folder / "s.diff").write_text(text)
    assert subprocess.run(["git", "apply", "s.diff"], check=False).returncode == 0
    assert (folder / "train.py").read_text().endswith(".prefetch(tf.data.AUTOTUNE))")


def test_a_file_is_found_beside_the_script(folder: Path) -> None:
    (folder / "code").mkdir()
    (folder / "code" / "rows.py").write_text(SCRIPT)
    (folder / "code" / "train.py").write_text("import rows\n")
    text = suggestion(SETTINGS, facts("rows.py"), parse_reference("code/train.py"))
    assert text.startswith("--- a/code/rows.py\n+++ b/code/rows.py\n")


def test_settings_of_the_training_are_written_into_the_script_alone(folder: Path) -> None:
    (folder / "code").mkdir()
    (folder / "code" / "rows.py").write_text(SCRIPT + "model.compile('sgd', 'mse')\n")
    (folder / "code" / "train.py").write_text("import rows\nmodel.compile('adam')\n")
    settings = {**SETTINGS, "execution": "xla", "batch_size": 64}
    text = suggestion(settings, facts("rows.py"), parse_reference("code/train.py"))
    assert [line for line in text.splitlines() if line.startswith("+")] == [
        "+++ b/code/train.py", "+model.compile('adam', jit_compile=True)",
        "+++ b/code/rows.py",
        "+ds = tf.data.Dataset.range(9).map(parse, num_parallel_calls=tf.data.AUTOTUNE)",
        "+model.fit(ds.batch(3).prefetch(tf.data.AUTOTUNE))",
    ]  # fmt: skip


def test_the_batch_of_all_replicas_is_not_that_of_one(folder: Path) -> None:
    (folder / "train.py").write_text("model.fit(x, batch_size=32)\n")
    workload, one = parse_reference("train.py"), replace(FACTS, input=None)
    assert "+model.fit(x, batch_size=64)" in suggestion({"batch_size": 64}, one, workload)
    assert suggestion({"batch_size": 64}, replace(one, replica_count=2), workload) == ""


@pytest.mark.parametrize(
    ("settings", "place", "content"),
    [
        ({}, "train.py", SCRIPT),
        ({"steps_per_execution": 8}, "train.py", SCRIPT),  # nothing of a dataset
        (SETTINGS, "gone.py", SCRIPT),
        (SETTINGS, "train.py", "ds = ("),  # no Python
    ],
)
def test_without_a_place_in_the_code_there_is_no_diff(
    folder: Path, settings: dict[str, object], place: str, content: str
) -> None:
    (folder / "train.py").write_text(content)
    workload = parse_reference("train.py")
    assert suggestion(settings, facts(place), workload) == ""


def test_a_run_without_a_pipeline_gets_the_recipe_alone(folder: Path) -> None:
    (folder / "out").mkdir()
    files = written(Path("out"), fixed().proven, Recipe(), replace(FACTS, input=None),
                    parse_reference("train.py"))  # fmt: skip
    assert [file.name for file in files] == ["recipe.toml"]


def test_where_nothing_was_proven_the_recipe_says_so(folder: Path) -> None:
    (folder / "out").mkdir()
    base = Recipe(seed=3)
    nothing = ProvenDiagnosis(diagnosis=fixed().proven.diagnosis, recipe=base)
    (file,) = written(Path("out"), nothing, base, facts(), parse_reference("train.py"))
    assert file.read_text().startswith("# tfdyno diagnose has proven nothing to be faster")
    assert read_recipe(file) == base


def test_a_folder_that_cannot_be_written_is_refused_before_any_work(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot write to train\.py: it is a file"):
        check_folder(Path("train.py"))
    with pytest.raises(UsageError, match=r"cannot write to train\.py/x: Not a directory"):
        check_folder(Path("train.py/x"))
    check_folder(Path("new/deep"))
    assert list((folder / "new" / "deep").iterdir()) == []
