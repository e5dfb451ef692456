"""Child process: the software that a workload would run on, and its devices; nothing is run.

Request: ``workload`` (fields of the noun). Result: ``software``, as ``runtime.bench`` tells it.
"""

from __future__ import annotations

from typing import Any

from tfdyno.process import child
from tfdyno.runtime.base.software import software, tensorflow_for


def handle(_request: child.Request, progress: child.Progress) -> dict[str, Any]:
    """Look at the place; raises ``UsageError`` where TensorFlow is missing."""
    progress("importing TensorFlow")
    tensorflow_for("tune")
    return {"software": software()}


if __name__ == "__main__":
    child.leave(child.serve(handle))
