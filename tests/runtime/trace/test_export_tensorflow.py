"""What leaves TensorFlow: every tensor with its part, loops with their length, fixed sizes."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from tests.runtime.trace.test_step_tensorflow import by_tensorflow, flops_per_sample, function

from tfdyno.jobs.choose.trace import trace

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf


def test_a_loop_over_a_sequence_counts_every_step_forward_and_backward(tmp_path: Path) -> None:
    made, program = by_tensorflow(function("recurrent"), tmp_path)
    # By hand: 20 steps of (16 + 32) x 4 x 32 products, three times (forward, both gradients),
    # and the last layer, 32 x 2, likewise.
    expected = 3 * 2 * (20 * (16 + 32) * 4 * 32 + 32 * 2)
    assert flops_per_sample(program) == pytest.approx(expected, rel=0.01)
    assert made.trainable_parameter_count == 100 * 16 + (16 + 32 + 1) * 4 * 32 + 33 * 2


def test_inputs_outputs_and_sample_weights_by_name_keep_their_parts(tmp_path: Path) -> None:
    made, program = by_tensorflow(function("structured"), tmp_path)
    assert made.marker == 37  # with the table of the embedding as a dense gradient
    roles = Counter(tensor.role for tensor in made.tensors)
    assert (roles["input"], roles["target"], roles["sample_weight"]) == (2, 2, 2)
    assert roles["weight"] == 1 + 3 * 2
    assert flops_per_sample(program) == 2 * 2 * 8 * 4 + 3 * 2 * (8 * 3 + 8 * 2)


@pytest.mark.slow
def test_variables_that_the_first_step_makes_are_weights_and_slots() -> None:
    made = trace(function("two_networks")).trace
    assert made.path == "tensorflow"
    assert made.trainable_parameter_count == (8 * 8 + 8) + (8 + 1)
    roles = Counter(tensor.role for tensor in made.tensors)
    assert (roles["weight"], roles["optimizer"]) == (4, 2 * (2 + 2 * 2))
