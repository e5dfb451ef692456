"""A step with TensorFlow's CTC is traced without it, and that is told."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.runtime.trace.test_step_tensorflow import flops_per_sample

from tfdyno.core.base.errors import UsageError
from tfdyno.jobs.choose.predict import StepSettings, predictor_for
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.jobs.choose.trace import trace

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Tensor, Value

SCRIPT = Path(__file__).parents[2] / "data" / "scripts" / "ctc.py"
pytestmark = pytest.mark.tf
STEPS, BATCH, CLASSES = 6, 3, 4


def test_losses_and_gradients_keep_their_sizes_and_the_operation_is_back_afterwards() -> None:
    import tensorflow as tf

    from tfdyno.runtime.trace.ctc_outside import ctc_outside

    labels = tf.sparse.from_dense([[1, 2], [2, 1], [1, 1]])

    def losses(logits: Tensor) -> Value:
        return tf.compat.v1.nn.ctc_loss(labels, logits, [STEPS] * BATCH)

    def step(logits: Tensor) -> tuple[Any, Any]:
        with tf.GradientTape() as tape:
            tape.watch(logits)
            loss = losses(logits)
        return loss, tape.gradient(loss, logits)

    found: dict[str, int] = {}
    spec = tf.TensorSpec((STEPS, BATCH, CLASSES))
    with ctc_outside(found):
        made = tf.function(step).get_concrete_function(spec)
    assert found == {"CTCLoss": STEPS * CLASSES * 4}
    assert "CTCLoss" not in {node.op for node in made.graph.as_graph_def().node}
    loss, gradient = made.structured_outputs
    assert (loss.shape, gradient.shape) == ((BATCH,), (STEPS, BATCH, CLASSES))
    # With all classes alike not every path spells the labels: each loss is above 0.
    assert (losses(tf.zeros(spec.shape)).numpy() > 0).all()


@pytest.mark.parametrize("name", ["by_layer", "by_step"])
def test_the_step_without_it_is_traced_and_runs_without_xla(name: str) -> None:
    traced = trace(parse_reference(f"{SCRIPT}:{name}"))
    about = traced.trace
    assert "CTCLoss" in about.outside_xla
    assert (about.execution, about.script_batch_size, bool(about.marker)) == ("graph", 32, True)
    assert "(without CTCLoss" in about.title
    # 30 x 12 logits of 4 bytes.
    assert any("1.41 KiB of logits of each sample" in told for told in about.warnings)
    # Forward and the gradient of the weights: 30 x 16 x 12 products each, none for the input.
    assert flops_per_sample(traced.program) == pytest.approx(2 * 2 * 30 * 16 * 12, rel=0.01)


def test_to_compile_it_with_xla_is_refused_with_what_can_be_done() -> None:
    with pytest.raises(UsageError, match=r"uses CTCLoss.*train with jit_compile=False"):
        predictor_for(
            parse_reference(f"{SCRIPT}:by_layer"),
            StepSettings(execution="xla"),
            progress=lambda _line: None,
        )
