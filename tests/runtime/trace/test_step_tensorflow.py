"""The TensorFlow path: tf.* operations, own train steps, own loops, and agreement with JAX."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.workload import Trace, Workload
from tfdyno.core.messages.trace import BRIDGE, TRACE, BridgeStep, TraceStep
from tfdyno.jobs.child.worker import run_child
from tfdyno.jobs.choose.compile import compile_exact
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.jobs.choose.trace import Traced, trace

if TYPE_CHECKING:
    from tfdyno.core.choose.program import Program

SCRIPTS = Path(__file__).parents[2] / "data" / "scripts"
pytestmark = pytest.mark.tf


def flops_per_sample(program: Program) -> float:
    library = [k for k in program.kernels if k.kind in ("convolution", "gemm")]
    return sum(kernel.flops.per_sample for kernel in library)


def function(name: str) -> Workload:
    return parse_reference(f"{SCRIPTS / 'tf_ops.py'}:{name}")


@pytest.mark.parametrize(
    # By hand, per sample: forward 2 (16 x 32 + 32 x 4); backward the same for the weights, and
    # 2 (32 x 4) for the input of the second layer; the first layer's input needs no gradient.
    ("name", "expected"),
    [
        ("layers_of_tf", 2 * (2 * (16 * 32 + 32 * 4)) + 2 * 32 * 4),
        ("own_train_step", 2 * (2 * (16 * 32 + 32 * 4)) + 2 * 32 * 4),
    ],
)
def test_what_jax_cannot_run_is_traced_by_tensorflow_with_exact_flops(
    name: str, expected: int
) -> None:
    traced = trace(function(name))
    assert traced.trace.path == "tensorflow"
    assert "JAX" in traced.trace.path_reason
    assert traced.trace.marker == 37
    assert flops_per_sample(traced.program) == pytest.approx(expected, rel=0.01)


def by_tensorflow(workload: Workload, folder: Path) -> tuple[Trace, Program]:
    """Trace by the TensorFlow path although the JAX path would do."""
    hlo, stablehlo = folder / "step.hlo", folder / "step.mlirbc"
    request = TraceStep(
        workload=workload, path="tensorflow", path_reason="a test", hlo=hlo, stablehlo=stablehlo
    )
    backend = {"KERAS_BACKEND": "tensorflow"}
    found = run_child(TRACE, request, timeout_s=300, env=backend).trace
    assert isinstance(found, Trace)
    bridge = BridgeStep(trace=found, hlo=hlo, stablehlo=stablehlo)
    made = run_child(BRIDGE, bridge, timeout_s=300)
    return made.trace, made.programs.program


def test_both_paths_agree_on_flops_and_memory(tmp_path: Path) -> None:
    first = trace(function("small_cnn"))
    assert first.trace.path == "jax"
    other, program = by_tensorflow(function("small_cnn"), tmp_path)
    assert flops_per_sample(program) == pytest.approx(flops_per_sample(first.program), rel=0.01)
    assert other.execution == first.trace.execution == "xla"
    second = Traced(
        trace=other,
        program=program,
        per_op=first.per_op,  # the compiler does not look at these
        per_primitive=first.per_primitive,
        stablehlo_path=tmp_path / "step.mlirbc",
    )
    compiled = [compile_exact(made, family="8.x") for made in (first, second)]
    peaks = [made.buffers.peak_at(256) for made in compiled]
    assert peaks[1] == pytest.approx(peaks[0], rel=0.05)


def test_the_step_of_a_loop_is_found_in_an_unmodified_script() -> None:
    traced = trace(parse_reference(str(SCRIPTS / "loop.py")))
    assert (traced.trace.title, traced.trace.script_batch_size) == ("loop:train_step", 16)
    assert traced.trace.marker == 37
    assert traced.trace.execution == "graph"
    assert traced.trace.trainable_parameter_count == 3 * 3 * 3 * 8 + 8 + 7200 * 10 + 10
    forward = 2 * 30 * 30 * 8 * 27 + 2 * 7200 * 10
    backward = 2 * 30 * 30 * 8 * 27 + 2 * 2 * 7200 * 10  # no gradient for the images
    assert flops_per_sample(traced.program) == pytest.approx(forward + backward, rel=0.01)


def test_a_named_step_needs_only_the_shapes_of_its_arguments() -> None:
    spec = ("float32[batch,32,32,3]", "int32[batch]")
    workload = parse_reference(f"{SCRIPTS / 'loop.py'}:train_step", input_spec=spec)
    traced = trace(workload)
    assert traced.trace.path == "tensorflow"
    slots = [tensor for tensor in traced.trace.tensors if tensor.role == "optimizer"]
    assert len(slots) == 2 + 2 * 4  # step counter, learning rate, two moments of four weights


def test_an_eager_loop_is_refused_with_the_way_out() -> None:
    with pytest.raises(UsageError, match=r"outside a tf.function.*@tf.function"):
        trace(parse_reference(str(SCRIPTS / "loop_eager.py")))


EAGER = """
import pathlib
import keras, tensorflow as tf
here = pathlib.Path(__file__).parent
model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
optimizer = keras.optimizers.Adam()
x = tf.ones((4, 3))
with tf.GradientTape() as tape:
    tape.watch(x)
    total = tf.reduce_sum(model(x))
print(tape.gradient(total, x))  # a look at the model trains nothing
for step in range(100_000):
    (here / "began").write_text(f"{step}")
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x) ** 2)
    weights = model.trainable_variables
    UPDATE
    (here / "trained").touch()
"""


@pytest.mark.parametrize(
    "update",
    [
        "optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))",
        "optimizer.apply(tape.gradient(loss, weights), weights)",
    ],
)
def test_an_eager_loop_ends_before_its_first_update(tmp_path: Path, update: str) -> None:
    script = tmp_path / "train.py"
    script.write_text(EAGER.replace("UPDATE", update))
    with pytest.raises(UsageError, match=r"outside a tf.function"):
        trace(parse_reference(str(script)))
    assert (tmp_path / "began").read_text() == "0"
    assert not (tmp_path / "trained").exists()


def test_a_spec_that_cannot_be_read_is_named() -> None:
    workload = parse_reference(f"{SCRIPTS / 'loop.py'}:train_step", input_spec=("float32(3)",))
    with pytest.raises(UsageError, match=r"float32\(3\).*write dtype"):
        trace(workload)


def test_a_step_for_one_batch_alone_is_traced_at_it_after_the_other_one_failed() -> None:
    traced = trace(parse_reference(f"{SCRIPTS / 'diffusion.py'}:build"))
    assert (traced.trace.batch_size, traced.trace.marker) == (16, 0)
    # A convolution of 3 x 3 from 3 to 3 channels on 8 x 8: forward, and for its weights alone.
    assert flops_per_sample(traced.program) == 0  # all is the batch's: none is known of a sample
