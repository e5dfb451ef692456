"""A project: its steps from data to service, and what each run of them did."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

FOLDER = "tfdyno-project"
"""The folder beside the project's file: its history and the outputs of its steps."""
OUTPUTS = "outputs"
"""The folder in that folder with one folder per step and key."""
DOCUMENT = "document.json"
"""The file of an output with what the step's command printed with ``--json``."""
LOG = "step.log"
"""The file of an output with what the step's command told on stderr."""
LOCK = ".run.lock"
"""The file in that folder that is held while a run goes on, or while runs are removed."""
PART = ".part"
"""Ending of an output that is not finished."""
ANSWER = "answer.json"
"""The file of such an output with what the command has printed so far."""
FIRST = "it has not run yet"
"""Why a step runs that never did."""
Status = Literal["running", "finished", "reused", "failed", "stopped"]
"""The status of a step. ``running`` also where it was killed; ``reused``: nothing it rests on had
changed."""
RunStatus = Literal["running", "finished", "failed", "stopped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectStep:
    """One step: a command of tfdyno with its options.

    Options may name what another step made, as ``{train}`` for its output folder or
    ``{train.model}`` for a path that its document names; such a step comes first.
    """

    name: str
    command: str
    """The command as on the command line: ``train``, ``bench --serve``."""
    options: dict[str, object] = field(default_factory=dict)
    """The options by their names on the command line without the dashes; a list gives an option
    many times."""
    needs: tuple[str, ...] = ()
    """Steps that come first, in the order of the file, those that options name included."""
    inputs: tuple[str, ...] = ()
    """Files and folders that the command reads and no option names."""
    load: dict[str, object] = field(default_factory=dict)
    """Options of the load test that the server of ``serve`` then gets."""
    allow_findings: bool = False
    """Whether exit code 1, a finding of severity error, ends the step well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """What ``project.toml`` says."""

    name: str
    file: Path
    steps: tuple[ProjectStep, ...]
    """The steps in the order in which they run."""
    store: str = ""
    """Folder of the model store for all steps, from the project's file; empty: the user's own."""
    is_named: bool = True
    """Whether its file names it; else it is called as its folder, which may be renamed."""

    @property
    def folder(self) -> Path:
        """Where history and outputs are."""
        return self.file.parent / FOLDER


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRun:
    """What one step did in one run of its project."""

    step: str
    command: str
    status: Status = "running"
    key: str = ""
    """Hexadecimal digest of ``rests_on``; empty where the step was not reached."""
    rests_on: dict[str, str] = field(default_factory=dict)
    """All that the output depends on, by name: ``option epochs`` → ``5``, ``file train.py`` → its
    sha256, ``step data`` → that step's key, ``tfdyno`` → the version."""
    words: tuple[str, ...] = ()
    """The command, as it could be typed."""
    output: str = ""
    """Folder of the output, relative to the project's folder."""
    stamp: str = ""
    """The mark of the making that this run took or made, as in ``Made``; empty where nothing whole
    came of it. Another run may have put another making into the same folder since."""
    headline: str = ""
    """The answer in one line."""
    why: str = ""
    """Why it ran, in words; empty where it did not."""
    error: str = ""
    exit_code: int = 0
    """The exit code of the command; 1 in a step that finished with findings."""
    started_at: str = ""
    """UTC, ISO 8601."""
    duration_s: float = 0.0
    """The time of this run; of a step that was reused, the moment it took to see that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectRun:
    """One run of a project, whole or not."""

    id: str
    project: str
    status: RunStatus = "running"
    started_at: str = ""
    ended_at: str = ""
    tfdyno: str = ""
    chosen: tuple[str, ...] = ()
    """Names of the steps that it was to do, in their order."""
    steps: tuple[StepRun, ...] = ()
    """The steps in the order in which they ran."""
