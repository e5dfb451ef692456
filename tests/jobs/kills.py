"""A training as a user starts it, ended in the middle, and all that it learned, bit for bit."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import time
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import psutil
from tests.runtime.forks import NO_GPU

if TYPE_CHECKING:
    import random

SCRIPT = Path(__file__).parents[1] / "data/scripts/long_training.py"
PACE_S = 0.01
"""For each batch, where it is to be ended: the 20 of an epoch take longer."""
PATIENCE_S = 200.0
EPOCHS, STEPS = 6, 20


@dataclass(frozen=True, kw_only=True)
class Moment:
    """When a training is ended."""

    line: str = ""
    """The beginning of a line that ``long_training.py`` tells; empty: none is waited for."""
    after_s: float = 0.0
    """So much later."""
    writing: bool = False
    """And then as soon as a checkpoint is being written."""


@dataclass(kw_only=True)
class Training:
    """One run of ``tfdyno train long_training.py`` in a folder of its own, over its sittings."""

    folder: Path
    kinds: Sequence[str]
    options: Sequence[str] = ()
    output: str = "run"
    environment: dict[str, str] = field(default_factory=dict)
    script: Path = SCRIPT
    process: subprocess.Popen[str] | None = None
    seen: set[int] = field(default_factory=set)
    """Every process that was started."""

    def words(self, *, resume: bool) -> list[str]:
        run = [sys.executable, "-m", "tfdyno", "train", str(self.script), "--output", self.output]
        new = ["--set", "seed=7", "--checkpoint-every", "3", *self.options]
        return [*run, *(["--resume"] if resume else new), "--", *self.kinds]

    def start(self, *, pace_s: float = PACE_S) -> None:
        """Begin, or go on where there is a run already."""
        self.folder.mkdir(exist_ok=True)
        self.moments.unlink(missing_ok=True)
        environment = {**os.environ, **NO_GPU, **self.environment, "PACE_S": str(pace_s)}
        resume = (self.folder / self.output / "run.json").exists()
        with (self.folder / "stderr.txt").open("w") as errors:
            self.process = subprocess.Popen(
                self.words(resume=resume),
                cwd=self.folder,
                env={**environment, "MOMENTS": str(self.moments)},
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )

    @property
    def moments(self) -> Path:
        return self.folder / "moments.txt"

    def tree(self) -> list[psutil.Process]:
        """The command and all below it, the deepest first."""
        assert self.process
        found = []
        with contextlib.suppress(psutil.Error):
            command = psutil.Process(self.process.pid)
            found = [*reversed(command.children(recursive=True)), command]
        self.seen |= {one.pid for one in found}
        return found

    def wait_for(self, moment: Moment) -> None:
        """Return at the moment; fails where the training ends before it."""
        until_s = time.monotonic() + PATIENCE_S
        record = self.folder / self.output / "run.json"
        while not (record.exists() and moment.line in self.told()):
            assert self.process
            assert self.process.poll() is None, f"ended before {moment}: {self.stderr()}"
            assert time.monotonic() < until_s, f"no {moment}: {self.stderr()}"
            time.sleep(0.003)
        self.tree()
        time.sleep(moment.after_s)
        while moment.writing and not any((self.folder / self.output).rglob("*.part")):
            assert time.monotonic() < until_s, f"no {moment}: {self.stderr()}"

    def told(self) -> str:
        with contextlib.suppress(OSError):
            return self.moments.read_text()
        return ""

    def stderr(self) -> str:
        return (self.folder / "stderr.txt").read_text()

    def kill(self, only: str = "") -> None:
        """SIGKILL to all processes, or to the one of which this word is on the command line."""
        assert self.process
        for one in self.tree():
            with contextlib.suppress(psutil.Error):
                if only in " ".join(one.cmdline()):
                    one.kill()
        self.process.communicate()

    def ended(self, timeout_s: float = PATIENCE_S) -> tuple[int, str]:
        """Wait for the end: the exit code, and what was printed on stdout."""
        assert self.process
        while self.process.poll() is None and timeout_s > 0:
            self.tree()
            timeout_s -= 0.2
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(0.2)
        out, _ = self.process.communicate(timeout=60)
        return self.process.returncode, out

    def left(self) -> list[str]:
        """Processes of the run that are still there, zombies included, some seconds later."""
        until_s = time.monotonic() + 60
        while True:
            found = []
            for pid in self.seen:
                with contextlib.suppress(psutil.Error):
                    found.append(f"{pid} {psutil.Process(pid).status()}")
            if not found or time.monotonic() > until_s:
                return found
            time.sleep(0.1)


def finished(training: Training) -> Training:
    """Run to the end from wherever it stands; fails where it does not come to it."""
    training.start(pace_s=0)
    code, _ = training.ended()
    assert code == 0, training.stderr()
    assert training.left() == []
    return training


def learned(training: Training) -> dict[str, Any]:
    """All that a run has come to: numbers of ``run.json``, histories, every weight as bytes."""
    run = training.folder / training.output
    record = json.loads((run / "run.json").read_text())
    told = {key: record["outcome"][key] for key in ("epochs", "steps", "updates", "history")}
    assert record["status"] == "finished"
    return {
        **told,
        "script": json.loads((training.folder / "learned.json").read_text()),
        "weights": {
            f"{path.relative_to(run)}: {name}": value
            for path in sorted(run.rglob("model.keras"))
            for name, value in weights(path).items()
        },
    }


def weights(path: Path) -> dict[str, bytes]:
    """Every array in a ``.keras`` file by name, those of the optimizer included."""
    found: dict[str, bytes] = {}

    def take(name: str, item: object) -> None:
        if isinstance(item, h5py.Dataset):
            found[name] = np.asarray(item).tobytes()

    with (
        zipfile.ZipFile(path) as archive,
        archive.open("model.weights.h5") as file,
        h5py.File(file, "r") as stored,
    ):
        stored.visititems(take)
    return found


def random_moments(kind: str, chance: random.Random) -> list[Moment]:
    """Moments of one fit in the order in which they come: before the first step, and each epoch."""
    before = Moment(after_s=chance.uniform(0.0, 5.0))
    return [before, *(random_moment(kind, epoch, epoch % 4, chance) for epoch in range(EPOCHS))]


def random_moment(kind: str, epoch: int, number: int, chance: random.Random) -> Moment:
    """A moment of an epoch: while writing, in validation, after it, at a step."""
    after_s = chance.uniform(0.0, 2 * PACE_S)
    step = f"{kind} at {epoch} {chance.randrange(4, STEPS)}\n"
    return (
        Moment(line=step, writing=True),
        Moment(line=f"{kind} validation {epoch}\n", after_s=after_s),
        Moment(line=f"{kind} end {epoch}\n", after_s=after_s),
        Moment(line=step, after_s=after_s),
    )[number]


def is_resumable(text: str) -> bool:
    """Whether an answer names the command that goes on."""
    return bool(re.search(r"tfdyno train .*--output \S+ --resume", text.replace("\n", " ")))
