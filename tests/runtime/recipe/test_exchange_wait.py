"""Time that a step waits in an exchange; between real workers it is told in
``tests/jobs/launch/test_local.py``.
"""

from __future__ import annotations

import json

import pytest
from tests.runtime.forks import forked

pytestmark = pytest.mark.tf
CODE = """
import json, time
import tensorflow as tf
from tfdyno.runtime.recipe.exchange_wait import ExchangeWait

strategy = tf.distribute.get_strategy()
wait = ExchangeWait(strategy)

def exchange(context, count, parts):
    def late(value):
        time.sleep(0.05)
        return value
    return count, [None if p is None else tf.py_function(late, [p], p.dtype) for p in parts]

@tf.function
def step(value):
    wait.begin()
    count, parts = wait.timed(exchange, None, tf.constant(1.0), [value * 2.0, None])
    wait.add()
    return parts[0]

began = time.perf_counter()
values = [step(tf.constant([[n, n]], tf.float32)).numpy().tolist() for n in (1.0, 2.0)]
whole = time.perf_counter() - began
first, second = wait.take_s(), wait.take_s()
strategy.reduce("sum", 1.0, axis=None)
third = wait.take_s()
wait.give_back()
strategy.reduce("sum", 1.0, axis=None)
print(json.dumps([values, whole, first, second, third, wait.take_s(), "reduce" in vars(strategy)]))
"""


def test_waiting_is_counted_and_changes_no_value() -> None:
    values, whole_s, first_s, second_s, third_s, last_s, is_held = json.loads(forked(CODE))
    assert values == [[[2.0, 2.0]], [[4.0, 4.0]]]
    assert 0.1 <= first_s <= whole_s  # twice 50 ms
    assert second_s == 0.0
    assert third_s > 0.0
    assert (last_s, is_held) == (0.0, False)
