"""Child process: the software that a workload would run on, and its devices; nothing is run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.messages.bench import PLACE
from tfdyno.process import child
from tfdyno.runtime.base.software import software, tensorflow_for

if TYPE_CHECKING:
    from tfdyno.core.measure.software import Software
    from tfdyno.core.messages.child import Nothing


def handle(_request: Nothing, progress: child.Progress) -> Software:
    """Look at the place; raises ``UsageError`` where TensorFlow is missing."""
    progress("importing TensorFlow")
    tensorflow_for("tune")
    return software()


if __name__ == "__main__":
    child.leave(child.serve(handle, PLACE))
