"""A diagnosis as terminal text: the answer first, where the time goes, cause, fix, gain, next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.view.base.text import COLUMN, WIDTH, block, padded, paint, shown_width, table, wrapped
from tfdyno.view.diagnose.course import (
    highs,
    longest_stalls,
    range_words,
    rate_words,
    sparkline,
    stall_words,
    told_stages,
)
from tfdyno.view.diagnose.words import (
    bar,
    card_rows,
    expected_words,
    next_steps,
    proof_words,
    run_words,
    shares,
    step_line,
)
from tfdyno.words.base.amounts import listed
from tfdyno.words.base.language import say
from tfdyno.words.bench.measurement import seconds_words
from tfdyno.words.diagnose.steps import class_name, part_name

if TYPE_CHECKING:
    from tfdyno.core.measure.bottleneck import Bottleneck, StepDiagnosis
    from tfdyno.view.diagnose.document import DiagnoseReport

MOST_EVIDENCE = 3
MOST_STAGES = 6
_SIDE = 6
"""Columns right of a bar, for its share."""
_STYLES = {"error": "red", "warning": "yellow", "note": "green"}


def diagnose_text(told: DiagnoseReport, *, width: int = WIDTH, colour: bool = False) -> str:
    """Return the whole answer.

    Args:
        told: What came out.
        width: Columns of the screen.
        colour: Whether to print colours; they only repeat what words say.
    """
    lay = Layout(told, width, colour)
    diagnosis = told.proven.diagnosis
    primary, *others = diagnosis.findings
    blocks = [
        lay.headline(diagnosis.primary),
        lay.split(),
        lay.finding(primary, first=True),
        *(lay.finding(one, first=False) for one in others),
        lay.course(),
        lay.stages(),
        lay.split_after(),
        lay.after(),
        lay.notes(),
    ]
    return "\n\n".join(block for block in blocks if block)


class Layout:
    """Where things stand on the screen: labels left, text beside them, filled to the width."""

    def __init__(self, told: DiagnoseReport, width: int, colour: bool) -> None:
        self.told, self.width, self.colour = told, width, colour

    def headline(self, primary: Bottleneck) -> str:
        """Return the answer, and below what was looked at."""
        answer = wrapped(primary.summary, width=self.width)
        lines = [paint(line, "bold", colour=self.colour) for line in answer.split("\n")]
        title = self.told.proven.diagnosis.title
        about = say(": ").join(filter(None, (title, run_words(self.told.facts))))
        return "\n".join([*lines, wrapped(about, width=self.width)])

    def split(self) -> str:
        """Return one bar for each part of a step, then the step as a whole."""
        diagnosis = self.told.proven.diagnosis
        step = step_line(diagnosis.step_s, self.told.facts, self.told.samples_per_s)
        lines = [*self.bars(diagnosis, 1.0), self.block(say("step"), step)]
        kinds = sorted(diagnosis.compute_s.items(), key=lambda one: -one[1])
        words = say(", ").join(
            f"{class_name(name)} {seconds_words(value)}" for name, value in kinds if value > 0
        )
        lines.append(self.block(say("compute"), words))
        for at, (name, doing) in enumerate(card_rows(self.told.facts.cards)):
            lines.append(self.block("" if at else "GPU", say(": ").join((name, doing))))
        return "\n".join(filter(None, lines))

    def bars(self, diagnosis: StepDiagnosis, ratio: float) -> list[str]:
        """Return a bar for each part; a whole step takes ``ratio`` of the room for bars."""
        before = self.told.proven.diagnosis
        named = [part_name(name) for one in (before, diagnosis) for name, _ in shares(one.split_s)]
        names = max([COLUMN - 2, *(shown_width(name) + 1 for name in named)])
        room = self.width - 2 - names - _SIDE
        return [
            f"  {padded(part_name(name), names)}{bar(percent, room * ratio):<{room}}"
            f"{percent:>{_SIDE - 1}}%"
            for name, percent in shares(diagnosis.split_s)
        ]

    def course(self) -> str:
        """Return a mark for each stretch of steps, and the longest of them."""
        timeline = self.told.facts.timeline
        if timeline is None or not timeline.whole_s:
            return ""
        marks = sparkline(highs(timeline), self.width - COLUMN)
        lines = [self.labelled(say("over time"), marks), self.block("", range_words(timeline))]
        lines += [self.block("", stall_words(one)) for one in longest_stalls(timeline)]
        return "\n".join(lines)

    def stages(self) -> str:
        """Write what each stage of the pipeline takes of a batch, and the step by itself."""
        diagnosis, samples = self.told.proven.diagnosis, self.told.samples_of_step
        longest = sorted(told_stages(diagnosis.stages), key=lambda one: -one.batch_s)[:MOST_STAGES]
        told = [(one.title, one.batch_s, one.place) for one in diagnosis.stages if one in longest]
        if not told:
            return ""
        told.append((say("all of them"), diagnosis.batch_s, ""))
        if diagnosis.held_s:
            told.append((say("the step alone"), diagnosis.held_s, ""))
        rows = [(name, seconds_words(s), rate_words(samples / s), place) for name, s, place in told]
        heads = (say("stage by itself"), say("a batch"), say("it could give"), "")
        lines = table(heads, rows, align="<>>", width=self.width - COLUMN, elastic=0, spare=(3, 2),
                      colour=self.colour).split("\n")  # fmt: skip
        return "\n".join(
            self.labelled("" if at else say("stages"), one) for at, one in enumerate(lines)
        )

    def split_after(self) -> str:
        """Draw the step with all that was kept, on the scale of the one before."""
        before, after = self.told.proven.diagnosis, self.told.proven.after
        if after is None:
            return ""
        ratio = min(1.0, after.step_s / before.step_s)
        head = say(
            "With what was kept, looked at again: {before} -> {after} a step",
            before=seconds_words(before.step_s),
            after=seconds_words(after.step_s),
        )
        lines = [wrapped(head, width=self.width), *self.bars(after, ratio)]
        return "\n".join([*lines, self.block(say("now"), after.primary.summary)])

    def finding(self, one: Bottleneck, *, first: bool) -> str:
        """Write a cause with its proof, what to do, what that should gain and what it gained."""
        mark = paint(one.cause, _STYLES[one.severity], colour=self.colour)
        fits = COLUMN + len(one.cause) + 3 + len(one.place) <= self.width
        place = f"   {one.place}" if one.place and fits else ""
        lines = [self.labelled(say("cause" if first else "also"), f"{mark}{place}")]
        lines.append("" if fits else self.block("", one.place))
        if not first:
            lines.append(self.block("", one.summary))
        seen = [say(": ").join((each.source, each.text)) for each in one.evidence]
        shown = seen if len(seen) <= MOST_EVIDENCE else [*seen[:MOST_EVIDENCE], "…"]
        lines += [
            self.block(say("because") if at == 0 else "", each) for at, each in enumerate(shown)
        ]
        for at, step in enumerate(one.fix):
            lines.append(self.block(say("fix") if at == 0 else "", step.text, step.command))
        lines += self.gains(one)
        return "\n".join(filter(None, lines))

    def gains(self, one: Bottleneck) -> list[str]:
        """Return what it should gain, and what came out of trying."""
        step_s = self.told.proven.diagnosis.step_s
        lines = []
        if one.expected_gain and one.asks_for_change:
            lines.append(self.block(say("expected"), expected_words(one.expected_gain, step_s)))
        if proof := self.told.proof_of(one):
            label, words = proof_words(proof)
            style = "green" if proof.kept else "dim"
            lines.append(self.block(say(label), words, style=style))
        return lines

    def after(self) -> str:
        """Return what to type to have it, and what may come next."""
        told = self.told
        lines = [
            self.block(say(label), "" if told.kept else say("{purpose}:", purpose=purpose), typed)
            for label, purpose, typed in next_steps(told)
        ]
        if told.tried and told.proven.left:
            text = say("{left} not tried; --resume goes on", left=listed(list(told.proven.left)))
            lines.append(self.block(say("left"), text))
        lines.append(self.block(say("wrote"), listed(list(told.written)) if told.written else ""))
        return "\n".join(filter(None, lines))

    def notes(self) -> str:
        """Return what else is to be said."""
        notes = enumerate(self.told.notes)
        return "\n".join(self.block("" if at else say("notes"), note) for at, note in notes)

    def labelled(self, label: str, text: str) -> str:
        """Write text on the line of its label."""
        return padded(f"  {label}", COLUMN) + text

    def block(self, label: str, text: str, typed: str = "", *, style: str = "") -> str:
        """Write a label with filled text; a command stands on a line of its own, unbroken."""
        if not (text or typed):
            return ""
        head = self.labelled(label, "")
        lines = []
        if text:
            lines.append(block(label, text, self.width, style=style, colour=self.colour))
        if typed:
            lead = " " * (COLUMN + 2) if text else head
            lines.append(lead + paint(typed, "cyan", colour=self.colour))
        return "\n".join(lines)
