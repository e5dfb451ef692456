"""The standard tasks: what they are, and what each must have learned after a short training."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from functools import lru_cache

from tfdyno.catalog.tables import DATA
from tfdyno.core.base.codec import from_builtins, read_toml
from tfdyno.core.base.errors import UsageError

PREFIX = "task:"
FASHION, DIGITS = "Fashion-MNIST", "scikit-learn digits"
"""The data sets that a task is trained on, whichever is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What a training on small real data reaches when nothing is broken."""

    metric: str
    """The metric's name in the history of ``fit``: ``accuracy`` of the last epoch,
    ``val_accuracy``, ``loss``."""
    value: float
    """The metric reaches at least this, or at most for a loss."""
    images: int
    """Images for training; a quarter more serve for evaluation."""
    batch_size: int
    epochs: int
    source: str
    """What was reached when it was measured, and with which seeds and versions."""
    digits_value: float | None = None
    """The same on scikit-learn's digits, where they are learned more slowly; None: ``value``."""

    def reached(self, history: dict[str, list[float]], *, data_set: str) -> bool:
        """Return whether the last epoch of a history on this data set is as good as this."""
        slower = self.digits_value if data_set == DIGITS else None
        value, last = self.value if slower is None else slower, history[self.metric][-1]
        return last <= value if self.metric.endswith("loss") else last >= value


@dataclass(frozen=True, slots=True, kw_only=True)
class StandardTask:
    """A well-known model with its optimizer, input and loss."""

    title: str
    about: str
    """One sentence: architecture, head, and what its input is."""
    inputs: tuple[str, ...]
    """``float32[224,224,3]`` of every input, without the batch."""
    optimizer: str
    """The optimizer by the name of its Keras class."""
    rate: float
    """Learning rate."""
    parameter_count: int
    """Weights and moving averages together."""
    samples_per_epoch: int
    """Samples of the data set that the model is known for; 0: none."""
    source: str
    """Where architecture, optimizer and numbers are from."""
    goal: Goal


@lru_cache(maxsize=1)
def standard_tasks() -> dict[str, StandardTask]:
    """Name to task, sorted; raises ``UsageError`` when the file is damaged."""
    path = DATA / "tasks.toml"
    return {
        name: from_builtins(row, StandardTask, where=f"{path} [{name}]")
        for name, row in read_toml(path).items()
    }


def find_task(name: str) -> StandardTask:
    """Return the task with this name, with or without ``task:``.

    Raises:
        UsageError: There is none; the nearest name is told, or all of them.
    """
    known, plain = standard_tasks(), name.removeprefix(PREFIX)
    if plain in known:
        return known[plain]
    near = difflib.get_close_matches(plain.lower(), known, n=1, cutoff=0.4)
    remedy = f"did you mean {PREFIX}{near[0]}?" if near else f"known: {', '.join(known)}"
    raise UsageError(f"there is no standard task {plain!r}", remedy=remedy)
