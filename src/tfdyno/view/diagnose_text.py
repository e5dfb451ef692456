"""A diagnosis as terminal text: the answer first, the split of a step, cause, fix, gain, next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.view.amounts import listed
from tfdyno.view.bench_words import seconds_words
from tfdyno.view.diagnose_words import (
    bar,
    command,
    expected_words,
    proof_words,
    run_words,
    shares,
    step_line,
)
from tfdyno.view.text import WIDTH, paint, wrapped

if TYPE_CHECKING:
    from tfdyno.core.bottleneck import Bottleneck
    from tfdyno.view.diagnose_document import DiagnoseTold

MOST_EVIDENCE = 3
COLUMN = 12
"""Where the text behind a label begins."""
_SIDE = 6
"""Columns right of a bar, for its share."""
_STYLES = {"error": "red", "warning": "yellow", "note": "green"}


def diagnose_text(told: DiagnoseTold, *, width: int = WIDTH, colour: bool = False) -> str:
    """The whole answer.

    Args:
        told: What came out.
        width: Columns of the screen.
        colour: Whether to print colours; they only repeat what words say.
    """
    lay = _Layout(told, width, colour)
    diagnosis = told.proven.diagnosis
    primary, *others = diagnosis.findings
    blocks = [
        lay.headline(diagnosis.primary),
        lay.split(),
        lay.finding(primary, first=True),
        *(lay.finding(one, first=False) for one in others),
        lay.after(),
        lay.notes(),
    ]
    return "\n\n".join(block for block in blocks if block)


class _Layout:
    """Where things stand on the screen: labels left, text beside them, filled to the width."""

    def __init__(self, told: DiagnoseTold, width: int, colour: bool) -> None:
        self.told, self.width, self.colour = told, width, colour

    def headline(self, primary: Bottleneck) -> str:
        answer = wrapped(primary.summary, width=self.width)
        lines = [paint(line, "bold", colour=self.colour) for line in answer.split("\n")]
        title = self.told.proven.diagnosis.title
        about = ": ".join(filter(None, (title, run_words(self.told.facts))))
        return "\n".join([*lines, wrapped(about, width=self.width)])

    def split(self) -> str:
        """One bar for each part of a step, then the step as a whole."""
        diagnosis = self.told.proven.diagnosis
        parts = shares(diagnosis.split_s)
        names = max([COLUMN - 2, *(len(name) + 1 for name, _ in parts)])
        room = self.width - 2 - names - _SIDE
        lines = []
        for name, percent in parts:
            lines.append(f"  {name:<{names}}{bar(percent, room):<{room}}{percent:>{_SIDE - 1}}%")
        step = step_line(diagnosis.step_s, self.told.facts, self.told.samples_per_s)
        lines.append(self.block("step", step))
        kinds = sorted(diagnosis.compute_s.items(), key=lambda one: -one[1])
        words = ", ".join(f"{name} {seconds_words(value)}" for name, value in kinds if value > 0)
        lines.append(self.block("compute", words))
        return "\n".join(filter(None, lines))

    def finding(self, one: Bottleneck, *, first: bool) -> str:
        """Cause with its proof, what to do, what that should gain and what it gained."""
        mark = paint(one.cause, _STYLES[one.severity], colour=self.colour)
        fits = COLUMN + len(one.cause) + 3 + len(one.place) <= self.width
        place = f"   {one.place}" if one.place and fits else ""
        lines = [self.labelled("cause" if first else "also", f"{mark}{place}")]
        lines.append("" if fits else self.block("", one.place))
        if not first:
            lines.append(self.block("", one.summary))
        seen = [f"{each.source}: {each.text}" for each in one.evidence]
        shown = seen if len(seen) <= MOST_EVIDENCE else [*seen[:MOST_EVIDENCE], "…"]
        lines += [self.block("because" if at == 0 else "", each) for at, each in enumerate(shown)]
        for at, step in enumerate(one.fix):
            lines.append(self.block("fix" if at == 0 else "", step.text, step.command))
        lines += self.gains(one)
        return "\n".join(filter(None, lines))

    def gains(self, one: Bottleneck) -> list[str]:
        step_s = self.told.proven.diagnosis.step_s
        lines = []
        if one.expected_gain and one.bottleneck_class != "healthy":
            lines.append(self.block("expected", expected_words(one.expected_gain, step_s)))
        if proof := self.told.proof_of(one):
            label, words = proof_words(proof)
            style = "green" if proof.kept else "dim"
            lines.append(self.block(label, words, style=style))
        return lines

    def after(self) -> str:
        """What to type to have it, and what may come next."""
        told = self.told
        lines = []
        if told.kept:
            lines.append(self.typed("apply", "train", told.kept))
            lines.append(self.typed("next", "diagnose", told.kept))
        elif not told.tried and any(one.settings for one in told.proven.diagnosis.findings):
            words = ("--fix", *told.own_arguments, *told.arguments)
            fix = command("diagnose", told.reference, words, {})
            lines.append(self.block("next", "measure the change, keep it if it is faster and "
                                            "learns the same:", fix))  # fmt: skip
        if told.tried and told.proven.left:
            text = f"{listed(list(told.proven.left))} not tried; --resume goes on"
            lines.append(self.block("left", text))
        lines.append(self.block("wrote", listed(list(told.written)) if told.written else ""))
        return "\n".join(filter(None, lines))

    def notes(self) -> str:
        facts, diagnosis = self.told.facts, self.told.proven.diagnosis
        notes = [*facts.notes, *(note for note in diagnosis.notes if note not in facts.notes)]
        lines = [self.block("" if at else "notes", note) for at, note in enumerate(notes)]
        return "\n".join(lines)

    def typed(self, label: str, verb: str, kept: dict[str, object]) -> str:
        own = self.told.own_arguments if verb == "diagnose" else ()
        words = command(verb, self.told.reference, (*own, *self.told.arguments), kept)
        return self.block(label, "", words)

    def labelled(self, label: str, text: str) -> str:
        return f"  {label:<{COLUMN - 2}}{text}"

    def block(self, label: str, text: str, typed: str = "", *, style: str = "") -> str:
        """A label with filled text; a command stands on a line of its own and is never broken."""
        if not (text or typed):
            return ""
        head = self.labelled(label, "")
        lines = []
        if text:
            filled = wrapped(text, width=self.width, first=head, rest=" " * COLUMN)
            if style and label:
                marked = paint(label, style, colour=self.colour)
                filled = filled.replace(label, marked, 1)
            lines.append(filled)
        if typed:
            lead = " " * (COLUMN + 2) if text else head
            lines.append(lead + paint(typed, "cyan", colour=self.colour))
        return "\n".join(lines)
