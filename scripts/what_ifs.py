"""Ask the page's server and the command line the same random questions; run by scripts/what_ifs."""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.ui.what_ifs import RANKING, RUN, STEP, drawn, of_command, of_page

from tfdyno.jobs.choose import trace
from tfdyno.ui.traces import Traces

ASKED = (*(STEP,) * 80, *(RUN,) * 19, RANKING)
"""As often as the page asks them, nearly: a ranking takes as long as fifty steps."""
TOLD_EVERY = 500


def main(count: int, seed: int) -> int:
    """Compare so many answers; return how many differ."""
    # Each command reads the product's own files to name a trace; here they stay as they are.
    trace.code_digest = functools.cache(trace.code_digest)
    random, traces = Random(seed), Traces()
    answered = differing = 0
    for number in range(1, count + 1):
        page, command = of_page(random.choice(ASKED), drawn(random), traces)
        answered += page.startswith(b"{")
        if page != of_command(command):
            differing += 1
            print(f"differs: {command}")
        if number % TOLD_EVERY == 0 or number == count:
            print(f"{number:,} asked, {answered:,} answered, {differing} differ", flush=True)
    return differing


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    sys.exit(1 if main(*(given + [10_000, 1][len(given) :])) else 0)
