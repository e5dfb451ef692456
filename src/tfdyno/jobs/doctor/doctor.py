"""Name the cause, prove it, give the exact fix: of this machine, a log, or source code."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.base.dataclass import dataclass
from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.core.doctor.finding import Diagnosis
from tfdyno.core.doctor.machine_facts import ChildFacts, GpuFacts, MachineFacts, ProbeResult
from tfdyno.jobs.machine.knowledge import aged, capability_of, knowledge_of, tensorflow_of
from tfdyno.rules.environment import environment_matches
from tfdyno.rules.environment.fine import fine
from tfdyno.rules.explain import diagnose

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tfdyno.core.base.language import Language
    from tfdyno.core.doctor.oom import OomReport  # noqa: TC004  (nothing reads the types of an answer)
    from tfdyno.jobs.child.worker import ChildCrash
    from tfdyno.probe.machine.redact import Identity
    from tfdyno.rules.match import Match

UNKNOWN_ERROR = 4
"""Exit code for a log with errors of which no cause is known."""
CHILD_LIMIT_S = 300.0
"""A first import with a cold disk and the first kernels of a new card take minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """The answer with what it rests on."""

    diagnosis: Diagnosis
    facts: MachineFacts
    oom: OomReport | None = None
    """Where the log holds a report of exhausted memory."""
    is_broken: bool = False
    """Whether TensorFlow was tried and failed; the first note then says how."""

    @property
    def exit_code(self) -> int:
        """1 where a finding is an error or TensorFlow failed when tried; 4 for unknown errors.

        Where a move was asked for: 1 unless the code moves as it is.
        """
        if self.diagnosis.move:
            return int(self.diagnosis.move.answer != "moves")
        is_error = any(one.severity == "error" for one in self.diagnosis.findings)
        if is_error or self.is_broken:
            return 1
        return UNKNOWN_ERROR if self.diagnosis.unexplained else 0


def examine(
    *,
    quick: bool = False,
    python: str = "",
    language: Language = "en",
    progress: Callable[[str], None] = lambda _stage: None,
) -> Examined:
    """Look at this machine; unless ``quick``, let TensorFlow compute something in a child.

    Args:
        quick: Static probes only.
        python: Interpreter whose TensorFlow is meant; the active one when empty.
        language: Of all texts.
        progress: Called with a line at every stage.

    Raises:
        UsageError: There is no such interpreter.
    """
    from tfdyno.probe.base.host import this_host
    from tfdyno.probe.machine.machine import examine as look

    interpreter = _interpreter(python)
    progress("looking at this machine")
    facts = look(this_host(interpreter))
    facts = replace(facts, gpus=_with_slugs(facts))
    lines: list[str] = []
    if quick:
        facts = _not_tried(facts, "because of --quick")
    elif not (facts.tensorflow or facts.python.tensorflow_folder):
        facts = _not_tried(facts, "because TensorFlow is not installed")
    else:
        facts = replace(facts, child=_tried(interpreter, lines, progress))
    return _examined(facts, lines, language)


def replay(facts: MachineFacts, *, language: Language = "en") -> Examined:
    """Return the same for a machine of which only the facts are known."""
    return _examined(facts, [], language)


def explain(
    chunks: Iterable[bytes], *, facts: MachineFacts | None = None, language: Language = "en"
) -> Examined:
    """Find the causes in a log, which may come from another machine.

    Args:
        chunks: The log in pieces.
        facts: What is known of that machine; the log tells the rest.
        language: Of all texts.

    Raises:
        UsageError: The log cannot be read, or is no text.
    """
    from tfdyno.rules.causes import all_causes
    from tfdyno.rules.log.explained import scan
    from tfdyno.rules.oom.report import OomReader
    from tfdyno.rules.oom.words import what_held
    from tfdyno.rules.told import told_by_log

    reader = OomReader()
    log = scan(chunks, all_causes(), also=reader.feed_block)
    known = told_by_log(log, facts or MachineFacts(), capability_of)
    knowledge = knowledge_of(known)
    found = environment_matches(known, knowledge) if facts else ()
    report = reader.report()
    diagnosis = diagnose(
        log=log,
        facts=known,
        knowledge=knowledge,
        found=found,
        report=report,
        language=language,
    )
    held = (
        what_held(report, card_bytes=known.first_gpu.memory_bytes, language=language)
        if report
        else ()
    )
    diagnosis = replace(diagnosis, memory=held, aged=aged(tensorflow_of(known), language))
    return Examined(diagnosis=diagnosis, facts=known, oom=report)


def check_source(
    path: Path,
    *,
    facts: MachineFacts | None = None,
    python: str = "",
    language: Language = "en",
    progress: Callable[[str], None] = lambda _stage: None,
) -> Examined:
    """Find what does not fit the TensorFlow at hand in a file or folder of source code.

    Args:
        path: A file or a folder.
        facts: The machine for which the code is meant; this one where not told.
        python: Interpreter whose TensorFlow is meant; the active one when empty.
        language: Of all texts.
        progress: Called with a line at every stage.

    Raises:
        UsageError: There is no such file or folder, nothing in it can be read, or there is no
            such interpreter.
    """
    from tfdyno.probe.base.host import this_host
    from tfdyno.probe.files.source_files import find, read
    from tfdyno.probe.machine.machine import software
    from tfdyno.rules.migration.check import check_code
    from tfdyno.rules.values import values

    if facts is None:
        facts = software(this_host(_interpreter(python)))
    files = find(path, lambda count: progress(f"{count} files found"))
    progress(f"reading {len(files.paths)} files")
    knowledge = knowledge_of(facts)
    found, unread = check_code(
        files.paths, lambda name: read(files.root, name), values(facts, knowledge)
    )
    closed = [one for one in unread if one.partition(" was not read")[0] in files.paths]
    if not found and len(closed) == len(files.paths):  # "nothing is wrong" would be no answer
        raise UsageError((*closed, *files.notes)[0], remedy="give a script or a project's folder")
    diagnosis = diagnose(facts=facts, knowledge=knowledge, found=found, language=language)
    notes = (*files.notes, *unread, *diagnosis.notes)
    return Examined(diagnosis=replace(diagnosis, notes=notes), facts=facts)


def told_facts(path: Path) -> MachineFacts:
    """Return the facts of ``--env FILE``, a full record or a few told words.

    Raises:
        UsageError: The file is not such a record.
    """
    from tfdyno.probe.machine.record import read_environment
    from tfdyno.rules.told import machine_from_told

    read = read_environment(path)
    return read if isinstance(read, MachineFacts) else machine_from_told(read, capability_of)


def save_facts(path: Path, facts: MachineFacts) -> None:
    """Write the facts, private parts taken out; raises ``UsageError`` where it cannot."""
    from tfdyno.probe.machine.record import save_environment

    save_environment(path, facts, this_identity())


def this_identity() -> Identity:
    """Return names of this account and machine that must not leave it."""
    import platform

    from tfdyno.probe.machine.redact import identity_of

    return identity_of(os.environ, platform.node())


def redacted(text: str) -> str:
    """Return the text without names of the account, the machine, its network and secrets."""
    from tfdyno.probe.machine.redact import redactor

    return redactor(this_identity())(text)


def _examined(facts: MachineFacts, lines: list[str], language: Language) -> Examined:
    knowledge = knowledge_of(facts)
    found: tuple[Match, ...] = environment_matches(facts, knowledge)
    log = None
    if lines:
        from tfdyno.rules.causes import all_causes
        from tfdyno.rules.log.explained import scan

        log = scan(["\n".join(lines)], all_causes())
    diagnosis = diagnose(
        log=log, facts=facts, knowledge=knowledge, found=found, language=language, about_log=False
    )
    failure = _failure(facts.child, language)
    notes = (*failure, *(diagnosis.notes if failure else ()), *_not_run(facts.probes, language))
    words = fine(facts, knowledge, diagnosis)
    diagnosis = replace(
        diagnosis, fine=words, notes=notes, aged=aged(tensorflow_of(facts), language)
    )
    return Examined(diagnosis=diagnosis, facts=facts, is_broken=bool(failure))


def _failure(child: ChildFacts | None, language: Language) -> tuple[str, ...]:
    """Return what TensorFlow said when it failed, in one sentence; a finding may explain it."""
    if child is None or not child.failed:
        return ()
    from tfdyno.words.doctor.languages import word

    last = (child.error.strip().splitlines() or [child.failed])[-1]
    where = "" if child.failed in {"crash", "start"} else f"{child.failed}: "
    return (word("tensorflow fails", language, error=f"{where}{last}"),)


def _not_run(probes: Iterable[ProbeResult], language: Language) -> tuple[str, ...]:
    """Name probes that gave nothing, those with the same reason in one line."""
    from tfdyno.words.doctor.languages import reason

    names: dict[str, list[str]] = {}
    for one in probes:
        if one.state != "ok":
            names.setdefault(reason(one.reason, language), []).append(one.name)
    return tuple(f"{', '.join(who)}: {why}" for why, who in names.items())


def _tried(python: str, lines: list[str], progress: Callable[[str], None]) -> ChildFacts:
    """Let TensorFlow run in a child; what it prints goes to ``lines``."""
    from tfdyno.core.messages.child import Nothing
    from tfdyno.core.messages.doctor import TRY_TENSORFLOW
    from tfdyno.jobs.child.worker import ChildCrash, run_child

    try:
        found = run_child(
            TRY_TENSORFLOW,
            Nothing(),
            progress=progress,
            timeout_s=CHILD_LIMIT_S,
            python=python,
            hide_gpu=False,
            output=lines.append,
            doing="trying TensorFlow",
        )
    except ChildCrash as error:
        lines.append(_as_shell(error))
        return ChildFacts(failed="crash", error=str(error), exit_code=error.child_exit_code or -1)
    except (ToolError, UsageError) as error:
        return ChildFacts(failed="start", error=str(error), exit_code=-1)
    lines += found.error.splitlines()
    return found


def _as_shell(error: ChildCrash) -> str:
    """Return the line that a shell prints for such an end, which the rules know."""
    names = {-4: "Illegal instruction (core dumped)", -9: "Killed", -11: "Segmentation fault"}
    return names.get(error.child_exit_code or 0, str(error))


def _interpreter(python: str) -> str:
    """Return the path of an interpreter that can be run; raises ``UsageError`` for another one."""
    if not python:
        return _active_python()
    import shutil

    found = shutil.which(python)
    if not found:
        raise UsageError(f"--python {python} cannot be run", remedy="give an interpreter's path")
    return os.path.abspath(found)  # noqa: PTH100  (links of environments must not be followed)


def _active_python() -> str:
    """Return the interpreter of the active environment, else the one that runs tfdyno."""
    import sys

    folder = os.environ.get("VIRTUAL_ENV") or os.environ.get("CONDA_PREFIX")
    if not folder:
        return sys.executable
    names = ("Scripts/python.exe", "python.exe") if os.name == "nt" else ("bin/python",)
    found = (Path(folder) / name for name in names)
    return next((str(one) for one in found if one.exists()), sys.executable)


def _with_slugs(facts: MachineFacts) -> tuple[GpuFacts, ...] | None:
    if facts.gpus is None:
        return None
    return tuple(
        replace(card, slug=card.slug or capability_of(card.name)[0]) for card in facts.gpus
    )


def _not_tried(facts: MachineFacts, reason: str) -> MachineFacts:
    result = ProbeResult(name="TensorFlow", state="not_run", reason=reason)
    return replace(facts, probes=(*facts.probes, result))
