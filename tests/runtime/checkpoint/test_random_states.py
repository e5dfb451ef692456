"""Random numbers go on where the checkpoint was taken, in a new process."""

from __future__ import annotations

import pytest
from tests.runtime.benches import in_tensorflow

DRAWS = """
import json, random
import keras, numpy as np, tensorflow as tf
from tfdyno.runtime.checkpoint.plain_json import from_plain, to_plain
from tfdyno.runtime.checkpoint.random_states import random_state, restore_random_state

def draws():
    return [random.random(), random.gauss(0, 1), float(np.random.rand()),
            float(np.random.normal()), float(tf.random.uniform(())),
            float(keras.random.uniform(())), float(tf.random.get_global_generator().normal(()))]
"""
FIRST = (
    DRAWS
    + """
untouched = random_state()
keras.utils.set_random_seed(5)
tf.random.get_global_generator().reset_from_seed(3)
draws()
state = random_state()
first = draws()
restore_random_state(state)
plain = to_plain(state, {}, "random")
result = {"state": json.loads(json.dumps(plain)), "first": first, "again": draws(),
          "untouched": [untouched[name] for name in ("tensorflow_seeds", "tensorflow_generator",
                                                     "keras")]}
"""
)
SECOND = (
    DRAWS
    + """
keras.utils.set_random_seed(99)
random.random()
restore_random_state(from_plain(json.loads(STATE), {}))
result = draws()
"""
)


@pytest.mark.tf
def test_all_generators_go_on_in_a_new_process() -> None:
    import json

    found = in_tensorflow(FIRST)
    assert found["untouched"] == [None, None, None]  # asking makes no generator
    assert found["again"][:4] + found["again"][5:] == found["first"][:4] + found["first"][5:]
    again = in_tensorflow(f"STATE = {json.dumps(found['state'])!r}\n{SECOND}")
    assert again == found["first"]
