"""A stand-in for ``tfdyno.runtime.diagnose.child``: looks at nothing, its facts come from a file.

It is a real child process; ``seen.json`` of the working folder is what it hands over, and
``asked.json`` what it was asked.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import UsageError
from tfdyno.core.messages.diagnose import LOOK, SeenSteps
from tfdyno.core.messages.wire import decode, encode, fields_of
from tfdyno.process import child

if TYPE_CHECKING:
    from tfdyno.core.messages.diagnose import LookAtSteps

MADE_UP = replace(LOOK, module="tests.jobs.diagnose_child")


def handle(request: LookAtSteps, progress: child.Progress) -> SeenSteps:
    """Answer as the file says."""
    place = {"pid": os.getpid(), "backend": os.environ.get("KERAS_BACKEND")}
    Path("asked.json").write_text(encode({**fields_of(request), **place}))
    progress("12 steps, median 52.1 ms")
    found: dict[str, Any] = json.loads(Path("seen.json").read_text())
    if "fail" in found:
        raise UsageError("train.py failed at step 3", why=found["fail"])
    if "signal" in found:
        os.kill(os.getpid(), found["signal"])
    time.sleep(found.pop("sleep_s", 0.0))
    return decode(found, SeenSteps)


if __name__ == "__main__":
    child.leave(child.serve(handle, LOOK))
