"""What becomes of a Horovod script, and how Horovod is kept, as terminal text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.view.base.text import WIDTH, paint, wrapped
from tfdyno.words.base.amounts import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.doctor.migration import (
        Change,
        Hand,
        Keeping,
        Migration,
        MigrationStep,
        Support,
    )

_WHY_NOT = (
    "Horovod 0.28.1 of 2023, its last release, trains right with Keras 2 and TensorFlow 2.15. "
    "It does not build with TensorFlow 2.21, and with Keras 3 its DistributedOptimizer silently "
    "does nothing: each process trains a model of its own."
)
_SAME = (
    "What is learned stays: as many samples in each update, the same learning rate at each of "
    "them. Random numbers (dropout, shuffling) are others. BatchNormalization sees other rows of "
    "the same batch on each replica, and its moving averages are those of all of them."
)
_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def migrate_text(
    found: Migration,
    *,
    commands: Sequence[str],
    keep_command: str,
    written: Sequence[str] = (),
    refused: str = "",
    width: int = WIDTH,
    colour: bool = False,
) -> str:
    """Return the answer first, then the diff, then why.

    Args:
        found: What became of the script.
        commands: What writes the new script and runs it, one after the other.
        keep_command: What prints how to keep Horovod.
        written: Files that were written: the new script, and the old one where it was kept.
        refused: The file that was to be written and is not, for places that need a hand.
        width: Columns.
        colour: Whether the terminal shows it.
    """
    head = _answer(found, commands, written, width)
    notes = [*_notes(found), f"{_WHY_NOT} {keep_command} prints how to keep it there."]
    return laid_out(found, head, notes, written=bool(written), refused=refused, width=width,
                    colour=colour)  # fmt: skip


def laid_out(
    found: Migration,
    head: str,
    notes: Sequence[str],
    *,
    written: bool,
    refused: str,
    width: int,
    colour: bool,
) -> str:
    """Return the answer, what is left to a person, the diff, why, and the notes.

    Args:
        found: What became of the script.
        head: The answer, in lines.
        notes: Sentences at the end.
        written: Whether the new script was written; then the diff is left out.
        refused: The file that was to be written and is not, for places that need a hand.
        width: Columns.
        colour: Whether the terminal shows it.
    """
    if refused and found.hands:
        head += f"\n{wrapped(f'{refused} is not written.', width=width)}"
    blocks = [paint(head, "bold", colour=colour)]
    blocks += [_hand(one, found.path, width) for one in found.hands]
    if not written:
        blocks.append(_diff(found.diff, colour=colour))
    if found.changes:
        blocks.append(_reasons(found.changes, width))
    blocks += [wrapped(one, width=width) for one in notes]
    return "\n\n".join(filter(None, blocks))


def by_hand(found: Migration, before: str, width: int) -> str:
    """Return the answer where places are left to a person, who has to see to them first.

    Args:
        found: What became of the script.
        before: What is not possible before: ``it moves to JAX``.
        width: Columns.
    """
    need = "needs" if len(found.hands) == 1 else "need"
    places, count = plural(len(found.hands), "place"), plural(len(found.changes), "change")
    return wrapped(f"{places} {need} your hand before {before}; {count} can be made.", width=width)


def _answer(found: Migration, commands: Sequence[str], written: Sequence[str], width: int) -> str:
    count = plural(len(found.changes), "change")
    more = f"{len(found.findings)} more by hand (below)" if found.findings else ""
    if found.hands:
        return by_hand(found, "it can be launched", width)
    if not written:
        what = (
            f"take Horovod out; Keras 3 needs {more}" if more else "make it a plain Keras 3 script"
        )
        lead = f"{count} {what}; write and run it by"
        return "\n  ".join([wrapped(lead, width=width), *commands])
    kept = f" ({written[1]} is the old one)" if len(written) > 1 else ""
    then = f"; Keras 3 needs {more}, then run it by" if more else "; run it by"
    lead = f"{count} made in {written[0]}{kept}{then}"
    return "\n  ".join([wrapped(lead, width=width), *commands])


def _hand(one: Hand, path: str, width: int) -> str:
    """Write a place that is left to a person, with what to do."""
    told = wrapped(f"{one.why}; {one.remedy}.", width=width, first="  ", rest="  ")
    return f"{path}:{one.line}: {one.text}\n{told}"


def _diff(diff: str, *, colour: bool) -> str:
    """Return a diff in its colours."""
    return "\n".join(
        paint(line, _STYLES.get(line[:1], ""), colour=colour) if line[:1] in _STYLES else line
        for line in diff.splitlines()
    )


def _reasons(changes: Sequence[Change], width: int) -> str:
    """Return one line for each reason, with the lines of the script that it was."""
    lines = []
    for why in dict.fromkeys(one.why for one in changes):
        own = [one for one in changes if one.why == why]
        names = ", ".join(dict.fromkeys(one.name for one in own))
        numbers = ", ".join(str(line) for line in dict.fromkeys(one.line for one in own))
        where = f"line{'s' * (',' in numbers)} {numbers}"
        text = f"{where}, {names}: {why}."
        lines.append(wrapped(text, width=width, first="  ", rest="    "))
    return "\n".join(["What was changed, and why:", *lines])


def _notes(found: Migration) -> list[str]:
    notes = [] if found.hands else [_SAME]
    for one in found.findings:
        lines = ", ".join(each.source for each in one.evidence)
        fix = next((each.text for each in one.fix if each.text), "")
        notes.append(f"Keras 3 needs more ({lines}): {one.summary} {fix}".rstrip())
    return notes + beside_notes(found)


def beside_notes(found: Migration) -> list[str]:
    """Return which other files are to be changed too, in a sentence; none: there are none."""
    if not found.beside:
        return []
    return [f"Migrate as well: {', '.join(found.beside)}, which it imports."]


def keep_text(found: Keeping, *, width: int = WIDTH, colour: bool = False) -> str:
    """Say where Horovod runs, what installs it and what starts it.

    Args:
        found: The commands.
        width: Columns.
        colour: Whether the terminal shows it.
    """
    head = "Horovod 0.28.1 can be kept with Keras 2 and TensorFlow 2.15, and nowhere later."
    seen = [_seen(one, width) for one in found.support]
    blocks = [paint(wrapped(head, width=width), "bold", colour=colour), "\n".join(seen)]
    blocks += ["Install it:", *(_step(one, width) for one in found.install)]
    blocks += ["Start it, by one of:", *(_step(one, width) for one in found.start)]
    return "\n\n".join(blocks)


def _seen(one: Support, width: int) -> str:
    text = f"TensorFlow {one.tensorflow}, Keras {one.keras}: builds: {one.builds}"
    text += f"; {one.trains}" if one.trains else ""
    return wrapped(f"{text}.", width=width, first="  ", rest="    ")


def _step(one: MigrationStep, width: int) -> str:
    told = wrapped(one.text, width=width, first="  ", rest="  ")
    return f"{told}\n    {one.command}" if one.command else told
