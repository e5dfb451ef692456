"""A step that serves: a server of this machine, a load test of it, and its end."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.jobs.project._child import LOOK_S, WorkingPlace, ended, own_words, started

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Mapping

READY = "ready.json"
SECONDS = 5
"""The time of the load, where the project's file does not say."""
LONGEST_START_S = 600.0


def load_tested(
    words: tuple[str, ...],
    load: Mapping[str, object],
    place: WorkingPlace,
    *,
    said: Callable[[str], None],
) -> int:
    """Serve, load-test and end the server.

    Args:
        words: ``serve`` and its options.
        load: Options of the load test.
        place: Where both run; the answer is that of the load test.
        said: Called with the last line of their log.

    Returns:
        The exit code of the load test, or of the server where it did not start.
    """
    there = replace(place, answer=place.answer.with_name(READY))
    with started(own_words((*words, "--port", "0")), there) as server:
        said("starting the server")
        url = _ready(server, there)
        if not url:
            if server.poll() is None:
                return 3
            return server.returncode or 3
        options = {"seconds": SECONDS, **load}
        return ended(own_words(_load_words(url, options)), place, said=said)


def _ready(server: subprocess.Popen[bytes], place: WorkingPlace) -> str:
    """Return the address that the server tells; empty: it has ended, or takes too long."""
    until_s = time.monotonic() + LONGEST_START_S
    while time.monotonic() < until_s:
        try:
            return str(json.loads(place.answer.read_bytes())["url"])
        except (OSError, ValueError, KeyError, TypeError):
            if server.poll() is not None:
                return ""
        time.sleep(LOOK_S)
    return ""


def _load_words(url: str, options: Mapping[str, object]) -> tuple[str, ...]:
    words = ["bench", "--json", "--verbose", "--serve", url]
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(flag)
        elif value is not False:
            items = value if isinstance(value, list) else [value]
            words += [flag, ",".join(map(str, items))]
    return tuple(words)
