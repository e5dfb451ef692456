"""A stand-in for ``tfdyno.runtime.data.child`` that measures nothing: its feed is made up.

It is a real child process; ``feed.json`` of the working folder is what it hands over, and
``asked.json`` what it was asked.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import UsageError
from tfdyno.core.measure.feed import Feed
from tfdyno.core.measure.software import Software
from tfdyno.core.messages.data import DATA, MeasuredData
from tfdyno.core.messages.wire import decode, encode, fields_of
from tfdyno.process import child

if TYPE_CHECKING:
    from tfdyno.core.messages.data import MeasureData

MADE_UP = replace(DATA, module="tests.jobs.feed_child")
SOFTWARE = Software(tensorflow="2.21.0", keras="3.15.1", python="3.11.7", devices=["CPU"])


def handle(request: MeasureData, progress: child.Progress) -> MeasuredData:
    """Answer as the file says."""
    asked = {**fields_of(request), "backend": os.environ.get("KERAS_BACKEND")}
    Path("asked.json").write_text(encode(asked))
    progress("round 1 of 5, 2 CPUs")
    found: dict[str, Any] = json.loads(Path("feed.json").read_text())
    if "fail" in found:
        raise UsageError("train.py failed", why=found["fail"])
    return MeasuredData(feed=decode(found, Feed), software=SOFTWARE)


if __name__ == "__main__":
    child.leave(child.serve(handle, DATA))
