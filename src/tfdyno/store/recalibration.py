"""The user's own anchors on disk: one JSON file, written atomically, locked while it changes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from tfdyno.core.base.codec import from_json, to_json, write_atomic
from tfdyno.core.base.errors import OSErrorsAs, UsageError
from tfdyno.core.base.lock import FileLock
from tfdyno.core.choose.recalibration import Anchor

FILE = "recalibration.json"
FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Content:
    format: int = FORMAT
    anchors: tuple[Anchor, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchors:
    """The anchors that a folder holds: one per workload, card, batch and number of replicas."""

    folder: Path

    @property
    def path(self) -> Path:
        """The file, whether or not it exists."""
        return self.folder / FILE

    def read(self) -> tuple[Anchor, ...]:
        """Return all anchors, oldest first.

        Raises:
            UsageError: The file cannot be read, is damaged or is of another version.
        """
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise UsageError(f"cannot read {self.path}", why=error.strerror or str(error)) from None
        try:
            content = from_json(data, _Content, where=str(self.path))
        except UsageError as error:
            raise UsageError(error.what, why=error.why, remedy="remove the file") from None
        if content.format != FORMAT:
            raise UsageError(f"{self.path} was written by another tfdyno", remedy="remove the file")
        return content.anchors

    def add(self, anchor: Anchor) -> None:
        """Store an anchor in place of an older one of the same; raises ``UsageError`` as above."""
        with OSErrorsAs(
            UsageError,
            f"{self.path} cannot be written",
            remedy="name a folder that you may write to in TFDYNO_DATA",
        ):
            self.folder.mkdir(parents=True, exist_ok=True)
            with FileLock(self.folder / f".{FILE}.lock", patience_s=math.inf):
                kept = tuple(one for one in self.read() if _key(one) != _key(anchor))
                write_atomic(self.path, to_json(_Content(anchors=(*kept, anchor)), indent=2))


def _key(anchor: Anchor) -> tuple[object, ...]:
    return anchor.subject, anchor.card, anchor.batch_size, anchor.replica_count
