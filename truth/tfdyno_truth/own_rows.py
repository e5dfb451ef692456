"""Steps that were measured for tfdyno on a real card: ``truth/own/steps.jsonl``."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import msgspec

from tfdyno.catalog.gpus import find
from tfdyno.core.base.errors import UsageError
from tfdyno_truth.rows import TRUTH, Row

if TYPE_CHECKING:
    from pathlib import Path

STEPS = TRUTH / "own" / "steps.jsonl"
ZOO_TODAY = "zoo_today.py"
FIRST_NUMBER = 200_000
"""Number of the first row; those of the published tables are below."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnStep:
    """One line: a step as it was measured. Lines may have further keys."""

    model: str
    """Builder in ``truth/zoo_today.py``."""
    precision: Literal["float32", "tf32", "mixed_float16", "mixed_bfloat16", "float16", "bfloat16"]
    batch: int
    execution: Literal["xla", "graph"]
    mode: Literal["train", "infer"]
    backend: Literal["tensorflow", "jax"]
    framework_version: str
    gpu: str
    step_ms: float
    """Median of ``window_ms``."""
    window_ms: tuple[float, ...]
    peak_bytes: int
    """The most that the allocator had given out in the timed steps."""
    current_bytes: int
    """What it had given out after them."""
    first_step_s: float
    """From the call to the end of the first step, tracing and compiling included."""
    process_bytes: int = 0
    """Of the whole process by NVML: context and what autotuning reserved included."""
    params_m: float = 0.0
    driver: str = ""
    xla_flags: str = ""
    power_w: float = 0.0
    sm_mhz: float = 0.0
    """Clock of the multiprocessors while measuring."""


def own_rows(path: Path = STEPS) -> list[Row]:
    """The measured steps as rows of the table ``own``."""
    return [row for row, _ in own_steps(path)]


def own_steps(path: Path = STEPS) -> list[tuple[Row, OwnStep]]:
    """Each row with everything that was measured with it.

    Raises:
        UsageError: A line is damaged, or of a model, card or precision that is not known.
    """
    kinds = _kinds(TRUTH / "zoo_models.csv")
    found = []
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                step = _step(line, f"{path}, line {number}")
                found.append((_row(step, kinds, number, f"{path}, line {number}"), step))
    return found


def _kinds(path: Path) -> dict[str, str]:
    """Kind of every builder that a row can name."""
    with path.open(newline="") as file:
        return {
            raw["workload"].rpartition(":")[2]: raw["kind"]
            for raw in csv.DictReader(file)
            if raw["workload"]
        }


def _step(line: str, where: str) -> OwnStep:
    try:
        step = msgspec.json.decode(line, type=OwnStep)
    except msgspec.MsgspecError as error:
        raise UsageError(
            f"{where} is not a measured step", why=str(error), remedy="mend or remove the line"
        ) from None
    wrong = [
        name
        for name, value in (
            ("batch", step.batch),
            ("step_ms", step.step_ms),
            ("first_step_s", step.first_step_s),
            ("peak_bytes", step.peak_bytes),
            ("window_ms", min(step.window_ms, default=0.0)),
        )
        if not (math.isfinite(value) and value > 0)
    ]
    if not wrong and not min(step.window_ms) <= step.step_ms <= max(step.window_ms):
        wrong = ["step_ms, which is outside its window_ms"]
    if not wrong and step.peak_bytes < step.current_bytes:
        wrong = ["peak_bytes, below current_bytes"]
    if wrong:
        raise UsageError(
            f"{where} has a number that no step can have",
            why=", ".join(wrong),
            remedy="mend or remove the line",
        )
    return step


def _row(step: OwnStep, kinds: dict[str, str], number: int, where: str) -> Row:
    if step.model not in kinds:
        raise UsageError(
            f"{where}: no builder '{step.model}'",
            why="zoo_models.csv does not name it",
            remedy=f"add it to truth/{ZOO_TODAY} and to truth/zoo_models.csv",
        )
    try:
        slug = find(step.gpu).slug
    except UsageError as error:
        raise UsageError(f"{where}: {error.what}", why=error.why, remedy=error.remedy) from None
    xla = "yes" if step.execution == "xla" else "no"
    how = (step.model, step.gpu, step.precision, xla, step.mode, "")
    return Row(
        table="own",
        number=FIRST_NUMBER + number - 1,
        source="own",
        framework="tensorflow",
        engine=step.backend,
        version=step.framework_version,
        model=step.model,
        gpu=step.gpu,
        slug=slug,
        gpus=1,
        interconnect="",
        batch_size=step.batch,
        precision=step.precision,
        mode=step.mode,
        execution=step.execution,
        zoo=ZOO_TODAY,
        function=step.model,
        step_s=step.step_ms / 1e3,
        memory_bytes=float(step.peak_bytes),
        memory_kind="allocated",
        launch_bound=kinds[step.model] == "cnn" and step.batch < 16,
        fused_attention=False,
        channels_last=False,
        accumulation=1,
        host=("own", step.framework_version, *how, str(step.batch), ""),
        notes=step.xla_flags,
    )
