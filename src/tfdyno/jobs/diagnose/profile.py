"""Say what holds a training back from a profile of it that was made elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.messages.diagnose import PROFILE, ReadProfile, SeenSteps
from tfdyno.jobs.child.worker import run_child, silent
from tfdyno.jobs.diagnose.diagnose import Examined, judged
from tfdyno.words.base.language import say
from tfdyno.words.diagnose.told import stage_words

if TYPE_CHECKING:
    from collections.abc import Callable

READ_LIMIT_S = 900.0
"""A profile of 100 MB takes about 5 s."""
_FILES = (".xplane.pb", ".xplane.pb.gz", ".trace.json", ".trace.json.gz")
_LOGS = "events.out.tfevents"


def is_profile(reference: str) -> bool:
    """Return whether what a user points at is a profile, or a folder of logs that may hold one.

    A file is one by its name, so that a foreign file is refused by what is wrong with it. A folder
    is one if it holds such a file or logs of TensorBoard, or nothing at all.
    """
    path = Path(reference)
    if not path.is_dir():
        return reference.endswith(_FILES)
    names = [each.name for each in path.rglob("*") if each.is_file()]
    return not names or any(name.endswith(_FILES) or name.startswith(_LOGS) for name in names)


def examined_profile(path: Path, *, progress: Callable[[str], None] = silent) -> Examined:
    """Say where the time of the steps in a profile went, and what follows from it.

    Args:
        path: An ``*.xplane.pb``, a ``*.trace.json.gz`` or a folder of logs.
        progress: Called with a line at every stage.

    Raises:
        UsageError: It is none, is damaged, or holds no step or no device.
    """
    facts = run_child(
        PROFILE,
        ReadProfile(path=path),
        progress=lambda line: progress(stage_words(line)),
        timeout_s=READ_LIMIT_S,
        doing=f"reading {path}",
    )
    progress(say("judging what was seen"))
    return judged(SeenSteps(facts=facts), {})
