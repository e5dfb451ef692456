"""scripts/bench: a page and a JSON that say what was measured, where, and what could not be."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import compile_once, training
from benchmarks.clock import Failed, run
from benchmarks.compiling import cpu_between, spans
from benchmarks.figure import Figure
from benchmarks.page import document, page, write
from benchmarks.rows import GROUPS

ROOT = Path(__file__).parents[1]
FAST = Figure(group="startup", name="tfdyno gpus", unit="ms", value=80.0, target=150.0, runs=9)
SLOW = replace(FAST, name="tfdyno offers", value=151.0)
MISSING = replace(FAST, group="compile", name="for 5.x", value=None, note="no compiler: a|b")


def bench(*words: str) -> subprocess.CompletedProcess[str]:
    command = [str(ROOT / "scripts" / "bench"), *words]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_page_says_which_target_is_met_and_why_a_row_is_empty() -> None:
    text = page(document([FAST, SLOW, MISSING], {}))
    assert "| tfdyno gpus | 80 ms | 150 ms | yes | 9 |  |" in text
    assert "| tfdyno offers | 151 ms | 150 ms | no | 9 |  |" in text
    assert r"| for 5.x | – | 150 ms |  | 9 | not measured: no compiler: a\|b |" in text


def test_a_former_version_stands_beside_where_it_was_measured() -> None:
    text = page(document([replace(FAST, former=95.0), SLOW], {}))
    assert "| what | measured | before | target |" in text
    assert "| tfdyno gpus | 80 ms | 95 ms | 150 ms | yes | 9 |  |" in text
    assert "| tfdyno offers | 151 ms | – | 150 ms | no | 9 |  |" in text
    assert "before" not in page(document([FAST], {}))


def test_of_a_speed_the_target_is_the_least() -> None:
    speed = Figure(group="explain", name="log", unit="MB/s", value=29.0, target=30.0)
    assert speed.is_met is False
    assert replace(speed, value=30.0).is_met is True
    assert (FAST.is_met, SLOW.is_met, MISSING.is_met) == (True, False, None)
    assert replace(FAST, target=None).is_met is None


def test_rows_measured_earlier_stay_on_the_same_machine_only() -> None:
    first = document([FAST], {})
    assert set(document([MISSING], first)["groups"]) == {"startup", "compile"}
    elsewhere = {**first, "machine": "64 cores"}
    assert set(document([MISSING], elsewhere)["groups"]) == {"compile"}


def test_both_files_are_written_and_nothing_else(tmp_path: Path) -> None:
    made = document([FAST], {})
    write(tmp_path, made)
    assert {p.name for p in tmp_path.iterdir()} == {"performance.json", "performance.md"}
    assert json.loads((tmp_path / "performance.json").read_text()) == made


def test_a_clock_reads_the_cpu_time_of_the_command_and_not_of_the_wait() -> None:
    asleep = run([sys.executable, "-c", "import time; time.sleep(0.4); print('woke')"], {})
    assert asleep.stdout == "woke\n"
    assert asleep.wall_s >= 0.4
    assert asleep.cpu_s < asleep.wall_s - 0.38
    busy = "import time\nwhile time.process_time() < 0.4: pass"
    assert run([sys.executable, "-c", busy], {}).cpu_s >= 0.4


def test_a_clock_reads_when_the_first_words_come() -> None:
    code = "import time; time.sleep(0.2); print('first', flush=True); time.sleep(0.3); print('end')"
    made = run([sys.executable, "-c", code], {})
    assert made.stdout == "first\nend\n"
    assert 0.2 <= made.first_s <= made.wall_s - 0.3
    silent = run([sys.executable, "-c", "pass"], {})
    assert silent.first_s == silent.wall_s


def test_a_command_that_fails_gives_its_last_words() -> None:
    with pytest.raises(Failed, match="exit code 3: the reason"):
        run(
            [sys.executable, "-c", "import sys; print('the reason', file=sys.stderr); sys.exit(3)"],
            {},
        )


def test_start_up_is_measured_for_real_and_names_no_path(tmp_path: Path) -> None:
    done = bench("--quick", "--only", "startup", "--output", str(tmp_path))
    written: dict[str, Any] = json.loads((tmp_path / "performance.json").read_text())
    figures = written["groups"]["startup"]["figures"]
    assert [f["name"] for f in figures][:3] == [
        "tfdyno --help", "tfdyno --help over python -c pass", "tfdyno gpus",
    ]  # fmt: skip
    assert all(10 < f["value"] < 5000 for f in figures if f["unit"] == "ms"), done.stderr
    times = {f["name"].removesuffix(" over python -c pass"): f["value"] for f in figures[1::2]}
    assert 1.0 < times["tfdyno --help"] < times["tfdyno gpus"]
    text = (tmp_path / "performance.md").read_text()
    assert "cores" in text
    assert str(ROOT) not in text
    assert str(Path.home()) not in text


def test_explaining_a_log_is_measured_for_real(tmp_path: Path) -> None:
    done = bench("--quick", "--only", "explain", "--output", str(tmp_path))
    written: dict[str, Any] = json.loads((tmp_path / "performance.json").read_text())
    figures = written["groups"]["explain"]["figures"]
    assert [f["unit"] for f in figures] == ["MB/s", "MB"] * 4, done.stderr
    bars, _, recorded, texts = (f["value"] for f in figures[::2])
    assert bars > texts > recorded > 0.05
    assert all(20 < f["value"] < 150 for f in figures[1::2])


def test_overhead_is_the_median_over_epochs_of_turns_side_by_side(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    size, build = 3, [2e-3] * 3  # the first epoch, and the first turn of each, do not count
    epochs = {1e-3: 1.01, 2e-3: 1.02, 4e-3: 1.03}
    keras = [*build, *(s for turn_s in epochs for s in (2e-3, turn_s, turn_s))]
    loop = [*build, *(s for turn_s, f in epochs.items() for s in (9.0, turn_s * f, turn_s * f))]
    arms = {"keras": keras, "again": keras, "loop": loop, "graph": keras, "xla": loop}
    made = {"steps": 1, "turns_per_epoch": size, "batch": 32, "arms": arms}
    monkeypatch.setattr(training, "_job", lambda *_words: made)
    first, *_ = training.overhead(quick=True)
    assert (first.name, first.is_met) == ("tiny MLP", False)
    assert first.value == pytest.approx(2.0)
    told = "1.00 % to 3.00 %; Keras beside itself 0.00 %; steps of 2.00 ms in Keras"
    assert first.note.startswith(told)
    same, slower, *_ = training.replicas(quick=True)
    assert same.value == pytest.approx(1.0)
    assert slower.value == pytest.approx(1 / 1.02)


@pytest.mark.tf
@pytest.mark.slow
def test_advice_is_measured_for_real_beside_a_former_version(tmp_path: Path) -> None:
    done = bench("--quick", "--only", "advise", "--former", "HEAD", "--output", str(tmp_path))
    written: dict[str, Any] = json.loads((tmp_path / "performance.json").read_text())
    first, whole, again = written["groups"]["advise"]["figures"]
    assert first["name"] == "ResNet-50: first answer", done.stderr
    assert 0.5 < again["value"] < first["value"] <= whole["value"]
    assert 0.5 < again["former"] < first["former"] <= whole["former"]
    assert "tracing" in first["note"]


@pytest.mark.tf
@pytest.mark.slow
def test_the_train_loop_is_measured_for_real(tmp_path: Path) -> None:
    done = bench("--quick", "--only", "fit", "--only", "replicas", "--output", str(tmp_path))
    written: dict[str, Any] = json.loads((tmp_path / "performance.json").read_text())
    fit, two = (written["groups"][name]["figures"] for name in ("fit", "replicas"))
    assert (len(fit), len(two)) == (3, 6), done.stderr
    assert all(-90 < figure["value"] < 200 for figure in fit), fit
    assert all(0.02 < figure["value"] < 50 for figure in two), two


@pytest.mark.tf
@pytest.mark.slow
def test_a_look_is_measured_for_real(tmp_path: Path) -> None:
    done = bench("--quick", "--only", "look", "--output", str(tmp_path))
    written: dict[str, Any] = json.loads((tmp_path / "performance.json").read_text())
    (figure,) = written["groups"]["look"]["figures"]
    assert -50 < figure["value"] < 100, done.stderr


def test_an_unknown_group_is_wrong_use() -> None:
    done = bench("--only", "everything")
    assert done.returncode == 2
    assert all(name in done.stderr for name in GROUPS)


def test_the_time_of_xla_is_read_from_tensorflows_log() -> None:
    head = "I0000 00:00:17957134"
    lines = [
        f"{head}73.5 29 xla_compiler.cc:899] ====================================",
        f"{head}77.25 29 xla_compiler.cc:923] ====================================",
        f"{head}82.0 29 device_executable_persistor.h:386] Not persisting executable.",
        f"{head}82.5 29 device_compilation_profiler.cc:113] Compiled __inference_1 1 times",
        f"{head}90.0 29 xla_compiler.cc:923] ====================================",
        f"{head}90.5 29 device_compilation_profiler.cc:113] Compiled __inference_2 1 times",
    ]
    first, second = spans(lines)
    assert first == (1795713477.25, 1795713482.5)
    assert second == (1795713490.0, 1795713490.5)
    assert spans([]) == []


def test_cpu_time_of_a_span_lies_between_the_samples_around_it() -> None:
    samples = [(10.0, 0.0), (11.0, 2.0), (12.0, 3.0), (13.0, 7.0)]
    assert cpu_between(samples, (11.5, 12.5)) == 7.0 - 2.0
    assert cpu_between(samples, (9.0, 99.0)) == 7.0


def test_a_second_start_is_the_ratio_of_pairs_and_says_whether_losses_differ(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = {"xla_s": 10.0, "xla_cpu_s": 8.0, "first_s": 20.0, "first_cpu_s": 16.0, "losses": [1.0]}
    kept = {"xla_s": 0.5, "xla_cpu_s": 0.4, "first_s": 10.0, "first_cpu_s": 12.0, "losses": [1.0]}
    monkeypatch.setattr(compile_once, "_pair", lambda _framework, _model: (made, kept))
    xla, first = compile_once.compile_once(True)
    assert (xla.value, first.value) == (0.05, 0.75)
    assert (xla.is_met, first.is_met) == (True, None)
    assert xla.note == (
        "0.050 to 0.050; 8.00 s of CPU compiled, 0.40 s kept; 10.0 s and 0.5 s on the clock; "
        "losses the same, bit for bit"
    )
    kept["losses"] = [1.5]
    assert next(compile_once.compile_once(True)).note.endswith("losses differ in 1")
