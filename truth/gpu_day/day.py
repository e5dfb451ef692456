"""The day: where it is, what its steps run with, and how long they may still take."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from gpu_day import command
from gpu_day.host import ROOT
from gpu_truth.card import Card

if TYPE_CHECKING:
    from collections.abc import Sequence

MODEL = Path(__file__).with_name("small_net.py")
"""What is trained, estimated, exported and served."""
TIMED = Path(__file__).with_name("dense_net.py")
"""What is measured again and again: its step compiles in a second."""


@dataclass(slots=True, kw_only=True)
class Day:
    """One sitting."""

    out: Path
    environment: Mapping[str, str]
    card: Card | None
    """None: the CPUs stand for one."""
    end_s: float
    """When time is up, on the monotonic clock."""
    python: str = sys.executable
    root: Path = ROOT
    stopped: Event = field(default_factory=Event)
    """Set by Ctrl-C, for the steps that run in threads."""
    step: str = ""
    step_end_s: float = 0.0
    done: list[command.Done] = field(default_factory=list)
    """Commands of the step that runs."""

    @property
    def cpu(self) -> bool:
        """Whether there is no card."""
        return self.card is None

    @property
    def logs(self) -> Path:
        """Where output and logs of the commands are."""
        return self.out / "logs"

    def begin(self, step: str, limit_s: float, **variables: str) -> Day:
        """The day as one step has it, whose time runs from here.

        Args:
            step: Its name.
            limit_s: How long it may take, where the day does not end before.
            variables: What its commands find in their environment beside that of the day.
        """
        return replace(
            self,
            environment={**self.environment, **variables},
            step=step,
            step_end_s=min(time.monotonic() + limit_s, self.end_s),
            done=[],
        )

    @property
    def left_s(self) -> float:
        """Of the step that runs."""
        return max(0.0, self.step_end_s - time.monotonic())

    def place(self) -> Path:
        """Where the next command of the step has its files, without the endings."""
        self.logs.mkdir(parents=True, exist_ok=True)
        return self.logs / f"{self.step.replace(':', '-')}-{len(self.done) + 1}"

    def folder(self, name: str) -> Path:
        """A folder of the day that steps share results in."""
        path = self.out / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def tfdyno(self, *words: str, **variables: str) -> command.Done:
        """Run ``tfdyno`` as a user would; what it printed as JSON is its document."""
        return self.run([self.python, "-m", "tfdyno", *words], **variables)

    def run(self, words: Sequence[str], **variables: str) -> command.Done:
        """Run a command within the time of the step."""
        done = command.run(
            words,
            place=self.place(),
            environment={**self.environment, **variables},
            cwd=self.folder("work"),
            limit_s=self.left_s,
            stopped=self.stopped,
        )
        self.done.append(done)
        return done

    def started(self, *words: str) -> command.Running:
        """Start ``tfdyno`` and go on; whoever started it ends it."""
        return command.Running([self.python, "-m", "tfdyno", *words], place=self.place(),
                               environment=self.environment, cwd=self.folder("work"),
                               stopped=self.stopped)  # fmt: skip

    def shared(self) -> dict[str, Any]:
        """The settings of the model that every step takes: what a card computes fast."""
        return {"precision": "float32" if self.cpu else "mixed_float16", "execution": "xla"}
