"""Measures steps in waves: those of a wave build and compile side by side, each is measured alone.

A wave ends before the next begins, because a compiler that tunes on the card would disturb what is
timed there.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from gpu_truth.interrupt import undisturbed
from gpu_truth.plan import Step
from gpu_truth.rows import RowError, append_row, check_row, identity, read_lines, read_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

LAST_START_S = 45.0
"""A wave that begins later measures nothing: it takes that long to build a model and time it."""
MEASURING_S = 6.0
"""What timing one step takes: the warm-up, seven windows, the way out."""
LOOK_S = 0.1
LOG_LINES = 15
LOG_BYTES = 1 << 20
OUT_OF_MEMORY = re.compile(r"RESOURCE_EXHAUSTED|out of memory|OOM when", re.IGNORECASE)
TRUTH = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is the same for all steps."""

    output: Path
    device: str
    uuid: str | None
    facts: Mapping[str, object]
    """Fields of every row."""
    environment: Mapping[str, str]
    minutes_s: float
    compile_limit_s: float
    measure_limit_s: float
    side_by_side: int

    @property
    def sidecar(self) -> Path:
        """Where failed steps are noted."""
        return Path(f"{self.output}.failed.jsonl")


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What has become of the steps so far."""

    rows: list[dict[str, object]] = field(default_factory=list)
    failed: list[dict[str, object]] = field(default_factory=list)
    left: list[Step] = field(default_factory=list)
    stopped: str = ""
    """Why no further step was begun; empty where all were."""


@dataclass(slots=True, kw_only=True)
class _Child:
    step: Step
    folder: Path
    process: subprocess.Popen[bytes]
    settled: bool = False

    def has(self, name: str) -> bool:
        return (self.folder / name).exists()

    @property
    def waits(self) -> bool:
        return self.process.poll() is None and not self.has("ready")

    def kill(self) -> None:
        """End it and what it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def log(self) -> list[str]:
        with (self.folder / "log").open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - LOG_BYTES))
            text = file.read().decode(errors="replace")
        return [line[:300] for line in text.splitlines() if line.strip()]


def known_steps(job: Job) -> tuple[set[tuple[str, ...]], set[tuple[str, ...]]]:
    """What was measured already and what has failed, as ``identity`` names it.

    Raises:
        RowError: A line of the output or of its sidecar is damaged.
    """
    measured = {identity(row) for row in read_rows(job.output, device=job.device)}
    failed = {_failure_identity(row) for _, row in read_lines(job.sidecar)}
    return measured, failed - measured


def identity_of(step: Step, job: Job) -> tuple[str, ...]:
    """As what a step is known once it is measured."""
    return identity({**step.fields, **job.facts})


def _failure_identity(row: Mapping[str, object]) -> tuple[str, ...]:
    names = ("model", "precision", "batch", "execution", "mode", "backend")
    needed = (*names, "framework_version", "keras_version", "gpu")
    return identity(row) if all(name in row for name in needed) else ()


def drive(steps: Sequence[Step], job: Job, tell: Callable[[str], None]) -> Outcome:
    """Measure steps until all are done or time is up; every row is written as soon as it is there.

    Ctrl-C ends the processes, keeps what was measured and says so in the outcome.
    """
    outcome = Outcome(left=list(steps))
    base = Path(tempfile.mkdtemp(prefix="gpu-truth-"))
    run = _Run(job=job, outcome=outcome, tell=tell, base=base, end=time.monotonic() + job.minutes_s)
    try:
        run.all_waves()
    except KeyboardInterrupt:
        outcome.stopped = "interrupted"
    finally:
        # A second Ctrl-C while processes are ended changes nothing.
        with contextlib.suppress(KeyboardInterrupt), undisturbed():
            run.close()
            shutil.rmtree(base, ignore_errors=True)
    return outcome


@dataclass(slots=True, kw_only=True)
class _Run:
    job: Job
    outcome: Outcome
    tell: Callable[[str], None]
    base: Path
    end: float
    alone: list[Step] = field(default_factory=list)
    """Steps for whose memory the card was too small beside others."""
    wave: list[Step] = field(default_factory=list)
    """Steps of this wave that are not started yet."""
    children: list[_Child] = field(default_factory=list)
    started: int = 0

    def all_waves(self) -> None:
        left = self.outcome.left
        while (left or self.alone) and not self.outcome.stopped:
            remaining_s = self.end - time.monotonic()
            if remaining_s < min(LAST_START_S, self.job.minutes_s / 2):
                self.outcome.stopped = "time is up"
                break
            wave = self._next_wave()
            self._say_wave(wave, remaining_s)
            self._wave(wave)

    def _next_wave(self) -> list[Step]:
        """The next steps, if possible of one execution: XLA takes far longer than a graph."""
        left = self.outcome.left
        if not left:
            return [self.alone.pop(0)]
        size = self.job.side_by_side
        near = sorted(left[: 3 * size], key=lambda step: step.execution != left[0].execution)
        for step in near[:size]:
            left.remove(step)
        return near[:size]

    def _wave(self, wave: Sequence[Step]) -> None:
        job, begun = self.job, time.monotonic()
        self.wave, self.children = list(wave), []
        while self.wave:
            with undisturbed():
                self.children.append(self._start(self.wave.pop(0), len(wave)))
        # What is compiled when time is nearly up can still be measured.
        latest = self.end - MEASURING_S * len(wave)
        compile_end = min(begun + job.compile_limit_s, max(latest, begun + 1.0))
        while time.monotonic() < compile_end and any(child.waits for child in self.children):
            time.sleep(LOOK_S)
        for child in self.children:
            if child.waits:
                child.kill()
                if time.monotonic() - begun >= job.compile_limit_s:
                    self._fail(child, f"not compiled within {job.compile_limit_s:g} s", len(wave))
                else:  # time was up before its own limit was: that is no fault of the step
                    child.settled = True
                    self.outcome.left.insert(0, child.step)
        for child in self.children:
            if not child.settled:
                self._measure(child, len(wave))

    def _measure(self, child: _Child, wave: int) -> None:
        (child.folder / "go").touch()
        try:
            code = child.process.wait(self.job.measure_limit_s)
        except subprocess.TimeoutExpired:
            child.kill()
            limit_s = self.job.measure_limit_s
            self._fail(child, f"not measured within {limit_s:g} s", wave)
            return
        if self._keep(child):
            return
        if child.has("no_device"):
            child.settled = True
            self.outcome.stopped = (child.folder / "no_device").read_text(encoding="utf-8")
            self.outcome.left.insert(0, child.step)
            return
        log = "\n".join(child.log())
        out_of_memory = OUT_OF_MEMORY.search(log) is not None
        if out_of_memory and wave > 1:
            child.settled = True
            self.alone.append(child.step)
            self.tell(f"{child.step.name}: out of memory beside {wave - 1} others, later alone")
            return
        ended = f"ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        self._fail(child, f"out of memory ({ended})" if out_of_memory else ended, wave)

    def _keep(self, child: _Child) -> bool:
        """Write the row of a child that has finished."""
        if not child.has("row.json"):
            return False
        row = json.loads((child.folder / "row.json").read_text(encoding="utf-8"))
        try:
            check_row(row, device=self.job.device)
        except RowError as error:
            self._fail(child, f"its row is wrong: {error}", row["side_by_side"])
            return True
        with undisturbed():
            append_row(self.job.output, row)
            self.outcome.rows.append(row)
            child.settled = True
        peak = f", peak {row['peak_bytes'] / 2**30:.2f} GiB" if "peak_bytes" in row else ""
        first = f"first step {row['first_step_s']:g} s"
        self.tell(f"{child.step.name}: {row['step_ms']:.4g} ms{peak}, {first}")
        return True

    def _fail(self, child: _Child, reason: str, wave: int) -> None:
        log = child.log()
        row = {
            **child.step.fields,
            **self.job.facts,
            "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "side_by_side": wave,
            "reason": reason,
            "log": log[-LOG_LINES:],
        }
        with undisturbed():
            append_row(self.job.sidecar, row)
            self.outcome.failed.append(row)
            child.settled = True
        told = next((line for line in reversed(log) if _tells(line)), "")
        self.tell(f"{child.step.name}: FAILED, {reason}" + (f": {told[:160]}" if told else ""))

    def _start(self, step: Step, wave: int) -> _Child:
        self.started += 1
        folder = self.base / str(self.started)
        folder.mkdir()
        facts = {**self.job.facts, "side_by_side": wave}
        order = {
            "step": step.fields, "facts": facts, "device": self.job.device,
            "uuid": self.job.uuid, "folder": str(folder), "parent": os.getpid(),
        }  # fmt: skip
        path = self.job.environment.get("PYTHONPATH")
        environment = {
            **self.job.environment,
            "PYTHONPATH": f"{TRUTH}{os.pathsep}{path}" if path else str(TRUTH),
        }
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "gpu_truth.measure_one", json.dumps(order)],
                stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                env=environment, cwd=folder,
                start_new_session=True,  # Ctrl-C is for the parent, which ends its children itself
            )  # fmt: skip
        return _Child(step=step, folder=folder, process=process)

    def _say_wave(self, wave: Sequence[Step], remaining_s: float) -> None:
        left = len(self.outcome.left) + len(self.alone)
        self.tell(
            f"compiling {len(wave)} step{'s'[: len(wave) != 1]} side by side; "
            f"{left} left after them, {remaining_s / 60:.1f} minutes to go"
        )

    def close(self) -> None:
        """End what still runs; what had finished counts, what had not is left."""
        unsettled = [child for child in self.children if not child.settled]
        for child in unsettled:
            child.kill()
        for child in reversed(unsettled):
            if not self._keep(child):
                self.outcome.left.insert(0, child.step)
        self.outcome.left.extend([*self.wave, *self.alone])


def _tells(line: str) -> bool:
    """Whether a line of a log says what went wrong, and is not a frame of a traceback."""
    return re.match(r"(\w+\.)*\w*(Error|Exception|Exit)\b|[FE]\d{4} ", line.strip()) is not None
