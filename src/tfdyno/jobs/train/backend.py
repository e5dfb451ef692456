"""On which of Keras' backends a workload trains, where no option names it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.train.jax_plan import known_backend
from tfdyno.rules.keras_backend import VARIABLE, backend_set_in
from tfdyno.store.run_folder import RunFolder
from tfdyno.words.base.language import say

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfdyno.core.choose.workload import Workload
    from tfdyno.core.train.jax_plan import JaxPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundBackend:
    """The backend that plain Keras would run on."""

    name: str = ""
    """Empty: nothing names one."""
    note: str = ""
    """What the user has to know of it, as a sentence; empty: nothing."""


def found_backend(
    workload: Workload, environment: Mapping[str, str], *, folder: str = ""
) -> FoundBackend:
    """Return the backend that the code, the environment or Keras' own file names.

    Args:
        workload: Whose file is read, as Python would; other files that it imports are not.
        environment: The variables that the training would have.
        folder: That the workload's file is looked for in.

    Raises:
        UsageError: It is neither TensorFlow nor JAX.
    """
    if workload.task:  # tfdyno's own code, on TensorFlow
        return FoundBackend()
    path = Path(folder, workload.reference.partition(":")[0])
    is_code = path.suffix == ".py" and path.is_file()
    there = backend_set_in(path.read_text(errors="replace")) if is_code else None
    given = environment.get(VARIABLE, "")
    if there and there.is_sure and not (there.is_default and given):
        note = say("It trains on JAX, which line {line} of {file} names.", line=there.line,
                   file=path.name)  # fmt: skip
        return _found(there.name, note, path.name, there.line)
    if given:
        note = say("It trains on JAX, which {variable} names.", variable=VARIABLE)
        found = _found(given, note, VARIABLE)
    else:
        file = _own_file(environment)
        note = say("It trains on JAX, which {file} names.", file=file)
        found = _found(_named_in(file), note, str(file))
    if there and not there.is_sure and not found.note:
        note = say(
            "Line {line} of {file} may choose another backend of Keras: name it with --backend.",
            line=there.line,
            file=path.name,
        )
        return FoundBackend(name=found.name, note=note)
    return found


def _found(name: str, note: str, source: str, line: int = 0) -> FoundBackend:
    known = known_backend(name, source, line)
    return FoundBackend(name=known, note=note if known == "jax" else "")


def _own_file(environment: Mapping[str, str]) -> Path:
    """Return where Keras keeps its settings."""
    return Path(environment.get("KERAS_HOME") or Path.home() / ".keras") / "keras.json"


def _named_in(file: Path) -> str:
    """Return the backend of Keras' own file; empty where it cannot be read, as in Keras."""
    try:
        read = json.loads(file.read_text())
    except (OSError, ValueError):
        return ""
    return str(read.get("backend", "")) if isinstance(read, dict) else ""


def plan_of_run(folder: Path) -> JaxPlan | None:
    """Return the plan on JAX of a run that is there; None: it trains on TensorFlow.

    Raises:
        UsageError: There is no run, or a file of it is damaged.
    """
    record, _ = RunFolder(folder.absolute()).read()
    return record.jax
