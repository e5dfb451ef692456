"""cli/bench: options become a question, and a real bench of a small model is told and compared."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import pytest
from tests.view.choose.test_html import result

from tfdyno.cli.main import main
from tfdyno.cli.measure.bench import _backend, _comparable
from tfdyno.core.base.codec import from_json
from tfdyno.core.choose.workload import Workload
from tfdyno.core.measure.measurement import Verdict
from tfdyno.core.measure.measurement_document import measurement_of
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.store.results import Results

if TYPE_CHECKING:
    from tfdyno.core.measure.software import Backend

SCRIPT = """
import keras, numpy
model = keras.Sequential([keras.Input((16,)), keras.layers.Dense(4)], name="line")
model.compile("sgd", "mse")
for _ in range({fits}):
    model.fit(numpy.ones((640, 16)), numpy.ones((640, 4)), batch_size=32, epochs=2, verbose=0)
"""
FAILING = """
import keras
class Data(keras.utils.PyDataset):
    def __len__(self):
        return 100
    def __getitem__(self, index):
        import numpy
        if index == 2:
            raise KeyError("row 65 has no label")
        return numpy.ones((32, 16)), numpy.ones((32, 4))
model = keras.Sequential([keras.Input((16,)), keras.layers.Dense(4)])
model.compile("sgd", "mse")
model.fit(Data(), shuffle=False)
"""
ENDING = """
import keras, numpy
def rows():
    for _ in range(3):
        yield numpy.ones((32, 16)), numpy.ones((32, 4))
model = keras.Sequential([keras.Input((16,)), keras.layers.Dense(4)])
model.compile("sgd", "mse")
model.fit(rows(), steps_per_epoch=100)
"""

STEP = """
import tensorflow as tf
weights = tf.Variable(tf.ones((16, 4)))
@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((x @ weights - y) ** 2)
    weights.assign_sub(0.01 * tape.gradient(loss, weights))
    return loss
"""


TAPE = "import tensorflow as tf\nwith tf.GradientTape():\n    pass\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TFDYNO_DATA", str(tmp_path / "data"))
    (tmp_path / "train.py").write_text(SCRIPT.format(fits=1))
    return tmp_path


def tfdyno(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tfdyno", *words],
        capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def refused(capsys: pytest.CaptureFixture[str], *words: str, code: int = 2) -> str:
    """The one sentence of a refusal; nothing may be left behind."""
    before = sorted(str(path) for path in Path().rglob("*"))
    assert main(["bench", *words]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("tfdyno: ")
    assert err.count("\n") == 1
    assert "defect" not in err
    assert sorted(str(path) for path in Path().rglob("*")) == before
    return err


@pytest.mark.tf
def test_an_unmodified_script_is_measured_exported_and_kept(folder: Path) -> None:
    done = tfdyno("bench", "train.py", "--runs", "2", "--seconds", "2", "--label", "first",
                  "--export", "a.json", "--html", "a.html")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert result((folder / "a.html").read_text()) == json.loads((folder / "a.json").read_text())
    assert done.stdout.startswith("first: line at batch 32 on ")
    assert "samples/s" in done.stdout.splitlines()[0] + done.stdout.splitlines()[1]
    document: dict[str, Any] = json.loads((folder / "a.json").read_text())
    assert {"protocol", "environment", "samples_s", "median_s", "interval_s", "throughput_per_s",
            "peak_memory_bytes"} <= set(document)  # fmt: skip
    low_s, high_s = document["interval_s"]
    assert 0 < low_s <= document["median_s"] <= high_s
    assert document["throughput_per_s"] == pytest.approx(32 / document["median_s"])
    assert document["protocol"]["data"] == "own"
    results = Results(folder=folder / "data" / "results")
    assert results.measurements() == (measurement_of(document),)
    assert f"Kept as {results.folder}:{document['id'][:6]}" in done.stdout.replace("\n", " ")
    run = measurement_of(document).runs[0]
    assert run.telemetry.at_s
    assert run.telemetry.cost_ratio < 0.02  # with its opening; 0.005 in the long run


@pytest.mark.tf
def test_a_named_step_is_measured_by_the_shapes_of_its_arguments(folder: Path) -> None:
    (folder / "step.py").write_text(STEP)
    done = tfdyno("bench", "step.py:train_step", "--input-spec", "float32[batch,16]",
                  "--input-spec", "float32[batch,4]", "--batch-size", "8", "--runs", "1",
                  "--seconds", "1", "--json", "-q")  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert document["task"]["batch_size"] == 8
    assert document["task"]["title"] == "step:train_step"
    assert document["median_s"] > 0


@pytest.mark.tf
def test_two_recipes_are_told_one_after_the_other_with_json_for_both(folder: Path) -> None:
    (folder / "recipe.toml").write_text("seed = 1\n")
    done = tfdyno("bench", "train.py", "--runs", "2", "--seconds", "1", "--recipe", "recipe.toml",
                  "--against", "batch_size=64", "--output", "r", "--json", "-q")  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    a, b = measurement_of(document), measurement_of(document["against"])
    assert (a.task.batch_size, b.task.batch_size) == (32, 64)
    assert (a.recipe.seed, b.recipe.seed) == (1, 1)
    assert [run.order for run in (*a.runs, *b.runs)] == [0, 3, 1, 2]
    assert a.session == b.session
    assert document["comparison"]["verdict"] in get_args(Verdict)
    assert {one.id for one in Results(folder=Path("r")).measurements()} == {a.id, b.id}


@pytest.mark.tf
def test_the_locale_of_the_reader_decides_the_language_but_not_that_of_a_data_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TFDYNO_LANG")
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    done = tfdyno("bench", "train.py", "--runs", "1", "--seconds", "1", "-v",
                  "--set", "batch_size=64", "--export", "a.json", "--html", "a.html")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("line，批大小 64，")
    assert "首步" in done.stdout
    assert "已保存为" in done.stdout
    stages = [line.split("  ")[-1] for line in done.stderr.splitlines()]
    assert stages[:3] == ["第 1/1 次运行：正在启动", "第 1/1 次运行：正在导入 TensorFlow",
                          "第 1/1 次运行：正在构建 train.py"]  # fmt: skip
    page = (folder / "a.html").read_text()
    assert '<html lang="zh-Hans">' in page
    assert "只有一次运行" in page
    assert "One run only" not in page
    assert (folder / "a.json").read_text().isascii()
    assert result(page)["id"] == json.loads((folder / "a.json").read_text())["id"]


@pytest.mark.tf
@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (FAILING, "step 3"),
        (ENDING, "ended"),
        ("raise SystemExit(4)", "train.py"),
        ("import os; os._exit(0)", "run 1 of train.py"),
    ],
)
def test_a_workload_that_fails_is_one_sentence_and_runs_once(
    folder: Path, code: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "train.py").write_text(code)
    found = main(["bench", "train.py", "--runs", "3", "--seconds", "2", "-q", "--output", "r"])
    out, err = capsys.readouterr()
    assert found in (2, 3)
    assert (out, err.count("\n")) == ("", 1)
    assert sentence in err
    assert "defect" not in err
    assert Results(folder=Path("r")).measurements() == ()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--runs", "0"), "runs 0 is not possible; give a whole number, 1 or more."),
        (("--runs", "nan"), "runs nan is not possible"),
        (("--runs", "5", "--max-runs", "2"), "5 to 2 runs are not possible"),
        (("--seconds", "-1"), "seconds -1 is not possible; give more than 0."),
        (("--set", "batchsize=3"), "did you mean batch_size?"),
        (("--set", "remat=true"), "remat cannot be set"),
        (("--against", "speed"), "the setting 'speed' cannot be read; write key=value."),
        (("--set", "batch_size=3", "--batch-size", "4"), "--batch-size 4 and --set batch_size=3"),
        (("--recipe", "no.toml"), "no.toml does not exist."),
        (("--recipe", "train.py"), "train.py is not valid TOML"),
        (("--data", "sinthetic"), "did you mean synthetic?"),
        (("--data", "real"), "--data real goes with a standard task"),
        (("--target", "accuracy"), "the target 'accuracy' cannot be read; write accuracy=0.9."),
        (("--target", "accuracy=high"), "accuracy 'high' is not a number."),
        (("--target", "loss=1", "--data", "synthetic"), "--target needs real data"),
        (("--export", "a.txt"), "--export a.txt names no format; end it with one of .json"),
        (("--export", "no/a.json"), "cannot write no/a.json: there is no folder no."),
        (("--html", "no/a.html"), "cannot write no/a.html: there is no folder no."),
        (("--output", "train.py"), "results cannot be kept in train.py: there is a file"),
        (("--tf", "2.21"), "--tf goes with --container"),
        (("--container", "--tf", "1.15"), "the catalogue has no container image of TensorFlow"),
        (("--label", " "), "--label is empty"),
        (("--python", "no-such-python"), "--python no-such-python cannot be run"),
        (("--backend", "jax", "--container"), "--container does not go with JAX: the image holds"),
    ],
)
def test_wrong_use_is_one_sentence_and_starts_nothing(
    folder: Path, words: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sentence in refused(capsys, "train.py", *words)


def test_a_missing_workload_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "there is no file trian.py; did you mean train.py?" in refused(capsys, "trian.py")
    assert "task:resnet18-cifar10" in refused(capsys, "task:resnet19")


def test_nothing_to_resume_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "train.py", "--resume", "--output", "r"]) == 2
    assert capsys.readouterr().err == (
        "tfdyno: there is nothing to resume in r: no bench with this workload and these options "
        "stopped midway; leave --resume out, or name the folder with --output.\n"
    )


def test_the_container_command_repeats_what_was_typed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train.py", "--runs", "5", "--set", "visible_devices=1", "--", "--tf", "mine"]
    assert main(["bench", "--container", "--tf", "2.20", *words]) == 0
    text = capsys.readouterr().out
    assert "docker run --gpus all" in text  # visible_devices counts the cards inside
    assert "train.py --runs 5 --set visible_devices=1 -- --tf mine" in text
    assert "--container" not in text.split("bash -c")[1].split("\n")[0]
    assert sorted(path.name for path in folder.iterdir()) == ["train.py"]
    assert main(["bench", "train.py", "--container", "--json"]) == 0
    assert from_json(capsys.readouterr().out.encode(), dict)["image"]


def test_help_says_what_a_run_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--help"]) == 0
    out = capsys.readouterr().out
    assert "Every run is a fresh process" in out
    assert max(map(len, out.splitlines())) <= 100
    assert os.environ.get("TFDYNO_DEBUG") is None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--backend", "torch"), "backend 'torch' is not one of tensorflow, jax."),
        (("--against", "backend=torch"), "backend 'torch' is not one of tensorflow, jax."),
        (("--backend", "jax", "--execution", "graph"),
         "execution = graph means nothing on the JAX backend: JAX compiles every step with XLA; "
         "leave it out."),
        (("--against", "backend=jax"),
         "tape.py cannot train on the JAX backend: line 2, tf.GradientTape: A tape records "
         "operations of TensorFlow; what Keras computes on JAX is not among them; write instead: "
         "model.fit; in train_step: jax.value_and_grad over model.stateless_call; every line: "
         "tfdyno doctor --code tape.py --to jax."),
    ],
)  # fmt: skip
def test_a_backend_that_cannot_run_it_is_one_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    (folder / "tape.py").write_text(TAPE)
    assert refused(capsys, "tape.py", *words) == f"tfdyno: {said}\n"
    assert not (folder / "data" / "results").exists()


@pytest.mark.parametrize(
    ("backend", "other", "execution"),
    [("tensorflow", "jax", "auto"), ("jax", "jax", "graph"), ("tensorflow", "tensorflow", "graph"),
     ("jax", "tensorflow", "graph")],
)  # fmt: skip
def test_the_execution_of_tensorflow_is_not_asked_of_jax(
    backend: Backend, other: Backend, execution: str
) -> None:
    assert _comparable(Recipe(execution="graph"), backend, other).execution == execution


@pytest.mark.parametrize(
    ("asked", "other", "variable", "found"),
    [
        (None, "", "", "tensorflow"),
        (None, "", "jax", "jax"),
        ("tensorflow", "", "jax", "tensorflow"),
        (None, "jax", "jax", "tensorflow"),
        (None, "tensorflow", "", "jax"),
        ("jax", "jax", "", "jax"),
    ],
)
def test_the_backend_is_that_of_the_code_unless_two_are_compared(
    asked: str | None, other: str, variable: str, found: str, monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:  # fmt: skip
    monkeypatch.setenv("KERAS_BACKEND", variable)
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    script = tmp_path / "train.py"
    script.write_text("import keras\n")
    workload = Workload(reference=str(script), kind="script")
    assert _backend(asked, other, workload)[0] == found


def test_a_script_that_names_jax_is_measured_on_jax_and_it_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("KERAS_BACKEND", raising=False)
    script = tmp_path / "train.py"
    script.write_text('import os\nos.environ["KERAS_BACKEND"] = "jax"\nimport keras\n')
    backend, note = _backend(None, "", Workload(reference=str(script), kind="script"))
    assert (backend, "line 2 of train.py" in note) == ("jax", True)


def test_a_python_without_jax_is_one_sentence(folder: Path, tmp_path: Path) -> None:
    """A child whose import of JAX fails as it does where it is not installed."""
    (tmp_path / "jax.py").write_text("raise ImportError(\"No module named 'jax'\")\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "tfdyno", "bench", "train.py", "--backend", "jax"],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.strip().splitlines()[-1] == (
        "tfdyno: --backend jax needs JAX and Keras 3: No module named 'jax'; "
        "pip install 'tfdyno[trace]', or 'jax[cuda12]' and keras, on every node."
    )
