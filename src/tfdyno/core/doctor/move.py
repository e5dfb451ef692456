"""Whether a script moves to another backend of Keras, and what of it does not."""

from __future__ import annotations

from typing import Literal

from tfdyno.core.base.dataclass import dataclass

Effect = Literal["stops", "results", "speed", "unknown"]
"""What a place does: it stops the move, changes results, only costs speed, or is unknown."""
MoveAnswer = Literal["moves", "after_migrate", "rewrite", "unknown"]
"""As it is, after ``tfdyno migrate``, not without rewriting, or it cannot be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """One place of a script."""

    cause: str
    """Id of the finding that explains it: ``move.operation``."""
    effect: Effect
    file: str
    source: str
    """``train.py:41``, or the cell and line of a notebook."""
    text: str
    """The line of code."""
    name: str
    """What stands there, in short: ``tf.nn.relu``."""
    instead: str
    """What to write instead; empty where that takes more than a name."""
    is_safe: bool
    """Whether ``tfdyno migrate`` changes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """The answer for a file or a project."""

    path: str
    target: str
    """The backend: ``jax``."""
    answer: MoveAnswer
    obstacles: tuple[Obstacle, ...]
    """Places in the order of the files and lines."""

    @property
    def by_hand(self) -> tuple[Obstacle, ...]:
        """The places that stop the move and that ``migrate`` leaves to a person."""
        return tuple(one for one in self.obstacles if one.effect == "stops" and not one.is_safe)


def move_of(path: str, target: str, obstacles: tuple[Obstacle, ...]) -> Move:
    """Return the answer: one place that stops or cannot be told outweighs all that moves."""
    stops = [one for one in obstacles if one.effect == "stops"]
    answer: MoveAnswer = "after_migrate" if stops else "moves"
    if any(not one.is_safe for one in stops):
        answer = "rewrite"
    elif any(one.effect == "unknown" for one in obstacles):
        answer = "unknown"
    return Move(path=path, target=target, answer=answer, obstacles=obstacles)
