"""Layers that may not run twice are found before they do."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from tests.runtime.remats import run_models

pytestmark = pytest.mark.tf
CODE = """
class Own(Block):
    def call(self, x):
        return super().call(self.before(x))
class Counts(Own):
    def before(self, x):
        if not hasattr(self, "counter"):
            self.counter = tf.Variable(0.0, trainable=False)
        self.counter.assign_add(1.0)
        return x
class Noisy(Own):
    def before(self, x):
        return x + tf.random.normal(tf.shape(x))
class Keeps(Own):
    def before(self, x):
        self.kept = x * 2.0
        return x
class Reads(Own):
    def before(self, x):
        return x + self.friend.given
class Scales(Own):
    def before(self, x):
        self.first.kernel.assign(self.first.kernel * 0.5)
        return x
class Giver(L.Layer):
    def call(self, x):
        self.given = x * 2.0
        return x

def reason(kind):
    keras.backend.clear_session()
    giver = Giver()
    parts = [kind(name=f"{kind.__name__.lower()}_{n}") for n in range(2)]
    for part in parts:
        object.__setattr__(part, "friend", giver)
    class Around(keras.Model):
        def __init__(self):
            super().__init__()
            self.giver, self.parts = giver, parts
        def call(self, x):
            x = self.giver(x)
            for part in self.parts:
                x = part(x)
            return x
    model, x = Around(), np.ones((4, 16), "f")
    model(x)
    model.compile("sgd", "mse")
    plan = apply_remat(model, "blocks", batch_size=4, inputs=x)
    model.fit(x, x, verbose=0)
    return plan.notes

result["unfit"] = {kind.__name__: reason(kind) for kind in (Counts, Noisy, Keeps, Reads, Scales)}
"""


@functools.cache
def results() -> dict[str, Any]:
    return run_models(CODE)


REASONS = {
    "Counts": "its operation AssignAddVariableOp gives or does something else each time",
    "Noisy": "its operation RandomStandardNormal gives or does something else each time",
    "Keeps": "keeps_0 keeps a tensor of its call in kept",
    "Reads": "it uses",
    "Scales": "it assigns its own weight",
}


@pytest.mark.parametrize("kind", REASONS)
def test_a_layer_that_would_differ_is_computed_once_and_named(kind: str) -> None:
    (note,) = results()["unfit"][kind]
    assert note.startswith(f"{kind.lower()}_0 is not recomputed: {REASONS[kind]}")
