"""cli/diagnose: options become a question, the answer is told, what stops it loses nothing."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.jobs import diagnose_child
from tests.jobs.records import record, written
from tests.view.diagnoses import DIAGNOSIS, FACTS, HEALTHY, LEAK, only

from tfdyno.cli.main import main
from tfdyno.core.base.codec import to_builtins, to_json
from tfdyno.core.messages.diagnose import Limits
from tfdyno.core.messages.wire import decode
from tfdyno.core.recipe.recipe import from_settings
from tfdyno.view.base.text import shown_width

if TYPE_CHECKING:
    from tfdyno.core.measure.bottleneck import StepDiagnosis
    from tfdyno.core.measure.step_facts import StepFacts

ROOT = Path(__file__).parents[3]
PARENT = """
import json, sys
from pathlib import Path
from tests.jobs import bench_child, diagnose_child
from tfdyno.core.measure.bottleneck import StepDiagnosis
from tfdyno.core.base.codec import from_json
import tfdyno.jobs.diagnose.diagnose as job
import tfdyno.jobs.bench.run as run
import tfdyno.rules.bottleneck as rules
from tfdyno.cli.main import main
diagnosis = from_json(Path("diagnosis.json").read_bytes(), StepDiagnosis)
rules.diagnose = lambda facts: diagnosis
job.LOOK, run.RUN = diagnose_child.MADE_UP, bench_child.MADE_UP
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a script, whose steps are made up."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(ROOT), str(ROOT / "src"))))
    monkeypatch.setenv("TFDYNO_DATA", str(tmp_path / "data"))
    monkeypatch.setattr("tfdyno.jobs.diagnose.diagnose.LOOK", diagnose_child.MADE_UP)
    (tmp_path / "train.py").write_text("model.fit(x)\n")
    (tmp_path / "seen.json").write_text(json.dumps({"facts": to_builtins(FACTS)}))
    return tmp_path


def judged_as(monkeypatch: pytest.MonkeyPatch, diagnosis: StepDiagnosis) -> None:
    """Let the rules say this of whatever was seen."""

    def judge(_facts: StepFacts) -> StepDiagnosis:
        return diagnosis

    monkeypatch.setattr("tfdyno.rules.bottleneck.diagnose", judge)


def refused(capsys: pytest.CaptureFixture[str], *words: str, code: int = 2) -> str:
    """The one sentence of a refusal; nothing may be left behind."""
    before = sorted(str(path) for path in Path().rglob("*"))
    assert main(["diagnose", *words]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("tfdyno: ")
    assert err.count("\n") == 1, err
    assert "defect" not in err
    assert sorted(str(path) for path in Path().rglob("*")) == before
    return err


def test_the_answer_is_told_and_is_no_failure(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    judged_as(monkeypatch, DIAGNOSIS)
    assert main(["diagnose", "train.py", "-q", "--steps", "12", "--seconds", "3"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("The step waits for input: 61 % of its time.\n")
    assert "tfdyno diagnose train.py --fix" in out
    assert err == ""
    asked = json.loads(Path("asked.json").read_text())
    assert decode(asked["limits"], Limits) == Limits(own_s=0.0, most_s=3.0, least_steps=12)


@pytest.mark.parametrize(("diagnosis", "code"), [(only(HEALTHY), 0), (only(LEAK), 1)])
def test_only_what_ends_a_training_is_an_error(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    diagnosis: StepDiagnosis,
    code: int,
) -> None:
    judged_as(monkeypatch, diagnosis)
    assert main(["diagnose", "train.py", "--json", "-q"]) == code
    document = json.loads(capsys.readouterr().out)
    assert document["primary"]["class"] == diagnosis.primary.bottleneck_class
    assert sum(document["split_s"].values()) == pytest.approx(document["step_s"])


def test_the_words_of_the_script_and_the_recipe_reach_the_child(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    judged_as(monkeypatch, DIAGNOSIS)
    Path("r.toml").write_text("seed = 3\n")
    words = ["train.py", "--recipe", "r.toml", "--set", "batch_size=8", "--fit", "2", "--", "--lr"]
    assert main(["diagnose", *words, "0.1"]) == 0
    asked = json.loads(Path("asked.json").read_text())
    assert asked["workload"]["script_arguments"] == ["--lr", "0.1"]
    assert (asked["recipe"]["seed"], asked["recipe"]["batch_size"]) == (3, 8)
    typed = "--fix --fit 2 --recipe r.toml --set batch_size=8 -- --lr 0.1"
    assert f"tfdyno diagnose train.py {typed}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["gone.py"], "there is no file gone.py"),
        (["tran.py"], "there is no file tran.py; did you mean train.py?"),
        (["train.py", "--write", "out"], "--write needs --fix: only what is proven is written; "
                                         "add --fix or leave it out."),
        (["train.py", "--output", "r"], "--output needs --fix"),
        (["train.py", "--resume"], "--resume needs --fix"),
        (["train.py", "--steps", "0"], "steps"),
        (["train.py", "--seconds", "nan"], "seconds"),
        (["train.py", "--recipe", "gone.toml"], "gone.toml does not exist"),
        (["train.py", "--set", "input.prefech=2"], "did you mean input.prefetch"),
        (["train.py", "--set", "remat=blocks"], "remat cannot be set"),
        (["train.py", "--fix", "--write", "train.py"], "cannot write to train.py: it is a file"),
        (["train.py", "--backend", "jax", "--set", "threads_intra=2"],
         "threads_intra = 2 means nothing on the JAX backend"),
        (["train.py", "--backend", "torch"], "backend 'torch' is not one of tensorflow, jax"),
        (["task:resnet18-cifar10", "--backend", "jax"], "is of TensorFlow, and JAX cannot run it"),
        (["keras:ResNet50", "--", "--lr"], "takes no arguments"),
        ([""], "names no workload"),
    ],
)  # fmt: skip
def test_wrong_use_is_one_sentence(
    capsys: pytest.CaptureFixture[str], words: list[str], sentence: str
) -> None:
    assert sentence in refused(capsys, *words)


def test_a_script_that_fails_is_told_with_its_step(capsys: pytest.CaptureFixture[str]) -> None:
    Path("seen.json").write_text(json.dumps({"fail": "KeyError: no label"}))
    assert main(["diagnose", "train.py", "-q"]) == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", "tfdyno: train.py failed at step 3: KeyError: no label.\n")


def test_a_look_that_was_ended_tells_what_it_saw(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    judged_as(monkeypatch, DIAGNOSIS)
    found = {"facts": to_builtins(FACTS), "stopped": "SIGTERM"}
    Path("seen.json").write_text(json.dumps(found))
    assert main(["diagnose", "train.py", "--fix", "-q"]) == 130
    out, err = capsys.readouterr()
    assert out.startswith("The step waits for input")
    assert err == "tfdyno: stopped by Ctrl-C; What was found until then is printed.\n"


def test_ctrl_c_between_two_runs_of_a_fix_loses_nothing(folder: Path) -> None:
    (folder / "diagnosis.json").write_bytes(to_json(DIAGNOSIS))
    (folder / "plan.json").write_text(json.dumps({"2": {"sleep_s": 60}}))
    words = ["diagnose", "train.py", "--fix", "--write", "out", "--output", "r", "--json", "-q"]
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler) and None,  # noqa: PLW1509
    )  # fmt: skip
    runs = folder / "runs.jsonl"
    deadline_s = time.monotonic() + 60
    while not (runs.exists() and len(runs.read_text().splitlines()) == 3):
        assert time.monotonic() < deadline_s
        time.sleep(0.02)
    parent.send_signal(signal.SIGINT)
    out, err = parent.communicate(timeout=60)
    assert parent.returncode == 130, err
    document = json.loads(out)
    assert document["primary"]["cause"] == "input.sequential_map"
    assert document["left"] == ["input.sequential_map", "input.no_cache"]
    assert document["written"] == ["out/recipe.toml"]
    assert err.endswith("2 of 8 runs are kept in r; the same command with --resume goes on. "
                        "What was found until then is printed.\n")  # fmt: skip


PROFILE = ROOT / "tests/data/profiles/keras_fit_stalled.xplane.pb.gz"


def test_a_profile_from_elsewhere_is_diagnosed_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(PROFILE), "--json", "-q"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["primary"]["class"] == "input"
    assert sum(found["split_s"].values()) == pytest.approx(found["step_s"])


@pytest.mark.parametrize(
    ("words", "refused"),
    [
        (["--fix"], "--fix"),
        (["--set", "seed=1"], "--set"),
        (["--", "a"], "arguments"),
        (["--backend", "jax"], "--backend"),
    ],
)
def test_a_profile_cannot_be_run(
    words: list[str], refused: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diagnose", str(PROFILE), *words]) == 2
    assert f"{refused} cannot go with a profile: there is nothing to run" in capsys.readouterr().err


def test_a_page_is_written_beside_the_answer(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    judged_as(monkeypatch, DIAGNOSIS)
    assert main(["diagnose", "train.py", "-q", "--html", "page.html"]) == 0
    out, page = capsys.readouterr().out, Path("page.html").read_text()
    assert out.startswith("The step waits for input: 61 % of its time.\n")
    assert "<h1>The step waits for input: 61% of its time</h1>" in page
    assert re.search(r'<p class="date">20\d\d-\d\d-\d\d</p>', page)
    assert page.rstrip().endswith("</html>")


def test_a_page_that_cannot_be_written_is_refused_before_any_work(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "there is no folder gone" in refused(capsys, "train.py", "--html", "gone/page.html")
    assert not Path("asked.json").exists()


def test_a_profile_and_a_page_of_a_look_that_was_ended_are_written_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["diagnose", str(PROFILE), "-q", "--html", "profile.html"]) == 0
    assert "<h1>" in Path("profile.html").read_text()
    judged_as(monkeypatch, DIAGNOSIS)
    found = {"facts": to_builtins(FACTS), "stopped": "SIGTERM"}
    Path("seen.json").write_text(json.dumps(found))
    assert main(["diagnose", "train.py", "-q", "--html", "ended.html"]) == 130
    assert "The step waits for input" in Path("ended.html").read_text()
    capsys.readouterr()


def test_what_train_wrote_is_diagnosed_with_the_command_for_the_rest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    written(Path("run"), record(), from_settings({"precision": "mixed_float16", "seed": "3"}))
    assert main(["diagnose", "run", "--json", "--html", "run.html"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["primary"]["cause"] == "callback.validation_each_epoch"
    assert sum(found["split_s"].values()) == pytest.approx(found["step_s"])
    assert found["look"] == "tfdyno diagnose train.py --set precision=mixed_float16 -- --lr 0.1"
    assert found["environment"]["tensorflow"] == "2.21.0"
    assert found["look"] in Path("run.html").read_text()


@pytest.mark.parametrize("name", ["--fix", "--resume"])
def test_a_run_that_is_over_cannot_be_run(capsys: pytest.CaptureFixture[str], name: str) -> None:
    written(Path("run"), record())
    said = refused(capsys, "run", name)
    assert f"{name} cannot go with a run that is over: there is nothing to run" in said


def unsaid(text: str) -> list[str]:
    """Three English words in a row, but for what is code."""
    plain = re.sub(r"`[^`]*`|<code.*?</code>|<[^>]*>", "", text)
    return re.findall(r"\b[a-z]{2,} [a-z]{2,} [a-z]{2,}", plain)


def test_a_profile_is_told_in_chinese_with_the_figures_of_the_english_answer(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["diagnose", str(PROFILE), "-q"]) == 0
    english = capsys.readouterr().out
    monkeypatch.delenv("TFDYNO_LANG")
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    assert main(["diagnose", str(PROFILE), "-v", "--html", "page.html"]) == 0
    chinese, progress = capsys.readouterr()
    assert re.match("一步有 .*的时间在等数据", chinese)
    assert unsaid(chinese) == []
    bars = r"█+ +(\d+)%"
    assert re.findall(bars, chinese) == re.findall(bars, english) != []
    assert max(map(shown_width, chinese.splitlines())) <= 80
    assert "正在读取 keras_fit_stalled.xplane.pb.gz" in progress
    page = Path("page.html").read_text()
    assert '<html lang="zh-Hans">' in page
    assert "<h2>如何改</h2>" in page
    assert unsaid(page.partition("<main")[2].partition("<script")[0]) == []


def test_json_of_a_record_is_english_unless_a_language_is_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFDYNO_LANG", "zh")
    written(Path("run"), record())
    told = []
    for words in ([], ["--lang", "zh"]):
        assert main(["diagnose", "run", "--json", *words]) == 0
        told.append(json.loads(capsys.readouterr().out))
    plain, asked = told
    assert plain["primary"]["summary"].startswith("Validation takes ")
    assert asked["primary"]["summary"].startswith("验证占 ")
    assert set(plain) == set(asked)
    assert plain["primary"]["cause"] == asked["primary"]["cause"]
    assert plain["split_s"] == asked["split_s"]
    assert all(re.search("[\u4e00-\u9fff]", note) for note in asked["notes"])


def test_help_tells_what_fix_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", "--help"]) == 0
    out = capsys.readouterr().out
    assert "Say what holds a training back, and prove the fix." in out
    assert "--fix" in out


@pytest.mark.parametrize("words", [("--backend", "jax"), ()])
def test_a_script_of_jax_is_looked_at_there(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the option, or as the script itself says, which is told."""
    judged_as(monkeypatch, DIAGNOSIS)
    Path("seen.json").write_text(json.dumps({"facts": to_builtins(replace(FACTS, backend="jax"))}))
    Path("train.py").write_text('import os\nos.environ["KERAS_BACKEND"] = "jax"\nimport keras\n')
    assert main(["diagnose", "train.py", *words, "--json"]) == 0
    asked, told = json.loads(Path("asked.json").read_text()), capsys.readouterr()
    assert asked["backend"] == "jax"
    assert json.loads(told.out)["backend"] == "jax"
    says = "It trains on JAX, which line 2 of train.py names."
    assert (says in told.err) == (not words)


def test_what_jax_cannot_run_is_told_with_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    Path("tape.py").write_text(
        "import tensorflow as tf\nwith tf.GradientTape() as tape:\n    pass\n"
    )
    assert "tape.py cannot train on the JAX backend: line 2" in refused(
        capsys, "tape.py", "--backend", "jax"
    )
