"""One step of a project: its command is run, its answer kept, its output put in place."""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import TfdynoError, UsageError
from tfdyno.core.project.output import Made
from tfdyno.core.project.project import ANSWER, LOG, PART
from tfdyno.core.project.step_command import option_words, script_words
from tfdyno.core.project.step_outputs import GOES_ON, PAGE, place_of, with_outputs
from tfdyno.core.project.step_reference import OWN, filled, named
from tfdyno.core.train.training import NAN_LOSS, NAN_WEIGHTS
from tfdyno.jobs.project._check import SERVE, told_of
from tfdyno.jobs.project._child import WorkingPlace, ended, last_lines, own_words
from tfdyno.jobs.project._files import script_of
from tfdyno.jobs.project._inputs import without_secrets
from tfdyno.jobs.project._outputs import Output, read_answer
from tfdyno.jobs.project._serve import load_tested
from tfdyno.jobs.serve.setup import serving_python
from tfdyno.probe.base.near import no_such
from tfdyno.store import results, tuning_study
from tfdyno.store.run_folder import RunFolder
from tfdyno.words.project.step_headline import step_headline

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from tfdyno.core.project.project import Project, ProjectStep
    from tfdyno.core.project.step_command import CommandShape
    from tfdyno.jobs.project._look import OutputInspection
    from tfdyno.jobs.project._state import RunReporter, RunState


GOOD, FINDINGS, REFUSED = 0, 1, 2
TOLD_LINES = 5
STORE = "TFDYNO_STORE"
SENTENCE = "tfdyno: "
"""What a command of ours begins the sentence with that says why it failed."""
AGAIN = "the same command goes on"
TOLD = ("--json", "--verbose")
"""Ours, not what the user asked."""
_TRAININGS = ("train", "launch")
_AT_ITS_END = ("", NAN_LOSS, NAN_WEIGHTS)
"""Why a training ended that has nothing left to do."""


class Failed(TfdynoError):  # noqa: N818  (it is what happened)
    """The command of a step did not end well.

    Attributes:
        child_code: Its exit code; negative for a signal.
        words: The command, as it could be typed.
    """

    child_code = 0
    words: tuple[str, ...] = ()


def serving_check(step: ProjectStep) -> None:
    """Refuse to serve where there is nothing to serve with; raises ``UsageError``."""
    if step.command != SERVE:
        return
    with told_of(step):
        serving_python()


def made_by(
    step: ProjectStep,
    shape: CommandShape | None,
    seen: OutputInspection,
    state: RunState,
    told: RunReporter,
) -> Made:
    """Run a step's command and keep what it made.

    Args:
        step: The step.
        shape: Of its command; None: a script of the user's.
        seen: What is known of it.
        state: The run so far, with what stands of the steps that it needs.
        told: Hears of it.

    Raises:
        Failed: Its command did not end well; what it left is kept for the next run.
        UsageError: Something that another step made is not there any more.
        ToolError: The disk is full.
    """
    output, before, began_s = seen.output, state.made, time.monotonic()
    with told_of(step):
        options = _filled(step.options, output, before)
        load = _filled(step.load, output, before)
    resumes = seen.goes_on and goes_on(step, shape, output.part)
    spent_s = _spent_s(output) if resumes else 0.0
    note = Made(
        step=step.name, key=output.key, rests_on=seen.rests_on, stamp=secrets.token_hex(8),
        before={name: before[name].stamp for name in step.needs}, duration_s=spent_s,
    )  # fmt: skip
    output.begin(note, goes_on=resumes)
    words = _words(step, shape, options, output)
    try:
        code = _ran(step, words, load, output, told, resume=resumes)
    finally:
        note = replace(note, duration_s=spent_s + time.monotonic() - began_s)
        with contextlib.suppress(TfdynoError, OSError):  # what ended it is to be told
            output.note(note)
    shown = _shown(step, words, output)
    answer, is_answer = read_answer(output.part, is_script=shape is None)
    if code not in (GOOD, *([FINDINGS] if step.allow_findings else [])) or not is_answer:
        headline = step_headline(step.command, answer)
        raise _failure(step, code, shown, output, headline, resumed=resumes)
    if why := ended_early(step, answer):
        raise _failed(step, "was ended before its end", code, shown, why=why, remedy=AGAIN)
    document = output.localised(answer)
    headline = step_headline(step.command, document)
    if changed := state.changed(seen.rests_on):
        headline = f"{headline}; {changed} while it ran: the next run makes it anew".lstrip("; ")
    made = replace(note, words=shown, headline=headline, exit_code=code, changed=changed)
    output.finish(made, document)
    output.drop_parts()
    return made


def _ran(
    step: ProjectStep,
    words: tuple[str, ...],
    load: Mapping[str, object],
    output: Output,
    told: RunReporter,
    *,
    resume: bool,
) -> int:
    """Return the exit code of the step's command, whatever it takes to run it."""
    project = output.project
    environment = dict(os.environ)
    if project.store:
        environment[STORE] = str((project.file.parent / project.store).resolve())
    place = WorkingPlace(
        cwd=project.file.parent.resolve(), environment=environment,
        answer=output.part / ANSWER, log=output.part / LOG, waits=told.waits,
    )  # fmt: skip
    said = told.said
    if script_of(step):
        return ended(words, place, said=said)
    if step.command == SERVE:
        page = {"html": f"{output.shown}{PART}/{PAGE}"}
        return load_tested(words, page | dict(load), place, said=said)
    own = (words[0], "--resume") if resume and step.command not in GOES_ON else (words[0],)
    return ended(own_words((*own, *words[1:])), place, said=said)


def _words(
    step: ProjectStep, shape: CommandShape | None, options: Mapping[str, object], output: Output
) -> tuple[str, ...]:
    """Return what is run: behind ``tfdyno``, or the script with the interpreter first."""
    folder = output.shown + PART
    if shape is None:
        return (sys.executable, *script_of(step), *script_words(options))
    words = option_words(with_outputs(options, shape, folder), shape)
    head = len(shape.words)
    told = ("--json", *(["--verbose"] if shape.parameter("verbose") else []))
    return (*words[:head], *told, *words[head:])


def _shown(step: ProjectStep, words: tuple[str, ...], output: Output) -> tuple[str, ...]:
    """Return the command as it could be typed beside the project's file."""
    plain = tuple(str(output.localised(word)) for word in words)
    if script_of(step):
        told = ("python", *plain[1:])
    else:
        told = ("tfdyno", *(word for word in plain if word not in TOLD))
    return tuple(map(str, without_secrets(told, lambda _secret: "…")))


def _filled(
    options: Mapping[str, object], output: Output, before: Mapping[str, Made]
) -> dict[str, object]:
    """Return options with what earlier steps made; raises ``UsageError`` where that is gone."""
    root = output.project.file.parent

    def find(name: str, keys: tuple[str, ...]) -> str:
        if name == OWN:
            return output.shown + PART
        other = Output(project=output.project, step=name, key=before[name].key)
        return other.named(keys)

    found: dict[str, object] = {}
    for name, value in options.items():
        found[name] = filled(value, find)
        for text, maker in _paths(value, found[name], output.project, before):
            if not (root / text).exists():
                raise _vanished(root / text, maker)
    return found


def _paths(
    raw: object, value: object, project: Project, before: Mapping[str, Made]
) -> list[tuple[str, str]]:
    """Return paths in other steps' outputs that a value names whole, and who made each."""
    texts = value if isinstance(value, list) else [value]
    found = []
    for maker in named(raw):
        folder = Output(project=project, step=maker, key=before[maker].key).shown
        for text in map(str, texts):
            path = text.partition(":")[0]
            if path == folder or path.startswith(f"{folder}/"):
                found.append((path, maker))
    return found


def _vanished(path: Path, maker: str) -> TfdynoError:
    found = no_such(path, what="file or folder")
    return UsageError(
        found.what, why=f"step {maker} makes it",
        remedy=f"make it again with --force {maker}",
    )  # fmt: skip


def _spent_s(output: Output) -> float:
    begun = output.begun()
    return begun.duration_s if begun else 0.0


def _failure(
    step: ProjectStep,
    code: int,
    words: tuple[str, ...],
    output: Output,
    headline: str,
    *,
    resumed: bool,
) -> Failed:
    """Say what went wrong: a command's own sentence, else its answer, else the end of its log."""
    lines = last_lines(output.part / LOG, TOLD_LINES)
    own = [line.removeprefix(SENTENCE) for line in lines if line.startswith(SENTENCE)]
    if code < 0:
        what = f"was ended by signal {-code}"
    else:
        what = f"ended with exit code {code}" if code else "printed no answer"
    # A command of ours that ends with 1 has an answer; a script may have printed it before it fell.
    found = headline if code == FINDINGS and not script_of(step) else ""
    why = (own[-1] if own else found) or " / ".join(lines) or headline
    # What was begun stays whatever the code says: a disk may not be mounted, a card be missing.
    anew = f"to begin it anew, delete {output.shown}{PART}" if resumed and code == REFUSED else ""
    return _failed(step, what, code, words, why=why, remedy=anew)


def _failed(
    step: ProjectStep, what: str, code: int, words: tuple[str, ...], *, why: str, remedy: str = ""
) -> Failed:
    failed = Failed(f"step {step.name} {what}", why=why, remedy=remedy)
    failed.child_code, failed.words = code, words
    return failed


def goes_on(step: ProjectStep, shape: CommandShape | None, part: Path) -> bool:
    """Return whether the command goes on with what is there, which is looked at and not tried.

    Args:
        step: The step.
        shape: Of its command; None: a script of the user's.
        part: Where it was begun.
    """
    if shape is None:
        return False
    if step.command in GOES_ON:
        return True
    place = place_of(shape, step.options)
    return bool(place) and _MARKS[step.command](part / place)


def ended_early(step: ProjectStep, answer: object) -> str:
    """Say why a training ended before its end, though with exit code 0; empty: it did not."""
    if step.command not in _TRAININGS or not isinstance(answer, dict):
        return ""
    why = str(answer.get("stopped") or "")
    return "" if why in _AT_ITS_END else why


def _holds_bench(folder: Path) -> bool:
    try:
        return results.Results(folder=folder).holds_unfinished()
    except TfdynoError:  # damaged: the command says how
        return True


def _holds_study(folder: Path) -> bool:
    return any((folder / name).exists() for name in (tuning_study.FILE, results.FILE))


def _holds_anything(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())


_MARKS: dict[str, Callable[[Path], bool]] = {
    "train": lambda folder: RunFolder(folder).holds_run,
    "bench": _holds_bench,
    "tune": _holds_study,
    "diagnose": _holds_anything,
}
"""Whether the place of a command holds what ``--resume`` takes. Diagnose takes any."""
