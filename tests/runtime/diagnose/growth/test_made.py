"""Lines that make what stays, though nobody is seen to hold it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.benches import in_tensorflow

pytestmark = pytest.mark.tf
SCRIPT = """
import functools
import numpy as np, tensorflow as tf

@functools.lru_cache(maxsize=None)
def weights(step):
    return np.full((64, 64), step, "float32")

@functools.lru_cache(maxsize=None)
def losses(step):
    return tf.ones((8,)) * step

def passing(step):
    return [[step, number] for number in range(200)]

def run(made):
    made.start()
    for step in range(1, 61):
        weights(step)
        losses(step)
        row = passing(step)
        if step % 10 == 0 or step == 1:
            made.look(step)
"""
CODE = """
import runpy, sys, tempfile, tracemalloc
from pathlib import Path
from tfdyno.runtime.diagnose.growth.made import MadeWatch
script = Path(tempfile.mkdtemp()) / "cached.py"
script.write_text({script!r})
run = runpy.run_path(str(script))["run"]
made = MadeWatch()
few = made.suspects()
run(made)
found = made.suspects()
result = {{
    "few": len(few), "enough": made.is_enough, "on": [made.is_on, tracemalloc.is_tracing()],
    "words": [one.words for one in found], "kinds": [one.kind for one in found],
    "bytes": [one.bytes_per_step for one in found], "places": [one.place for one in made.lines()],
}}
made.stop()
result["off"] = [made.is_on, tracemalloc.is_tracing()]
tracemalloc.start()
other = MadeWatch()
other.start()
other.stop()
result["kept"] = tracemalloc.is_tracing()
"""


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return dict(in_tensorflow(CODE.format(script=SCRIPT)))


def _line(text: str) -> str:
    lines = SCRIPT.splitlines()
    return f"cached.py:{next(n for n, line in enumerate(lines, 1) if text in line)}"


def test_the_line_that_makes_kept_arrays_is_found_with_their_bytes(found: dict[str, Any]) -> None:
    assert found["words"][0].startswith(f"objects made at {_line('np.full')} and kept by something")
    # By hand: 64 x 64 floats are 16 KiB a step, and the array's own object.
    assert found["bytes"][0] == pytest.approx(16_384, rel=0.05)
    assert set(found["kinds"]) == {"objects"}


def test_what_is_made_and_dropped_again_is_not_told(found: dict[str, Any]) -> None:
    assert not [words for words in found["words"] if _line("for number in range(200)") in words]


def test_tensors_are_found_by_their_python_objects(found: dict[str, Any]) -> None:
    assert found["places"] == [_line("np.full"), _line("tf.ones((8,)) * step")]


def test_too_few_looks_tell_nothing(found: dict[str, Any]) -> None:
    assert found["few"] == 0
    assert found["enough"] is True


def test_python_is_left_as_it_was_and_what_the_script_asked_for_stays(
    found: dict[str, Any],
) -> None:
    assert found["on"] == [True, True]
    assert found["off"] == [False, False]
    assert found["kept"] is True
