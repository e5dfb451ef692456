"""The last call of a step, and the same on a batch that is held."""

from __future__ import annotations

import pytest
from tests.runtime.benches import in_tensorflow

pytestmark = pytest.mark.tf


def test_a_call_that_reads_an_iterator_is_repeated_on_one_batch() -> None:
    told = in_tensorflow(
        "import tensorflow as tf\n"
        "from tfdyno.runtime.diagnose.loop_held import LastCall, in_turns\n"
        "source = iter(tf.data.Dataset.range(10))\n"
        "seen = []\n"
        "def run(function, iterator, rate):\n"
        "    seen.append((int(next(iterator)), rate, function))\n"
        "next(source)\n"
        "call = LastCall(function='step', run=run, args=(source,), named={'rate': 0.5})\n"
        "again = call.held()\n"
        "again(), again()\n"
        "call.held('compiled')()\n"
        "in_turns(lambda: seen.append('one'), [lambda: seen.append('two')])()\n"
        "plain = LastCall(function='step', run=run, args=(1, 2), named={})\n"
        "result = [seen, sorted(call.arguments), call.iterator is source, plain.iterator,\n"
        "          call.is_distributed]\n"
    )
    held = [[1, 0.5, "step"], [1, 0.5, "step"], [2, 0.5, "compiled"], "one", "two"]
    assert told == [held, ["0", "rate"], True, None, False]


def test_an_iterator_of_a_strategy_is_known_as_one() -> None:
    assert in_tensorflow(
        "import tensorflow as tf\n"
        "from tfdyno.runtime.diagnose.loop_held import LastCall\n"
        "strategy = tf.distribute.MirroredStrategy(['CPU:0'])\n"
        "data = strategy.experimental_distribute_dataset(tf.data.Dataset.range(4).batch(2))\n"
        "call = LastCall(function=None, run=print, args=(iter(data),), named={})\n"
        "result = call.is_distributed\n"
    )
