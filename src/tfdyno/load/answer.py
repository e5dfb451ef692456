"""Whether a 200 is an answer of the model: every one by its outline, the first of a kind in full.

To decode every body would cost the client more than the request itself. The outline of a body (how
many brackets, commas and colons it has) says whether it has the form of one that was decoded and
found right; whatever has another outline is decoded as well.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tfdyno.core.measure.load import ACCEPTED, WRONG_ANSWER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.measure.load_url import LoadUrl
    from tfdyno.load.requests import Body
    from tfdyno.load.server import TensorFacts

MOST_OUTLINES = 512


class AnswerCheck:
    """Turns a status and a body into the code that counts."""

    def __init__(
        self, url: LoadUrl, bodies: Sequence[Body], outputs: Sequence[TensorFacts]
    ) -> None:
        self.route, self.bodies, self.outputs = url.route, bodies, outputs
        self.known: set[tuple[int, tuple[int, ...]]] = set()
        """Rows, and an outline that was right for so many."""
        self.why = ""
        """What was wrong with the first answer that was."""

    def __call__(self, number: int, status: int, body: bytes) -> int:
        """Return the code of an answer to the request of this number."""
        if status != ACCEPTED:
            return status
        rows = self.bodies[number].rows
        found = (rows, outline(body))
        if found in self.known:
            return status
        wrong = self._wrong(body, rows)
        if wrong:
            self.why = self.why or wrong
            return WRONG_ANSWER
        if len(self.known) < MOST_OUTLINES:
            self.known.add(found)
        return status

    def _wrong(self, body: bytes, rows: int) -> str:
        """Return what is wrong with an answer; empty: nothing."""
        try:
            raw = json.loads(body)
        except ValueError:
            return "it is not JSON"
        if not isinstance(raw, dict):
            return "it is no object"
        if self.route == "kserve-v2":
            return self._wrong_tensors(raw, rows)
        if "outputs" in raw:
            return ""
        predictions = raw.get("predictions")
        if not isinstance(predictions, list):
            return "it has no predictions"
        if rows and len(predictions) != rows:
            return f"it has {len(predictions)} predictions for {rows} rows"
        return self._wrong_rows(predictions)

    def _wrong_rows(self, predictions: list[Any]) -> str:
        names = {one.name: one.shape[1:] for one in self.outputs}
        for row in predictions if names else ():
            named = row if len(names) > 1 and isinstance(row, dict) else {next(iter(names)): row}
            if set(named) != set(names):
                return f"it has outputs {sorted(named)}, the model {sorted(names)}"
            for name, value in named.items():
                if not _agree(names[name], _shape(value)):
                    return f"{name} has shape {_shape(value)}, the model {list(names[name])}"
        return ""

    def _wrong_tensors(self, raw: dict[str, Any], rows: int) -> str:
        outputs = raw.get("outputs")
        if not isinstance(outputs, list) or not all(isinstance(one, dict) for one in outputs):
            return "it has no outputs"
        names = {one.name: one.shape[1:] for one in self.outputs}
        found = {str(one.get("name")): one.get("shape") for one in outputs}
        if names and set(found) != set(names):
            return f"it has outputs {sorted(found)}, the model {sorted(names)}"
        for name, shape in found.items():
            if not isinstance(shape, list) or (rows and shape[:1] != [rows]):
                return f"{name} has shape {shape} for {rows} rows"
            if name in names and not _agree(names[name], shape[1:]):
                return f"{name} has shape {shape[1:]} a row, the model {list(names[name])}"
        return ""


def outline(body: bytes) -> tuple[int, ...]:
    """Count a body's brackets, commas, colons and braces, and tell how it begins and ends."""
    return (body.count(b"["), body.count(b","), body.count(b":"), body.count(b"]"),
            body[:1] == b"{", body[-2:].rstrip()[-1:] == b"}")  # fmt: skip


def _shape(value: object) -> list[int]:
    """Return sizes of nested lists, by their first elements."""
    sizes = []
    while isinstance(value, list):
        sizes.append(len(value))
        value = value[0] if value else None
    return sizes


def _agree(known: Sequence[int], found: Sequence[int]) -> bool:
    return len(known) == len(found) and all(
        size in (-1, given) for size, given in zip(known, found, strict=True)
    )
