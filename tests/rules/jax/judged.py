"""Sources judged as the files of a project."""

from __future__ import annotations

from tfdyno.core.doctor.move import MoveAnswer, Obstacle, move_of
from tfdyno.rules.jax.project import judged, obstacles
from tfdyno.rules.jax.rewrite import moved

HEAD = "import tensorflow as tf\nimport keras\n"


def places(source: str, **others: str) -> tuple[Obstacle, ...]:
    """Return the places of ``train.py``, which imports the others."""
    files = {"train.py": source} | {f"{name}.py": text for name, text in others.items()}
    found, notes = judged(files, files.__getitem__)
    assert notes == ()
    return obstacles(found)


def causes(source: str, **others: str) -> list[tuple[str, str]]:
    """Return where each cause is seen: ``("train.py:4", "operation")``."""
    return [(one.source, one.cause.partition(".")[2]) for one in places(source, **others)]


def answer(source: str, **others: str) -> MoveAnswer:
    """Return the verdict."""
    return move_of("train.py", "jax", places(source, **others)).answer


def layer(*lines: str, init: str = "") -> str:
    """Return a layer with these lines in its call, and ``init`` in its __init__."""
    body = "".join(f"        {one}\n" for one in lines)
    first = f"    def __init__(self):\n        super().__init__()\n        {init}\n" if init else ""
    return f"{HEAD}class Own(keras.layers.Layer):\n{first}    def call(self, x):\n{body}"


def migrated(source: str) -> tuple[str, list[int]]:
    """Return the new text, and the lines that are left to a person."""
    (one, *_), _ = judged(["train.py"], lambda _name: source)
    found = moved(one, "train.py")
    return found.after, [hand.line for hand in found.hands]
