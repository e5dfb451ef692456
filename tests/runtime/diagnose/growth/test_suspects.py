"""Names that grow, told also when the code that has them is over."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.benches import in_tensorflow

pytestmark = pytest.mark.tf
SCRIPT = """
import collections, keras, numpy as np, tensorflow as tf

class Record(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.rows = []
    def note(self, step):
        self.rows.append([float(step)] * 20)

def main(watch):
    record, plain, seldom, functions = Record(), [], [], {}
    replay, queue = collections.deque(maxlen=100_000), collections.deque()
    still = [1, 2, 3]
    watch.count(0)
    for step in range(1, 101):
        record.note(step)
        plain.append({"step": step, "values": np.zeros(64)})
        replay.append((step, 0.5))
        queue.append((step, 0.5))
        if step % 10 == 0:
            seldom.append(tf.ones((64, 64)))
            functions[step] = tf.function(lambda x: x)
        watch.look(step)
    return watch.found()
"""
CODE = """
import gc, runpy, tempfile
from pathlib import Path
from tfdyno.runtime.diagnose.growth.suspects import MOST_LOOKS, SuspectWatch
script = Path(tempfile.mkdtemp()) / "kept.py"
script.write_text({script!r})
space = runpy.run_path(str(script))
watch = SuspectWatch()
inside = space["main"](watch)
del space
gc.collect()
watch.look(101)  # its names are gone
after = watch.found()
result = {{
    "inside": {{one.words: [one.kind, one.bytes_per_step] for one in inside}},
    "bounded": [one.words for one in inside if one.is_bounded],
    "after": [one.words for one in after],
    "looks": len(watch._looks), "most": MOST_LOOKS, "last": watch._looks[-1].step,
}}
"""


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return dict(in_tensorflow(CODE.format(script=SCRIPT)))


def _told(found: dict[str, Any], name: str) -> tuple[str, str, float]:
    return next(
        (words, kind, size)
        for words, (kind, size) in found["inside"].items()
        if f"({name})" in words
    )


def _line(text: str) -> str:
    lines = SCRIPT.splitlines()
    return f"kept.py:{next(n for n, line in enumerate(lines, 1) if text in line)}"


def test_what_a_callback_keeps_is_told_apart_from_what_others_keep(found: dict[str, Any]) -> None:
    words, kind, _ = _told(found, "record.rows")
    assert words == f"list of 100 entries held by {_line('self.rows.append')} (record.rows)"
    assert kind == "logs"
    assert _told(found, "plain")[1] == "objects"


def test_the_bytes_are_those_of_the_elements(found: dict[str, Any]) -> None:
    # By hand: 64 doubles are 512 bytes, beside the dict, the array's object and the number.
    assert 512 < _told(found, "plain")[2] < 1500
    # 64 x 64 floats and what a tensor takes beside them, at each tenth step.
    assert _told(found, "seldom")[2] == pytest.approx((16_384 + 900) / 10, rel=0.1)


def test_what_grows_at_each_tenth_step_grows(found: dict[str, Any]) -> None:
    assert _told(found, "seldom")[1] == "tensors"
    assert _told(found, "functions")[1] == "functions"


def test_a_deque_with_a_length_is_bounded(found: dict[str, Any]) -> None:
    (words,) = found["bounded"]
    assert words == f"deque of 100 entries held by {_line('replay.append')} (replay)"
    assert _told(found, "queue")


def test_what_stands_still_is_not_told(found: dict[str, Any]) -> None:
    assert not [words for words in found["inside"] if "(still)" in words]


def test_names_are_told_when_the_code_that_has_them_is_over(found: dict[str, Any]) -> None:
    assert set(found["after"]) == set(found["inside"])
    assert found["last"] == 100


def test_of_many_looks_some_are_kept(found: dict[str, Any]) -> None:
    assert found["most"] / 2 <= found["looks"] <= found["most"]
