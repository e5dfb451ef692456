"""Card files on disk: one JSON file for each card and framework, written atomically."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tfdyno.core.base.codec import from_json, to_json, write_atomic
from tfdyno.core.base.errors import OSErrorsAs, UsageError
from tfdyno.core.choose.card_file import FORMAT, CardFile

FOLDER = "cards"
UNFINISHED = ".unfinished"
"""What stands before the ending of what a sweep left that did not end as it should: no estimate
uses it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CardFiles:
    """The card files of a user's folder."""

    folder: Path

    def path_of(self, card: CardFile, *, finished: bool = True) -> Path:
        """Return where the sweep of a card by a framework lies."""
        name = card.card.replace(":", "+").replace("/", "+")
        ending = "" if finished else UNFINISHED
        return self.folder / FOLDER / f"{name}.{card.framework}{ending}.json"

    def write(self, card: CardFile, *, finished: bool = True) -> Path:
        """Put a sweep in the place of an older one; raises ``UsageError`` or ``ToolError``."""
        path = self.path_of(card, finished=finished)
        with OSErrorsAs(
            UsageError,
            f"{path} cannot be written",
            remedy="name a folder that you may write to in TFDYNO_DATA",
        ):
            path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, to_json(card))
        return path

    def read(self) -> tuple[tuple[CardFile, ...], tuple[str, ...]]:
        """Return all finished sweeps, and a sentence for every file that cannot be used."""
        found, problems = [], []
        for path in sorted((self.folder / FOLDER).glob("*.json")):
            if path.name.endswith(f"{UNFINISHED}.json"):
                continue
            try:
                found.append(read_card_file(path))
            except UsageError as error:
                why = error.why or error.what
                words = f"it is damaged, or of another tfdyno ({why})"
                problems.append(f"The card file {path} is left out: {words}.")
        return tuple(found), tuple(problems)


def read_card_file(path: Path) -> CardFile:
    """Read one file.

    Raises:
        UsageError: It cannot be read, is damaged, or was written by another tfdyno.
    """
    with OSErrorsAs(UsageError, f"cannot read {path}"):
        data = path.read_bytes()
    card = from_json(data, CardFile, where=str(path))
    if card.format != FORMAT:
        raise UsageError(f"{path} cannot be used", why="it was written by another tfdyno")
    bad = next((one for one in card.kernels if not 0.0 < one.kernel_s < 3600.0), None)
    if bad or not card.kernels:
        why = "a kernel in it takes no possible time" if bad else "it holds no kernel"
        raise UsageError(f"{path} cannot be used", why=why)
    return card
