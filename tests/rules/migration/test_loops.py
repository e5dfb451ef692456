from __future__ import annotations

import pytest
from tests.rules.migration.code import found

TF = "import tensorflow as tf\n"
HEAD = (
    "for step, batch in enumerate(data):\n"
    "    with tf.GradientTape() as tape:\n"
    "        loss = model(batch)\n"
    "    grads = tape.gradient(loss, weights)\n"
)
RIGHT = [
    HEAD + "    optimizer.apply_gradients(zip(grads, weights))\n",
    HEAD + "    total = [a + g for a, g in zip(total, grads)]\n"
    "    if (step + 1) % accumulation == 0:\n"
    "        optimizer.apply_gradients(zip(total, weights))\n",
    HEAD + "    for a, g in zip(accum, grads):\n        a.assign_add(g)\n"
    "    if step % accum_steps == 0:\n        optimizer.apply_gradients(zip(accum, weights))\n",
    "for _ in range(accum_steps):\n    grads = accumulate(grads)\n"
    "optimizer.apply_gradients(zip(grads, weights))\n",
    "for epoch in range(epochs):\n" + "".join(f"    {line}\n" for line in HEAD.splitlines())
    + "        optimizer.apply_gradients(zip(grads, weights))\n",
]  # fmt: skip


def test_an_update_every_nth_step_of_the_last_gradients_alone_is_found() -> None:
    source = HEAD + (
        "    if (step + 1) % accumulation_steps == 0:\n"
        "        optimizer.apply_gradients(zip(grads, weights))\n"
    )
    assert "accumulation_nothing" in found(TF + source)


@pytest.mark.parametrize("source", RIGHT)
def test_plain_training_and_real_accumulation_are_left_alone(source: str) -> None:
    assert "accumulation_nothing" not in found(TF + source)


def test_eager_in_tests_is_meant() -> None:
    source = TF + "tf.config.run_functions_eagerly(True)"
    assert "eager_left_on" in found(source)
    assert "eager_left_on" not in found(source, name="tests/test_model.py")
    assert "eager_left_on" not in found(source, name="model_test.py")
