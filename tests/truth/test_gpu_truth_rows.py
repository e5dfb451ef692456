"""The form of measured steps, the plan, and what the driver tells of a card; nothing is run."""

from __future__ import annotations

import csv
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gpu_truth.card import NvmlMeter, SmiMeter, find_card, meter_of
from gpu_truth.main import OWN, main
from gpu_truth.plan import for_card, read_plan
from gpu_truth.rows import RowError, append_row, check_row, identity, read_rows

TRUTH = Path(__file__).parents[2] / "truth"
SMI = """#!/bin/sh
case "$*" in
*--query-gpu=name*) echo "NVIDIA T4, GPU-1, 550.54, 15360, 900, 0, 70.00, 7.5, {mig}" ;;
*--query-compute-apps*) {tenants} ;;
*--query-gpu=power*)
    printf '30.0, 1000, 5001\\n50.0, 1200, 5001\\n60.0, [N/A], 5001\\n61.'
    exec sleep 9 ;;
*) exit 6 ;;
esac
"""


NVML = """
import os
from types import SimpleNamespace

NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_DEVICE_MIG_ENABLE = 1, 2, 1
class NVMLError(Exception): pass
def nvmlInit(): pass
def nvmlDeviceGetHandleByIndex(index): return "card"
def nvmlDeviceGetHandleByUUID(uuid): return "card"
def nvmlDeviceGetMemoryInfo(card): return SimpleNamespace(total=80 << 30, used=1 << 30)
def nvmlDeviceGetUtilizationRates(card): return SimpleNamespace(gpu=99)
def nvmlDeviceGetEnforcedPowerLimit(card): raise NVMLError
def nvmlDeviceGetCudaComputeCapability(card): return [9, 0]
def nvmlDeviceGetMigMode(card): return [0, 0]
def nvmlDeviceGetName(card): return b"NVIDIA H100"
def nvmlDeviceGetUUID(card): return "GPU-9"
def nvmlSystemGetDriverVersion(): return "580.1"
def nvmlDeviceGetComputeRunningProcesses(card):
    return [SimpleNamespace(pid=os.getpid(), usedGpuMemory=5 << 20)] if USED else []
def nvmlDeviceGetPowerUsage(card): return 412345
def nvmlDeviceGetClockInfo(card, kind):
    if kind == NVML_CLOCK_MEM:
        raise NVMLError
    return 1980
def nvmlSystemGetProcessName(pid): raise NVMLError
"""


def install_nvml(patch: pytest.MonkeyPatch, *, used: bool) -> None:
    """A pynvml with one H100 that tells neither its power limit nor its memory clock."""
    module = ModuleType("pynvml")
    exec(f"USED = {used}\n{NVML}", vars(module))
    patch.setitem(sys.modules, "pynvml", module)


def a_row(**changes: object) -> dict[str, Any]:
    return {**read_rows(OWN)[0], **changes}


def install_smi(
    folder: Path, patch: pytest.MonkeyPatch, tenants: str = ":", mig: str = "[N/A]"
) -> None:
    """An nvidia-smi with one T4, as drivers print it."""
    program = folder / "nvidia-smi"
    program.write_text(SMI.replace("{tenants}", tenants).replace("{mig}", mig))
    program.chmod(0o755)
    patch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def test_the_ten_steps_of_the_h200_are_rows() -> None:
    rows = [row for row in read_rows(OWN) if row["gpu"] == "NVIDIA H200"]
    by_name = {(r["model"], r["precision"], r["execution"]): r["step_ms"] for r in rows}
    assert by_name["resnet50_224", "mixed_float16", "xla"] == 12.3633
    assert by_name["resnet50_224", "mixed_float16", "graph"] == 87.3467
    assert by_name["gpt2_small", "mixed_bfloat16", "xla"] == 45.8045


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"schema": 2}, "schema is 2, not 1"),
        ({"device": "cpu"}, "measured on a cpu, not on a gpu"),
        ({"precision": "float8"}, "precision is 'float8', not one of float32, tf32"),
        ({"batch": 0}, "batch is 0, not 1 or more"),
        ({"batch": 64.0}, "batch is 64.0, not a whole number"),
        ({"step_ms": math.nan}, "step_ms is nan, not a finite number"),
        ({"step_ms": 99.0}, "step_ms is 99.0, but the median of window_ms 12.3633"),
        ({"window_ms": []}, "window_ms is [], not a list of numbers above 0"),
        ({"window_ms": [1.0, -1.0]}, "not a list of numbers above 0"),
        ({"date": "yesterday"}, "date is 'yesterday', not like 2026-11-26"),
        ({"gpu": ""}, "gpu is '', not a text"),
        ({"peak_bytes": 1}, "current_bytes is above peak_bytes"),
        ({"memory_total_bytes": 1}, "peak_bytes is above memory_total_bytes"),
        ({"throughput": 5.0}, "unknown field throughput"),
        ({"shared": "no"}, "shared is 'no', not true or false"),
    ],
)
def test_a_damaged_or_foreign_row_is_told_in_a_sentence(
    changes: dict[str, object], told: str
) -> None:
    with pytest.raises(RowError) as error:
        check_row(a_row(**changes))
    assert told in str(error.value)


def test_every_missing_field_is_named() -> None:
    row = a_row()
    del row["peak_bytes"], row["driver"]
    with pytest.raises(RowError, match="driver, peak_bytes missing"):
        check_row(row)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", ":2: no JSON"),
        ("[1]\n", ":2: no table of fields"),
        (json.dumps({"schema": 1}), ":2: the line has no end"),
    ],
)
def test_a_damaged_line_is_named(line: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "steps.jsonl"
    append_row(path, a_row())
    with path.open("a") as file:
        file.write(line)
    with pytest.raises(RowError) as error:
        read_rows(path)
    assert told in str(error.value)


def test_versions_are_the_same_however_they_are_punctuated() -> None:
    ours = identity(a_row(framework_version="2.22.0.dev1"))
    assert ours == identity(a_row(framework_version="2.22.0-dev1+nv25.2"))
    assert ours != identity(a_row(framework_version="2.22.0.dev2"))
    assert ours != identity(a_row(framework_version="2.22.0.dev1", gpu="NVIDIA H100"))


def test_the_plan_has_no_step_twice_and_begins_with_kinds_that_nobody_published() -> None:
    steps = read_plan("tensorflow")
    assert len({step.name for step in steps}) == len(steps)
    with (TRUTH / "zoo_models.csv").open(newline="") as file:
        published = {raw["model"] for raw in csv.DictReader(file) if raw["source"] != "own"}
    first = {step.model for step in steps[:16]} - {"unet3d_128"}
    assert "lstm_text" in first
    assert not [model for model in first if model in published]


def test_jax_has_the_steps_under_xla_only() -> None:
    assert {step.execution for step in read_plan("jax")} == {"xla"}


def test_a_card_before_ampere_has_no_steps_in_tf32_or_bfloat16() -> None:
    steps = read_plan("tensorflow")
    turing = {step.precision for step in for_card(steps, (7, 5))}
    assert turing == {"float32", "mixed_float16"}
    assert len(for_card(steps, (8, 0))) == len(for_card(steps, None)) == len(steps)


def test_the_plans_models_have_builders_with_keras_own_batch_normalisation() -> None:
    source = """
import keras, zoo_today
from gpu_truth.plan import read_plan
missing = [s.model for s in read_plan("tensorflow") if not hasattr(zoo_today, s.model)]
print(missing, keras.layers.BatchNormalization._moments.__module__.split(".")[0])
"""
    environment = {**os.environ, "KERAS_BACKEND": "jax", "PYTHONPATH": str(TRUTH)}
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, env=environment
    )
    assert done.stdout.split() == ["[]", "keras"], done.stderr


def test_the_parent_needs_no_package() -> None:
    environment = {**os.environ, "PYTHONPATH": str(TRUTH)}
    command = [sys.executable, "-S", "-m", "gpu_truth.main", "--list", "--subset", "batch=2"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.stdout.splitlines()[-1] == "4 steps", done.stderr


def test_what_nvidia_smi_tells_of_a_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_smi(tmp_path, monkeypatch, tenants="echo '4711, /usr/bin/python3, 812'")
    card = find_card("0")
    assert card is not None
    assert card.capability == (7, 5)
    assert card.free_bytes == (15360 - 900) << 20
    assert card.fields["power_limit_w"] == 70.0
    assert card.in_use == "/usr/bin/python3 (process 4711, 812 MiB)"


def test_power_and_clocks_are_medians_and_a_cut_line_counts_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_smi(tmp_path, monkeypatch, tenants=f"echo '{os.getpid()}, python, 100'")
    meter = SmiMeter("GPU-1", os.getpid())
    meter.sample()
    time.sleep(1.0)  # until the program below has printed
    told = meter.figures()
    assert told == {
        "power_w": 50.0, "sm_mhz": 1100.0, "memory_mhz": 5001.0,
        "used_bytes": 900 << 20, "process_bytes": 100 << 20,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ["--only", "reznet50_224"],
            "'reznet50_224' is no model of the plan: did you mean resnet50_224",
        ),
        (["--subset", "mode=trian", "--list"], "did you mean train?"),
        (["--subset", "train", "--list"], "write it as KEY=VALUE"),
        (["--subset", "execution=graph", "--framework", "jax"], "under jax: ask for less"),
        (["--device", "cpu"], "--device cpu needs --output FILE"),
        (["--device", "cpu", "--output", str(OWN)], "is for cards"),
        (
            ["--device", "cpu", "--output", "/nowhere/x"],
            "cannot be written: there is no folder /nowhere",
        ),
        (["--device", "cpu", "--output", "/tmp"], "cannot be written: it is a folder"),
    ],
)
def test_wrong_use_is_one_sentence_and_exit_code_2(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert told in err
    assert err.count("\n") == 1


def test_what_the_drivers_library_tells_of_a_card(monkeypatch: pytest.MonkeyPatch) -> None:
    install_nvml(monkeypatch, used=False)
    card = find_card("0")
    assert card is not None
    assert card.fields == {
        "gpu": "NVIDIA H100", "driver": "580.1", "compute_capability": "9.0",
        "memory_total_bytes": 80 << 30,
    }  # fmt: skip
    assert card.in_use == "somebody unseen (it is 99 % busy)"


def test_what_a_card_does_not_tell_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    install_nvml(monkeypatch, used=True)
    meter = meter_of("GPU-9", os.getpid())
    assert isinstance(meter, NvmlMeter)
    meter.sample()
    meter.sample()
    assert meter.figures() == {
        "power_w": 412.345, "sm_mhz": 1980, "used_bytes": 1 << 30, "process_bytes": 5 << 20,
    }  # fmt: skip


def test_a_card_in_use_is_not_measured_and_who_uses_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install_smi(tmp_path, monkeypatch, tenants="echo '4711, /usr/bin/python3, 812'")
    words = ["--output", str(tmp_path / "o.jsonl")]
    assert main(words) == 2
    assert "NVIDIA T4 is in use by /usr/bin/python3 (process 4711, 812 MiB)" in (
        capsys.readouterr().err
    )
    assert main([*words, "--shared", "--dry-run"]) == 0
    assert not (tmp_path / "o.jsonl").exists()


def test_a_divided_card_is_not_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install_smi(tmp_path, monkeypatch, mig="Enabled")
    assert main(["--output", str(tmp_path / "o.jsonl"), "--dry-run"]) == 2
    assert "NVIDIA T4 is divided by MIG" in capsys.readouterr().err
