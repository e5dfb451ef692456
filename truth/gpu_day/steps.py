"""The steps in the order of their worth: what each runs, and what it is judged by."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpu_day import checks
from gpu_day.day import MODEL, TIMED, Day
from gpu_day.verdict import Check, Verdict, failed, judged, not_run, skipped

if TYPE_CHECKING:
    from gpu_day.command import Done, Running

PLANTED = Path("tests/data/bottlenecks")
XLA_SCRIPTS = ("chest_slices", "shop_baskets", "pulse_rates")
"""Whose planted cause stays under XLA, which by itself runs most of a step as CUDA graphs."""
GPU_MARK = "@pytest.mark.gpu\n"
QUICK = "mlp,conv1d_series,recommender,dcgan_generator"
"""Models of the plan that compile in seconds; the others take one to three minutes each."""
SETTING = "steps_per_execution=4"
"""On a card Keras takes XLA by itself, so that execution=xla would be no other setting."""
ROWS = 4
"""That a served model is asked for."""
REFERENCE = """
import json, sys, keras, numpy
model = keras.saving.load_model(sys.argv[1])
rows = numpy.random.default_rng(3).standard_normal((int(sys.argv[2]), *model.input_shape[1:]))
rows = rows.astype("float32")
told = {"rows": rows.tolist(), "answers": numpy.asarray(model.predict(rows, verbose=0)).tolist()}
json.dump(told, open(sys.argv[3], "w"))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing that is tried."""

    name: str
    title: str
    limit_s: float
    least_s: float
    """With less time left it is not begun."""
    try_it: Callable[[Day], Verdict]
    needs: tuple[str, ...] = ("tensorflow", "keras")
    """Packages that this Python has to have."""
    needs_tfdyno: bool = True
    """Whether it needs what tfdyno itself needs."""
    beside: int = 0
    """Steps in a row with the same number run side by side; 0: alone, as what is timed has to."""


def planned() -> tuple[Step, ...]:
    """All steps; a card that is lost on the way leaves the most that it could."""
    return (
        Step(name="doctor", title="doctor finds the card", limit_s=60, least_s=10,
             try_it=doctor),
        Step(name="train", title="Train under XLA, killed and resumed", limit_s=120,
             least_s=45, beside=1, try_it=train),
        *_diagnoses(),
        Step(name="tests", title="Tests that need a GPU", limit_s=90, least_s=15,
             needs=("pytest", "hypothesis"), beside=1, try_it=tests),
        Step(name="export", title="Export to ONNX", limit_s=60, least_s=20, beside=2,
             needs=("tensorflow", "keras", "onnx", "onnxruntime", "tf2onnx"), try_it=export),
        Step(name="serve", title="A served model", limit_s=90, least_s=25, beside=2,
             try_it=serve),
        Step(name="estimate", title="An estimate beside what is measured", limit_s=100,
             least_s=40, try_it=estimate),
        Step(name="calibrate", title="calibrate measures the card", limit_s=90, least_s=30,
             needs=(), try_it=calibrate),
        Step(name="truth", title="gpu_truth: the first rows", limit_s=90, least_s=45,
             needs=("keras", "numpy"), needs_tfdyno=False, try_it=truth),
        Step(name="alike", title="bench: the same against itself", limit_s=150, least_s=50,
             try_it=alike),
        Step(name="setting", title="bench: against a setting", limit_s=150, least_s=50,
             try_it=setting),
        Step(name="tune", title="tune with four trials", limit_s=180, least_s=60,
             needs=("tensorflow", "keras", "optuna"), try_it=tune),
    )  # fmt: skip


def _diagnoses() -> tuple[Step, ...]:
    """The planted scripts whose cause is one on any device."""
    names = ("chest_slices", "gesture_net", "fluid_cells", "pulse_rates", "shop_baskets",
             "chat_lengths", "iris_mlp", "tide_model")  # fmt: skip
    return tuple(
        Step(name=f"diagnose:{name}", title=f"diagnose {name}.py", limit_s=75, least_s=20,
             beside=1, try_it=partial(diagnose, script=name))
        for name in names
    )  # fmt: skip


def doctor(day: Day) -> Verdict:
    """Look at the machine, TensorFlow in a child included."""
    done = day.tfdyno("doctor", "--json", "--quiet")
    return _of(done, lambda told: checks.of_doctor(told, cpu=day.cpu))


def estimate(day: Day) -> Verdict:
    """Estimate a step, then measure it under the same settings."""
    if day.card is None:
        return skipped("there are estimates for cards only")
    shared = day.shared()
    options = ["--batch-size", "1024", "--precision", shared["precision"],
               "--execution", shared["execution"], "--json", "--quiet"]  # fmt: skip
    told = day.tfdyno("estimate", str(MODEL), "--gpu", day.card.name, *options)
    if not told.document:
        return _told_nothing(told)
    measured = _bench(day, *options, "--data", "synthetic", runs=1, model=MODEL)
    return _of(measured, lambda found: checks.of_estimate(told.document, found))


def diagnose(day: Day, *, script: str) -> Verdict:
    """Say what holds back a script whose cause is known; with CUDA graphs where there are some."""
    case = _case(day.root, script)
    words = ["diagnose", str(day.root / PLANTED / f"{script}.py"), "--seconds", "3", "--json",
             "--quiet"]  # fmt: skip
    if not day.cpu and script in XLA_SCRIPTS:
        words += ["--set", "execution=xla"]
    words += ["--", *case["arguments"].split()] if case["arguments"] else []
    done = day.tfdyno(*words)
    return _of(done, lambda told: checks.of_diagnosis(told, case["class"], cpu=day.cpu))


def _case(root: Path, script: str) -> dict[str, str]:
    with (root / PLANTED / "truth.csv").open(newline="", encoding="utf-8") as file:
        return next(row for row in csv.DictReader(file) if row["script"] == f"{script}.py")


def train(day: Day) -> Verdict:
    """Train to the end; again, killed after a checkpoint, and on from there: the same losses."""
    runs = day.folder("runs")
    for name in ("whole", "broken"):
        shutil.rmtree(runs / name, ignore_errors=True)
    settings = [
        word for name, value in day.shared().items() for word in ("--set", f"{name}={value}")
    ]
    words = ["train", str(MODEL), *settings, "--set", "seed=7", "--checkpoint-every", "4",
             "--json", "--quiet"]  # fmt: skip
    whole = day.tfdyno(*words, "--output", str(runs / "whole"))
    if not whole.document:
        return _told_nothing(whole)
    with day.started(*words, "--output", str(runs / "broken")) as running:
        came = running.wait(day.left_s, until=lambda: _newest(runs / "broken") > 0)
        running.signal(signal.SIGKILL)
    day.done.append(running.done(cut=not came))
    if not came:
        return not_run("there was no checkpoint before its time was up")
    killed_at = _newest(runs / "broken")
    resumed = day.tfdyno("train", str(MODEL), "--output", str(runs / "broken"), "--resume",
                         "--json", "--quiet")  # fmt: skip
    return _of(resumed, lambda told: [
        *checks.of_recipe(whole.document, day.shared()),
        *checks.of_resume(_losses(whole.document), _losses(told), killed_at=killed_at),
    ])  # fmt: skip


def _losses(told: dict[str, Any]) -> list[float]:
    found: list[float] = told["history"].get("loss", [])
    return found


def _newest(folder: Path) -> int:
    """Step of the newest checkpoint; 0: there is none."""
    found = (folder / "checkpoints").glob("step-*.json")
    return max((int(path.stem.split("-")[1]) for path in found), default=0)


def alike(day: Day) -> Verdict:
    """Measure a run in turns with itself."""
    done = _bench(day, "--against", "execution=auto", "--json", "--quiet")
    return _of(done, checks.of_alike)


def setting(day: Day) -> Verdict:
    """Measure a run in turns with the same, where several steps are one call."""
    done = _bench(day, "--against", SETTING, "--json", "--quiet")
    return _of(done, lambda told: checks.of_setting(told, SETTING))


def _bench(day: Day, *words: str, runs: int = 3, model: Path = TIMED) -> Done:
    """Measure a model; a comparison needs three runs of each side."""
    seconds = "20" if day.cpu else "3"  # until a step is steady
    times = ("--runs", str(runs), "--max-runs", str(runs), "--seconds", seconds)
    return day.tfdyno("bench", str(model), *times, "--output", str(day.folder("results")), *words)


def calibrate(day: Day) -> Verdict:
    """Measure the card for estimates, in half a minute."""
    done = day.tfdyno("calibrate", "--seconds", "30", "--json", "--quiet")
    return _of(done, checks.of_calibration)


def truth(day: Day) -> Verdict:
    """Measure the first steps of the plan that estimates are scored by."""
    minutes = min(1.0, max(0.5, (day.left_s - 20.0) / 60.0))
    words = [day.python, "-m", "gpu_truth.main", "--minutes", f"{minutes:.2f}", "--json",
             "--output", str(day.out / "steps.jsonl")]  # fmt: skip
    words += ["--device", "cpu", "--only", "mlp"] if day.cpu else ["--shared", "--only", QUICK]
    done = day.run(words)
    return _of(done, checks.of_truth)


def export(day: Day) -> Verdict:
    """Export what was trained, compared with the model on the same inputs."""
    model = day.out / "runs" / "whole" / "model.keras"
    if not model.exists():
        return skipped("there is no trained model: the step train has not ended")
    target = day.folder("exported") / "model.onnx"
    done = day.tfdyno("export", str(model), "--to", "onnx", "--output", str(target), "--force",
                      "--no-measure", "--json", "--quiet")  # fmt: skip
    return _of(done, checks.of_export)


def serve(day: Day) -> Verdict:
    """Serve what was trained, and compare its answers with the model's own."""
    model = day.out / "runs" / "whole" / "model.keras"
    if not model.exists():
        return skipped("there is no trained model: the step train has not ended")
    with day.started("serve", str(model), "--port", "0", "--json", "--quiet") as running:
        ready = running.wait(day.left_s, until=lambda: bool(_line(running)))
        if not ready or running.process.poll() is not None:
            return _never_served(day, running)
        told = json.loads(_line(running))
        answers = _asked(day, told["url"], model)
        running.process.send_signal(signal.SIGTERM)
        running.wait(10.0)
    day.done.append(running.done())
    return answers


def _line(running: Running) -> str:
    text = running.output.read_text(encoding="utf-8", errors="replace")
    return text.partition("\n")[0] if "\n" in text else ""


def _never_served(day: Day, running: Running) -> Verdict:
    is_over = running.process.poll() is not None
    running.signal(signal.SIGKILL)
    done = running.done(cut=not is_over)
    day.done.append(done)
    said = done.last_words
    if "--setup" in said:
        return skipped(said)
    return failed(said or "it ended without a word") if is_over else not_run("its time was up")


def _asked(day: Day, url: str, model: Path) -> Verdict:
    """Ask the server what the model itself is asked."""
    file = day.folder("work") / "answers.json"
    own = day.run([day.python, "-c", REFERENCE, str(model), str(ROWS), str(file)],
                  KERAS_BACKEND="tensorflow", TF_FORCE_GPU_ALLOW_GROWTH="true")  # fmt: skip
    if own.code != 0:
        return failed(f"the model itself did not answer: {own.last_words}")
    told = json.loads(file.read_text(encoding="utf-8"))
    request = urllib.request.Request(
        f"{url}:predict",
        data=json.dumps({"instances": told["rows"]}).encode(),
        headers={"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=30.0) as answer:
            served = json.load(answer)["predictions"]
    except (OSError, ValueError, KeyError, urllib.error.URLError) as error:
        return failed(f"the server did not answer: {error}")
    return judged(checks.of_answers(served, told["answers"]))


def tune(day: Day) -> Verdict:
    """Try four recipes, each measured; the answer so far counts where time is up."""
    folder = day.folder("tuning")
    shutil.rmtree(folder)
    done = day.tfdyno(
        "tune", str(TIMED), "--trials", "4", "--runs", "2", "--seconds", "2", "--keep-batch",
        "--space", "execution=auto,xla", "--space", "steps_per_execution=1,4",
        "--output", str(folder), "--json", "--quiet",
    )  # fmt: skip
    return _of(done, checks.of_tuning)


def tests(day: Day) -> Verdict:
    """Run the tests of the suite that are marked so."""
    if day.cpu:
        return skipped("they need an NVIDIA GPU")
    if not shutil.which("nvidia-smi"):
        return skipped("nvidia-smi is not installed, by which the tests know that there is a GPU")
    files = marked_files(day.root)
    if not files:
        return skipped("no test is marked gpu")
    words = [day.python, "-m", "pytest", "-m", "gpu", "-q", "-p", "no:cacheprovider",
             "--rootdir", str(day.root), *files]  # fmt: skip
    path = f"{day.root}{os.pathsep}{day.environment.get('PYTHONPATH', '')}"
    done = day.run(words, PYTHONPATH=path)
    if done.cut:
        return not_run("its time was up")
    lines = done.text.strip().splitlines()
    said = lines[-1] if lines else done.last_words
    return judged([Check(what="tests", found=said, wanted="all passed", ok=done.code == 0)])


def marked_files(root: Path) -> list[str]:
    """Test files that say of a test that it needs a GPU: to read all of them takes a minute."""
    files = sorted((root / "tests").rglob("test_*.py"))
    return [str(file) for file in files if GPU_MARK in file.read_text(encoding="utf-8")]


def _of(done: Done, judge: Callable[[dict[str, Any]], list[Check]]) -> Verdict:
    """Judge what a command printed; without that, why there is none."""
    told = done.document
    if not told:
        return _told_nothing(done)
    verdict = judged(judge(told))
    if verdict.status == "failed" and done.cut:
        return Verdict(status="not run", why=f"its time was up ({verdict.why})",
                       checks=verdict.checks)  # fmt: skip
    return verdict


def _told_nothing(done: Done) -> Verdict:
    """What the end of a command without an answer means."""
    if done.cut:
        return not_run("its time was up")
    words = Path(done.words[0]).name + " " + " ".join(done.words[1:4])
    if done.code < 0:
        return failed(f"{words} was ended by signal {-done.code}: {done.last_words}")
    return failed(f"{done.last_words or words} (exit code {done.code})")
