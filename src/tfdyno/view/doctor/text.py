"""A diagnosis as a terminal shows it: the answer, its proof, what to do, then the rest."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tfdyno.view.base.text import COLUMN, WIDTH, paint, shorten, shown_width, wrapped
from tfdyno.words.doctor.languages import counted, move_sentence, word

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.base.language import Language
    from tfdyno.core.doctor.finding import Diagnosis, Evidence, Finding, FixStep
    from tfdyno.core.doctor.machine_facts import LibraryFacts, MachineFacts

MARKS = {"error": "✗", "warning": "!", "note": "·", "fine": "✓", "unknown": "?"}
STYLES = {"error": "red", "warning": "yellow", "note": "dim", "fine": "green", "unknown": "red"}
MOVE_MARKS = {
    "moves": "fine", "after_migrate": "warning", "rewrite": "error", "unknown": "unknown"
}  # fmt: skip
MOST_EVIDENCE = 3
MOST_QUOTED = 240
ALIKE = 60
"""Characters at the end of two lines that say that they tell the same."""
_PREFIX = r"^(?:\d{4}-\d\d-\d\d[ T][\d:.,]+:? )?(?:[IWEF](?:\d{4} [\d:.]+ +\d+)? ?)[\w./-]+:\d+\] "
MOST_KINDS = 5


def doctor_text(
    diagnosis: Diagnosis,
    *,
    exit_code: int,
    from_log: bool,
    show_ignored: bool = False,
    language: Language = "en",
    width: int = WIDTH,
    colour: bool = False,
) -> str:
    """Write the diagnosis: findings with the root cause first, what is fine, what is ignored.

    Args:
        diagnosis: What was found.
        exit_code: What the command will return, told at the end; 1 without a finding of
            severity error means that the first note tells what failed.
        from_log: Whether a log was explained, not this machine examined.
        show_ignored: Give each harmless message its reason.
        language: Of the labels; the findings bring their own words.
        width: Columns of the screen.
        colour: Whether to paint; colour only repeats what the marks say.
    """
    lay = _Layout(language, width, colour)
    if diagnosis.move:
        lay.most_evidence, lay.is_code = len(diagnosis.move.obstacles), True
    parts = [lay.finding(one, first=one is diagnosis.findings[0]) for one in diagnosis.findings]
    notes = diagnosis.notes
    if diagnosis.unexplained:
        parts = [lay.unexplained(diagnosis.unexplained), *parts]
    elif diagnosis.move:
        kind = MOVE_MARKS[diagnosis.move.answer]
        parts = [lay.headline(move_sentence(diagnosis.move, language), kind), *parts]
    elif exit_code and not any(one.severity == "error" for one in diagnosis.findings):
        # What failed has no cause that is known: it is the answer, and not one note of several.
        parts, notes = [lay.headline(notes[0], "error"), *parts], notes[1:]
    if not parts:
        # That no cause is known says nothing of whether all is well.
        is_fine = diagnosis.ignored or not from_log
        kind = "fine" if is_fine else "note"
        parts = [lay.headline(_nothing(diagnosis, from_log, language), kind)]
    notes, skipped = ((*notes, diagnosis.aged), ()) if from_log else ((diagnosis.aged,), notes)
    rest = [
        *lay.several("memory", diagnosis.memory),
        lay.block("fine", " · ".join(diagnosis.fine)),
        _ignored(diagnosis.ignored, lay, show_ignored),
        *lay.several("not run", skipped),
        *lay.several("notes", tuple(filter(None, notes))),
    ]
    parts += ["\n".join(filter(None, rest)), _total(diagnosis.findings, exit_code, language)]
    return "\n\n".join(filter(None, parts))


class _Layout:
    """Where things stand on the screen: labels left, text beside them, filled to the width."""

    def __init__(self, language: Language, width: int, colour: bool) -> None:
        self.language, self.width, self.colour = language, width, colour
        self.most_evidence, self.is_code = MOST_EVIDENCE, False
        """Lines that prove a finding: of code all of them, of a log those that differ."""

    def headline(self, text: str, kind: str) -> str:
        mark = paint(MARKS[kind], STYLES[kind], colour=self.colour)
        filled = wrapped(text, width=self.width, first="  ", rest="  ")[2:]
        return f"{mark} " + "\n".join(
            paint(line, "bold", colour=self.colour) for line in filled.split("\n")
        )

    def finding(self, one: Finding, *, first: bool) -> str:
        verdict = word(one.verdict, self.language)
        known = f"{verdict}{' ' * max(1, COLUMN - 2 - shown_width(verdict))}{one.cause}"
        if one.count > 1:
            known += f"  ({word('times', self.language, n=one.count)})"
        lines = [self.headline(one.summary, one.severity), f"  {known}"]
        lines += self.evidence(one.evidence)
        if first:
            lines.append(self.block("why", one.why))
        lines += self.steps(one.fix)
        lines.append(self.block("also", ", ".join(one.symptoms)))
        lines.append(self.block("more", one.link))
        return "\n".join(filter(None, lines))

    def unexplained(self, seen: Sequence[Evidence]) -> str:
        """Return the first error as the answer, then all of them and where to look."""
        head = word("unknown error", self.language, text=_quoted(seen[0].text))
        steps = [word(f"unknown error {step}", self.language) for step in ("up", "log", "look")]
        lines = [self.headline(head, "unknown"), *self.evidence(seen)]
        lines += [self.block("" if index else "fix", text) for index, text in enumerate(steps)]
        return "\n".join(lines)

    def evidence(self, seen: Sequence[Evidence]) -> list[str]:
        """Write what proves it; of lines that end alike, as one error passed on, the first."""
        told: dict[str, str] = {}
        for one in seen:
            text = _quoted(one.text)
            alike = one.source if self.is_code else text[-ALIKE:]
            told.setdefault(alike, f"{one.source}: {text}")
        shown = list(told.values())[: self.most_evidence]
        lines = self.several("because", shown)
        left = len(told) - len(shown)
        return [*lines, self.block("", f"+{left}")] if left > 0 else lines

    def steps(self, fix: Sequence[FixStep]) -> list[str]:
        lines = []
        for index, step in enumerate(fix):
            lines.append(self.block("fix" if index == 0 else "", step.text or "", step.command))
        return lines

    def several(self, key: str, texts: Sequence[str]) -> list[str]:
        """Return several texts beside one label."""
        return [self.block("" if index else key, text) for index, text in enumerate(texts)]

    def block(self, key: str, text: str, command: str = "") -> str:
        """Write a label with filled text; a command stands on a line of its own, unbroken."""
        if not (text or command):
            return ""
        label = word(key, self.language) if key else ""
        head = "  " + label + " " * max(1, COLUMN - 2 - shown_width(label))
        lines = []
        if text:
            lines.append(wrapped(text, width=self.width, first=head, rest=" " * COLUMN))
        if command:
            lead = head if key and not text else " " * (COLUMN + 2)
            lines.append(lead + paint(command, "cyan", colour=self.colour))
        return "\n".join(lines)


def fix_plan(diagnosis: Diagnosis, *, language: Language = "en") -> str:
    """Write every fix's steps as a shell script that explains itself; nothing is run."""
    steps: list[str] = []
    for number, one in enumerate(diagnosis.findings, start=1):
        steps.append(f"# {number}. {one.summary}  [{one.cause}]")
        for step in one.fix:
            steps += [f"#    {step.text}"] if step.text else []
            steps += [step.command] if step.command else []
        steps.append("")
    if not steps:
        return f"# {word('nothing to do', language)}"
    return "\n".join([f"# {word('plan', language)}", "", *steps]).rstrip()


def shared_report(diagnosis: Diagnosis, facts: MachineFacts) -> str:
    """Return the diagnosis and the machine as Markdown for a bug tracker; the caller redacts it."""
    lines = ["### tfdyno doctor", ""]
    for one in diagnosis.findings:
        lines.append(f"- **{one.cause}** ({one.verdict}): {one.summary}")
        lines += [f"  - {seen.source}: `{_quoted(seen.text)}`" for seen in one.evidence]
    if not diagnosis.findings:
        lines.append("- no finding")
    lines += ["", f"fine: {' · '.join(diagnosis.fine) or 'nothing was looked at'}", ""]
    machine = [(name, value) for name, value in _machine(facts) if value]
    lines += ["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in machine)]
    if facts.environment:
        lines += ["", "```", *(f"{key}={val}" for key, val in facts.environment.items()), "```"]
    return "\n".join(lines)


def _machine(facts: MachineFacts) -> list[tuple[str, str]]:
    packages = ", ".join(f"{one.name} {one.version}" for one in facts.python.distributions)
    if folder := facts.python.tensorflow_folder:
        bare = f"TensorFlow of {facts.tensorflow or 'unknown version'} in {folder}, no metadata"
        packages = ", ".join(filter(None, (packages, bare)))
    cards = ", ".join(f"{one.name} {one.compute_capability}" for one in facts.gpus or ())
    kind = "WSL" if facts.is_wsl else facts.container if facts.container != "none" else ""
    return [
        (
            "system",
            " ".join(filter(None, (facts.release or facts.system, facts.architecture, kind))),
        ),
        ("Python", " ".join(filter(None, (facts.python.version, facts.python.manager)))),
        ("packages", packages or f"TensorFlow {facts.tensorflow}"),
        ("driver", " ".join(filter(None, (facts.driver.version, facts.driver.cuda)))),
        ("GPUs", cards or ", ".join(facts.pci_gpus or ())),
        ("libraries", ", ".join(map(_library, facts.libraries))),
    ]


def _library(one: LibraryFacts) -> str:
    """Write ``libcudnn.so.9 9.5.1``, or what keeps it from being loaded."""
    if not one.error:
        return f"{one.soname} {one.version or 'found'}"
    is_absent = "No such file" in one.error
    return f"{one.soname} {'missing' if is_absent else f'({one.error})'}"


def _nothing(diagnosis: Diagnosis, from_log: bool, language: Language) -> str:
    if not from_log:
        return word("nothing wrong", language)
    return word("harmless only" if diagnosis.ignored else "nothing known", language)


def _ignored(ignored: Sequence[Finding], lay: _Layout, show: bool) -> str:
    if not ignored:
        return ""
    total = sum(one.count for one in ignored)
    if show:
        head = word("harmless count", lay.language, n=total)
        reasons = [lay.block("", f"{one.count} x {one.cause}: {one.why}") for one in ignored]
        return "\n".join([lay.block("ignored", head), *reasons])
    kinds = [f"{one.count} {one.cause.partition('.')[2]}" for one in ignored[:MOST_KINDS]]
    kinds += ["…"] if len(ignored) > MOST_KINDS else []
    text = word("harmless lines", lay.language, n=total, kinds=", ".join(kinds))
    return lay.block("ignored", f"{text}  ({word('show ignored', lay.language)})")


def _total(findings: Sequence[Finding], exit_code: int, language: Language) -> str:
    errors = max(int(exit_code == 1), sum(one.severity == "error" for one in findings))
    warnings = sum(one.severity == "warning" for one in findings)
    total = word(
        "total",
        language,
        errors=counted(errors, "error", language),
        warnings=counted(warnings, "warning", language),
    )
    stop = "。" if language == "zh" else "."
    return f"{total}{stop}  {word('exit', language, code=exit_code)}"


def _quoted(text: str) -> str:
    """Return a line in one row, without the date and the place in TensorFlow's source before it."""
    whole = " ".join(text.split())
    return shorten(re.sub(_PREFIX, "", whole, count=1) or whole, MOST_QUOTED)
