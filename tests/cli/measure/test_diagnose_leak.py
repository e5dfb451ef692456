"""diagnose --leak, and how a look at real steps ends: by Ctrl-C, by a failure, by a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.jobs import diagnose_child
from tests.runtime.forks import NO_GPU
from tests.view.diagnoses import FACTS

from tfdyno.cli.main import main
from tfdyno.core.base.codec import to_builtins
from tfdyno.core.measure.step_facts import GrowthFacts, MemoryCourse, RetraceFacts

ROOT = Path(__file__).parents[3]
SCRIPTS = ROOT / "tests/data/bottlenecks"
MIB = 2.0**20
FLAT = MemoryCourse(
    where="host", counted_by="allocator", steps=200, low_bytes_per_step=-100.0,
    bytes_per_step=0.0, high_bytes_per_step=1024.0, end_bytes=2**30, free_bytes=2**34,
)  # fmt: skip
RISING = replace(FLAT, low_bytes_per_step=MIB, bytes_per_step=MIB, high_bytes_per_step=MIB)
GROWTH = GrowthFacts(
    where="host", bytes_per_step=MIB, low_bytes_per_step=MIB, high_bytes_per_step=MIB,
    kind="logs", suspects=("list of 90 entries held by train.py:19 (record.batches)",),
)  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a script."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(ROOT), str(ROOT / "src"))))
    monkeypatch.setenv("TFDYNO_DATA", str(tmp_path / "data"))
    (tmp_path / "train.py").write_text("model.fit(x)\n")
    return tmp_path


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the child's facts come from ``seen.json``."""
    monkeypatch.setattr("tfdyno.jobs.diagnose.diagnose.LOOK", diagnose_child.MADE_UP)


def seen(**found: object) -> None:
    Path("seen.json").write_text(json.dumps(found))


def leaking() -> object:
    return to_builtins(replace(FACTS, memory=(RISING,), growth=(GROWTH,)))


@pytest.mark.usefixtures("made_up")
def test_growth_is_told_first_and_ends_in_1(capsys: pytest.CaptureFixture[str]) -> None:
    seen(facts=leaking())
    assert main(["diagnose", "train.py", "--leak", "-q"]) == 1
    out = capsys.readouterr().out
    assert "host      grows by 1 MiB a step" in out
    # By hand: 16 GiB at 1 MiB a step are 16,384 steps of 418 ms: 1.9 hours.
    assert "full      in about 1.9 h at this rate" in out
    assert "cause     leak.logs   train.py:19" in out
    asked = json.loads(Path("asked.json").read_text())
    assert asked["limits"]["memory_alone"] is True


@pytest.mark.usefixtures("made_up")
def test_growth_is_told_in_chinese(capsys: pytest.CaptureFixture[str]) -> None:
    seen(facts=leaking())
    assert main(["diagnose", "train.py", "--leak", "-q", "--lang", "zh", "--html", "p.html"]) == 1
    out, page = capsys.readouterr().out, Path("p.html").read_text()
    assert out.startswith("有回调保留了每步所见的内容，内存每步增长 1 MiB：train.py:19")
    assert "主机      每步增长 1 MiB" in out
    assert "占满      按此速度约 1.9 h 后" in out
    assert "存活对象：train.py:19（record.batches）持有的 list，含 90 项" in out
    assert "主机内存约 1.9 h 后占满" in page
    assert "约 1.9 h 后占满" in page


@pytest.mark.usefixtures("made_up")
def test_graphs_of_new_traces_are_growth_and_end_in_1(capsys: pytest.CaptureFixture[str]) -> None:
    held = replace(GROWTH, kind="functions", suspects=("90 live tf.functions",))
    anew = RetraceFacts(
        function="f", traces=20, calls=40, seconds_s=40.0, differs="argument n: 1 -> 2"
    )
    seen(facts=to_builtins(replace(FACTS, memory=(RISING,), growth=(held,), retraces=(anew,))))
    assert main(["diagnose", "train.py", "--leak", "-q"]) == 1
    out = capsys.readouterr().out
    assert "cause     retrace.python_value" in out
    assert "host      grows by 1 MiB a step" in out


@pytest.mark.usefixtures("made_up")
def test_without_growth_its_bound_is_told_and_ends_in_0(capsys: pytest.CaptureFixture[str]) -> None:
    seen(facts=to_builtins(replace(FACTS, memory=(FLAT,))))
    assert main(["diagnose", "train.py", "--leak", "-q"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Memory does not grow: no more than 1 KiB a step, seen in 200 steps.\n")
    assert "leak" not in out


@pytest.mark.usefixtures("made_up")
def test_the_json_has_growth_beside_the_usual_keys(capsys: pytest.CaptureFixture[str]) -> None:
    seen(facts=leaking())
    assert main(["diagnose", "train.py", "--leak", "--json", "-q"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["primary"]["class"], found["primary"]["cause"]) == ("leak", "leak.logs")
    assert found["findings"][0] == found["primary"]
    assert found["split_s"] == {}
    assert found["growth"]["host"]["bytes_per_step"] == {"low": MIB, "best": MIB, "high": MIB}
    assert found["growth"]["host"]["full_in_steps"]["best"] == 16_384.0
    assert main(["diagnose", "train.py", "--json", "-q"]) == 1
    assert "growth" not in json.loads(capsys.readouterr().out)


@pytest.mark.usefixtures("made_up")
def test_the_page_shows_growth_and_its_line_instead_of_the_split(
    capsys: pytest.CaptureFixture[str],
) -> None:
    course = tuple((step, 2**30 + step * 2**20) for step in range(1, 401))
    rising = replace(RISING, course_bytes=course, end_bytes=course[-1][1])
    seen(facts=to_builtins(replace(FACTS, memory=(rising,), growth=(GROWTH,))))
    assert main(["diagnose", "train.py", "--leak", "--html", "page.html", "-q"]) == 1
    page = Path("page.html").read_text().replace("\u00a0", " ")
    # By hand, as in the text: 1.9 hours.
    assert "The host’s memory grows by 1 MiB a step and is full in about 1.9 h at this rate" in page
    assert "<h3>leak.logs · train.py:19</h3>" in page
    assert 'aria-label="What is in use of the host’s memory after each step: 1' in page
    assert 'id="split"' not in page
    assert "cause     leak.logs" in capsys.readouterr().out


@pytest.mark.usefixtures("made_up")
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--fix"], "--fix cannot go with --leak: only memory is looked at then"),
        (["--steps", "20"], "20 steps are too few to tell whether memory grows"),
        (["--steps", "0"], "steps"),
        (["--write", "out"], "--write needs --fix"),
    ],
)
def test_what_does_not_go_with_it_is_refused_before_any_work(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diagnose", "train.py", "--leak", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert sentence in err
    assert not Path("asked.json").exists()


def test_a_profile_has_no_steps_to_look_at(capsys: pytest.CaptureFixture[str]) -> None:
    profile = ROOT / "tests/data/profiles/keras_fit_stalled.xplane.pb.gz"
    assert main(["diagnose", str(profile), "--leak"]) == 2
    assert "--leak cannot go with a profile: there is nothing to run" in capsys.readouterr().err


@pytest.mark.usefixtures("made_up")
def test_a_failure_in_steady_steps_is_told_after_what_was_seen(
    capsys: pytest.CaptureFixture[str],
) -> None:
    failed = {"kind": "usage", "what": "train.py failed at step 90", "why": "line 7: KeyError: 'x'",
              "remedy": ""}  # fmt: skip
    seen(facts=to_builtins(FACTS), failed=failed)
    assert main(["diagnose", "train.py", "--fix", "-q"]) == 2
    out, err = capsys.readouterr()
    assert "resnet: batch 256, 60 steps" in out
    assert err == (
        "tfdyno: train.py failed at step 90: line 7: KeyError: 'x'. What was found until then is "
        "printed.\n"
    )


@pytest.mark.usefixtures("made_up")
def test_a_stop_before_there_are_steady_steps_says_how_far_it_came(
    capsys: pytest.CaptureFixture[str],
) -> None:
    seen(stopped="SIGTERM", seen="1 step ran: it took 1.2 s with compiling")
    assert main(["diagnose", "train.py", "-q"]) == 130
    out, err = capsys.readouterr()
    assert out == ""
    assert "1 step ran: it took 1.2 s with compiling: too few to say anything" in err


@pytest.mark.usefixtures("made_up")
def test_a_child_that_is_killed_ends_in_3(capsys: pytest.CaptureFixture[str]) -> None:
    seen(facts=to_builtins(FACTS), signal=signal.SIGKILL)
    assert main(["diagnose", "train.py", "-q"]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert "diagnosing train.py failed: it was killed by SIGKILL" in err


# Real steps

STEPS = """
import keras, numpy as np, tensorflow as tf
x = np.ones((200, 8), "float32")
m = keras.Sequential([keras.Input((8,)), keras.layers.Dense(4)])
kept = []
@tf.function
def step(a):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(m(a) ** 2)
    for w, g in zip(m.trainable_variables, tape.gradient(loss, m.trainable_variables)):
        w.assign_sub(0.01 * g)
    return loss
while True:
    kept.append(step(x) + tf.ones((999,)))
"""


def _started(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tfdyno", "diagnose", *words],
        env={**os.environ, **NO_GPU, "KERAS_BACKEND": "tensorflow"}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def _stopped_at(parent: subprocess.Popen[str], text: str) -> tuple[str, str]:
    """What it prints, stopped by Ctrl-C a moment after its progress has said so."""
    assert parent.stderr
    said = []
    for line in parent.stderr:
        said.append(line)
        if text in line:
            break
    else:
        raise AssertionError("".join(said))
    time.sleep(1.0)
    parent.send_signal(signal.SIGINT)
    out, err = parent.communicate(timeout=60)
    return out, err


@pytest.mark.tf
def test_ctrl_c_during_the_look_prints_what_was_seen() -> None:
    Path("train.py").write_text(STEPS)
    parent = _started("train.py", "--leak", "--seconds", "600", "--json", "-v")
    out, err = _stopped_at(parent, " steps, the process holds")
    assert (parent.returncode, bool(out)) == (130, True), err
    found = json.loads(out)
    assert any(note.startswith("It was stopped after ") for note in found["notes"])
    assert found["steps"] > 10
    assert err.endswith("tfdyno: stopped by Ctrl-C; What was found until then is printed.\n")


def _told(script: str, *words: str) -> dict[str, Any]:
    parent = _started(str(SCRIPTS / script), "--leak", "--json", "-q", *words)
    out, err = parent.communicate(timeout=150)
    assert out, err
    told: dict[str, Any] = json.loads(out)
    return told


@pytest.mark.tf
@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "cause", "place"),
    [
        ("tide_model.py", "leak.tensors", "tide_model.py:40"),
        ("style_bank.py", "leak.functions", "style_bank.py:48"),
        ("glacier_mass.py", "leak.logs", "glacier_mass.py:17"),
        ("radio_bursts.py", "leak.iterators", "radio_bursts.py:43"),
    ],
)
def test_each_planted_leak_is_named_with_its_line(script: str, cause: str, place: str) -> None:
    found = _told(script)
    assert (found["primary"]["cause"], found["primary"]["place"]) == (cause, place)
    assert found["growth"]["host"]["grows"]
    assert found["growth"]["host"]["full_in_s"]["best"] > 0


@pytest.mark.tf
@pytest.mark.slow
@pytest.mark.parametrize(
    "script",
    ["flower_cnn.py", "price_mlp.py", "log_transformer.py", "contrast_loop.py", "plankton_data.py"],
)
def test_a_healthy_training_is_not_accused(script: str) -> None:
    words = ("--", "--epochs", "4") if script == "price_mlp.py" else ()
    found = _told(script, *words)
    assert found["primary"]["cause"] == "healthy.no_growth"
    assert not found["growth"]["grows"]
