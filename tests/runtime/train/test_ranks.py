"""Which worker the others wait for, and weights that are compared; several real workers drift in
``tests/jobs/launch/test_local.py``.
"""

from __future__ import annotations

import json

import pytest
from tests.runtime.forks import forked

pytestmark = pytest.mark.tf
SLOWEST = """
import json, sys
from tfdyno.runtime.train.ranks import slowest
found = [slowest(waits, step) for waits, step in json.loads(sys.argv[1])]
print(json.dumps([one and [one.rank, one.wait_s, one.sentence] for one in found]))
"""
ALONE = """
import json
import tensorflow as tf
from tfdyno.runtime.train.ranks import Ranks, _digest
ranks = Ranks(tf.distribute.get_strategy(), 0, 1)
a, b = tf.Variable([1.0, 2.0]), tf.Variable([[3.0]])
same = _digest([a, b]) == _digest([tf.Variable([1.0, 2.0]), tf.Variable([[3.0]])])
other = _digest([a, b]) == _digest([tf.Variable([1.0, 2.0]), tf.Variable([[3.0000002]])])
print(json.dumps([ranks.table([1.5, 2.5]).tolist(), ranks.check_same([a, b]), same, other]))
"""
DRIFTED = """
import json
import numpy as np
import tensorflow as tf
from tfdyno.core.base.errors import ToolError
from tfdyno.runtime.train.ranks import Ranks

class Told(Ranks):
    # The rows of the other workers are given.
    rows = []
    def table(self, own):
        return np.asarray(self.rows.pop(0))

def said(*rows):
    ranks = Told(tf.distribute.get_strategy(), 0, 1)
    ranks._count, ranks.rows = len(rows[0]), list(rows)
    try:
        return ranks.check_same([tf.Variable([1.0])])
    except ToolError as error:
        return str(error)

print(json.dumps([
    said([[7.0], [7.0], [7.0]]),
    said([[7.0], [8.0], [7.0]], [[0.1], [0.2], [0.1]]),
    said([[7.0], [8.0]], [[0.1], [0.1]]),
    said([[7.0], [8.0]], [[2e-7], [2e-7]]),
]))
"""


def slow(*cases: tuple[list[float], float]) -> list[list[float] | None]:
    found: list[list[float] | None] = json.loads(forked(SLOWEST, json.dumps(cases)))
    return found


def test_the_worker_that_waits_least_is_the_slow_one() -> None:
    # The others wait 60 - 10 = 50 ms of a step of 80 ms.
    (found,) = slow(([0.06, 0.01, 0.06], 0.08))
    assert found == [
        1,
        pytest.approx(0.05),
        "worker 1 holds the others up: they wait 50 ms of each step of 80 ms for it.",
    ]


def test_nobody_waits_longer_than_a_step() -> None:
    (found,) = slow(([0.09, 0.0], 0.08))
    assert found
    assert found[:2] == [1, 0.08]


def test_workers_of_one_pace_are_not_blamed() -> None:
    # 8 of 80 ms are less than a fifth; 4 ms are too few whatever the step; one waits for nobody.
    assert slow(([0.01, 0.018], 0.08), ([0.0, 0.004], 0.005), ([0.0], 0.1)) == [None] * 3


def test_alone_there_is_nobody_to_differ_from() -> None:
    table, said, same, other = json.loads(forked(ALONE))
    assert table == [[1.5, 2.5]]
    assert said == ""
    assert (same, other) == (True, False)


def test_workers_that_drifted_apart_are_named() -> None:
    equal, one, two, last_digits = json.loads(forked(DRIFTED))
    assert equal == ""
    assert "the weights of worker 1 have drifted apart" in one
    assert "differ by 0.20 of the largest" in one
    assert "the weights of worker 0 and worker 1 have drifted apart" in two
    assert "their devices compute differently" in last_digits


CODE = """
import json
import keras
from tfdyno.runtime.train.ranks import WorkerGroup

class Wait:
    taken = 0
    def take_s(self):
        self.taken += 1
        return 0.3

class Step:
    wait = Wait()

model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
company = WorkerGroup(model, Step)
asked = []
company._ranks.straggler = lambda *given: asked.append(given)
for epoch in (1, 2):
    for _ in range(4):
        company.steps(2)
    company.epoch_end(epoch)
print(json.dumps([asked, Step.wait.taken, company.notes]))
"""


def test_the_first_call_of_an_epoch_is_no_part_of_its_pace() -> None:
    asked, taken, notes = json.loads(forked(CODE))
    assert [steps for _, _, steps in asked] == [6, 6]  # of 8
    assert [wait_s for wait_s, _, _ in asked] == pytest.approx([0.05, 0.05])  # 0.3 s / 6
    assert taken == 4  # at the begin and the end of both epochs
    assert notes == []
