"""Child process: the software that Keras on JAX would run on, and its devices; nothing is run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.messages.bench import PLACE_ON_JAX
from tfdyno.process import child
from tfdyno.runtime.train_jax.start import begin_alone, software

if TYPE_CHECKING:
    from tfdyno.core.measure.software import Software
    from tfdyno.core.messages.child import Nothing


def handle(_request: Nothing, progress: child.Progress) -> Software:
    """Look at the place; raises ``UsageError`` where JAX or Keras 3 is missing."""
    progress("importing JAX and Keras")
    begin_alone("")
    return software()


if __name__ == "__main__":
    child.leave(child.serve(handle, PLACE_ON_JAX))
