"""Whether a script can train on Keras' JAX backend, told before anything starts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError
from tfdyno.rules.tensorflow_only import tensorflow_uses

if TYPE_CHECKING:
    from tfdyno.core.choose.workload import Workload

_WORDS = {
    "loop": ("trains by a loop of its own", "leave the training to model.fit"),
    "function": ("compiles by tf.function", "leave it out: JAX compiles the step by itself"),
    "strategy": ("makes a tf.distribute strategy", "leave it out: --mesh stands for it"),
    "operation": ("calls TensorFlow's own operation in a layer", "use keras.ops in its place"),
}


def check_script(workload: Workload) -> None:
    """Refuse a file that only TensorFlow can train; raises ``UsageError`` with the line.

    Args:
        workload: Whose file is read; other files that it imports are not.
    """
    path = Path(workload.reference.partition(":")[0])
    if path.suffix != ".py" or not path.is_file():
        return
    uses = tensorflow_uses(path.read_text(errors="replace"))
    if uses:
        first = min(uses, key=lambda use: (list(_WORDS).index(use.kind), use.line))
        said, remedy = _WORDS[first.kind]
        raise UsageError(
            f"{path} cannot train on the JAX backend",
            why=f"line {first.line} {said}: {first.name}",
            remedy=f"{remedy}, or train without --backend jax",
        )
