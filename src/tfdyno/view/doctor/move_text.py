"""What becomes of a script that moves to JAX, as terminal text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.view.base.text import WIDTH, wrapped
from tfdyno.view.doctor.migrate_text import beside_notes, by_hand, laid_out
from tfdyno.words.base.amounts import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.doctor.migration import Migration


def move_text(
    found: Migration,
    *,
    commands: Sequence[str],
    written: Sequence[str] = (),
    refused: str = "",
    width: int = WIDTH,
    colour: bool = False,
) -> str:
    """Return the answer first, then what is left to a person, the diff, and why.

    Args:
        found: What became of the script.
        commands: What writes the new script and runs it, one after the other.
        written: Files that were written: the new script, and the old one where it was kept.
        refused: The file that was to be written and is not, for places that need a hand.
        width: Columns.
        colour: Whether the terminal shows it.
    """
    head = _answer(found, commands, written, width)
    return laid_out(found, head, _notes(found), written=bool(written), refused=refused, width=width,
                    colour=colour)  # fmt: skip


def _answer(found: Migration, commands: Sequence[str], written: Sequence[str], width: int) -> str:
    count = plural(len(found.changes), "change")
    if found.hands:
        return by_hand(found, "it moves to JAX", width)
    if not written:
        verb = "moves" if len(found.changes) == 1 else "move"
        lead = f"{count} {verb} it to Keras' JAX backend; write and run it by"
    else:
        kept = f" ({written[1]} is the old one)" if len(written) > 1 else ""
        lead = f"{count} made in {written[0]}{kept}; run it by"
    return "\n  ".join([wrapped(lead, width=width), *commands])


def _notes(found: Migration) -> list[str]:
    notes = []
    for one in found.findings:
        lines = ", ".join(each.source for each in one.evidence)
        fix = next((each.text for each in one.fix if each.text), "")
        notes.append(f"Look at {lines}: {one.summary} {fix}".rstrip())
    return notes + beside_notes(found)
