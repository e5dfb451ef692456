"""What several test files need and takes long is made by one worker of the tests for all."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.base.untyped import Value


def once(name: str, make: Callable[[], Any]) -> Value:
    """What ``make`` gives, as JSON has it; who asks while it is made waits for it."""
    folder = Path(os.environ["TFDYNO_CACHE"]) / "once"
    folder.mkdir(parents=True, exist_ok=True)
    result = folder / f"{name}.json"
    with result.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not result.exists():
            text = json.dumps(make())
            result.write_text(text)
    return json.loads(result.read_text())
