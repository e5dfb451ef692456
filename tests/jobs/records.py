"""Runs as ``train`` leaves them in a folder, made for tests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.view.trainings import ENVIRONMENT, OUTCOME

from tfdyno.core.base.codec import to_builtins
from tfdyno.core.choose.workload import Workload
from tfdyno.core.measure.measurement import Card, CardTelemetry, Telemetry
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.train.training import Pace
from tfdyno.store.run_folder import RunFolder, RunRecord

# Three epochs of 40 steps of 0.1 s; the first sample of each later one has its iterator in it.
PACE = Pace(
    samples_s=(0.1,) * 8 + (0.3,) + (0.1,) * 7 + (0.2,) + (0.1,) * 7,
    steps_per_sample=(5,) * 24, firsts=(8, 16), epochs=3, epoch_end_s=9.0, validation_s=6.0,
    callback_s=1.5, save_s=0.3, saves=3,
)  # fmt: skip
AT_S = tuple(float(at) for at in range(1, 31))
TELEMETRY = Telemetry(
    interval_s=1.0, at_s=AT_S, cpu_ratio=(0.5,) * 30, other_cpu_ratio=(0.02,) * 30,
    memory_bytes=(1 << 30,) * 30,
)  # fmt: skip
CARD = Card(name="NVIDIA L4", power_limit_w=72.0, graphics_clock_limit_hz=2.0e9)


def on_card(busy: float, **changed: Any) -> Telemetry:
    """With one card, that did nothing for the first 8 s."""
    lanes: dict[str, Any] = {
        "index": 0, "utilisation_ratio": (0.0,) * 8 + (busy,) * 22, "power_w": (50.0,) * 30,
        "graphics_clock_hz": (1.8e9,) * 30, "throttle": ((),) * 30,
    }  # fmt: skip
    return replace(TELEMETRY, cards=(CardTelemetry(**(lanes | changed)),))


def record(**changed: Any) -> RunRecord:
    """A training of 120 steps in 22 s, after 8 s of imports and building."""
    outcome = replace(OUTCOME, epochs=3, steps=120, seconds_s=22.0, replica_count=1, pace=PACE)
    base = RunRecord(
        status="finished",
        workload=Workload(reference="train.py", kind="script", script_arguments=("--lr", "0.1")),
        folder=str(Path.cwd()), started_at="2026-11-22T10:00:00+00:00", tfdyno="0.1.0",
        outcome=to_builtins(outcome), environment=ENVIRONMENT, telemetry=TELEMETRY,
    )  # fmt: skip
    return replace(base, **changed)


def written(folder: Path, one: RunRecord, recipe: Recipe | None = None) -> Path:
    """The folder with its run in it."""
    run = RunFolder(folder)
    run.prepare()
    run.write_recipe(recipe or Recipe(seed=7))
    run.write(one)
    return folder
