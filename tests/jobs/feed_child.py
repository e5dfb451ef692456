"""A stand-in for ``tfdyno.runtime.data.child`` that measures nothing: its feed is made up.

It is a real child process; ``feed.json`` of the working folder is what it hands over, and
``asked.json`` what it was asked.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import UsageError
from tfdyno.process import child

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Value

SOFTWARE = {"tensorflow": "2.21.0", "keras": "3.15.1", "python": "3.11.7", "devices": ["CPU"]}


def handle(request: dict[str, Any], progress: Value) -> dict[str, Any]:
    """Answer as the file says."""
    asked = {**request, "backend": os.environ.get("KERAS_BACKEND")}
    Path("asked.json").write_text(json.dumps(asked))
    progress("round 1 of 5, 2 CPUs")
    found: dict[str, Any] = json.loads(Path("feed.json").read_text())
    if "fail" in found:
        raise UsageError("train.py failed", why=found["fail"])
    return {"feed": found, "software": SOFTWARE}


if __name__ == "__main__":
    child.leave(child.serve(handle))
