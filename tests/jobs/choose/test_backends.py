"""jobs/choose/backends: three ways of one workload on real cards, and the command for proof."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.advice import estimate as of_few

from tfdyno.catalog.gpus import find
from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.backends import BackendsOnCard, BackendStep
from tfdyno.core.choose.card_file import CPU
from tfdyno.core.choose.hardware import CPU_VENDOR
from tfdyno.core.choose.workload import Workload
from tfdyno.jobs.choose.backends import BackendsRequest, bench_command, check, compare_backends
from tfdyno.jobs.choose.estimate import EstimateRequest, estimate
from tfdyno.jobs.choose.reference import parse_reference

if TYPE_CHECKING:
    from typing import Literal

    from tfdyno.core.choose.backends import BackendsAnswer
    from tfdyno.core.choose.estimate import Estimate

MODEL = Path(__file__).parents[1].parent / "data" / "models" / "small.py"
T4, RTX_5090 = find("t4"), find("rtx-5090")
TAPE = """
import keras, numpy as np, tensorflow as tf

class Own(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(4)

    def call(self, x):
        return self.dense(x)

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(x, y, self(x, training=True))
        gradients = tape.gradient(loss, self.trainable_weights)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_weights))
        return {"loss": loss}

model = Own()
model.compile("sgd", "mse")
model.fit(np.ones((64, 16), "float32"), np.ones((64, 4), "float32"), batch_size=16)
"""


def request(**changes: Any) -> BackendsRequest:
    workload = parse_reference(f"{MODEL}:convnet")
    return replace(BackendsRequest(workload=workload, gpus=(T4,), batch_size=64), **changes)


@pytest.fixture(scope="module")
def found() -> BackendsAnswer:
    return compare_backends(request(gpus=(T4, RTX_5090)))


def alone(backend: str, execution: str) -> Estimate:
    """What ``estimate`` says of one of the ways."""
    software = "jax" if backend == "jax" else ""
    workload = parse_reference(f"{MODEL}:convnet", software=software)
    asked = EstimateRequest(
        workload=workload, gpus=(T4,), batch_size=64,
        execution="" if backend == "jax" else execution,
    )  # fmt: skip
    return estimate(asked).estimates[0]


def test_each_way_is_what_estimate_says_of_it_alone(found: BackendsAnswer) -> None:
    for step in found.cards[0].steps:
        other = alone(step.backend, step.execution)
        assert step.estimate
        assert step.estimate.execution == step.execution
        for name in ("step_s", "device_memory_bytes", "compile_s", "bound_by", "software"):
            assert getattr(step.estimate, name) == getattr(other, name)


def test_jax_is_set_against_the_faster_way_of_tensorflow(found: BackendsAnswer) -> None:
    card = found.cards[0]
    graph, xla, jax = (step.estimate.step_s.best for step in card.steps if step.estimate)
    assert xla < graph
    assert card.baseline == "xla"
    assert card.speed_ratio
    assert card.speed_ratio.best == pytest.approx(xla / jax)


def test_a_card_that_the_wheel_has_no_xla_for_is_left_with_the_graph(found: BackendsAnswer) -> None:
    card = found.cards[1]
    stopped = card.step("tensorflow", "xla")
    assert (stopped.estimate, stopped.obstacle, stopped.names) == (None, "wheel", "12.0")
    assert card.baseline == "graph"
    assert card.step("jax", "xla").estimate


def test_a_script_for_tensorflow_alone_has_its_line_and_no_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(TAPE)
    answer = compare_backends(request(workload=parse_reference("own.py"), batch_size=0))
    (card,) = answer.cards
    jax = card.step("jax", "xla")
    assert (jax.obstacle, jax.names, jax.file, jax.line) == (
        "script",
        "train_step",
        "own.py",
        12,
    )
    assert (jax.estimate, card.verdict, card.speed_ratio) == (None, "unknown", None)
    assert card.step("tensorflow", "xla").estimate
    assert (answer.command, answer.batch_size) == ("", 16)


def on_card(baseline: Literal["graph", "xla"] | None) -> BackendsOnCard:
    step = BackendStep(backend="tensorflow", execution="graph", estimate=of_few())
    return BackendsOnCard(
        gpu="t4", gpu_name="T4", steps=(step,), verdict="unknown", baseline=baseline
    )


def test_the_command_repeats_what_was_asked_and_names_what_is_not_usual() -> None:
    workload = Workload(
        reference="train.py", kind="script", script_arguments=("--width", "2"), fit_number=2
    )
    asked = request(workload=workload, precision="mixed_bfloat16")
    assert bench_command(asked, on_card("graph"), "xla") == (
        "tfdyno bench train.py --batch-size 64 --precision mixed_bfloat16 --execution graph "
        "--fit 2 --against backend=jax -- --width 2"
    )
    assert "--execution" not in bench_command(asked, on_card("xla"), "xla")
    assert bench_command(asked, on_card(None), "xla") == ""


def test_a_forward_pass_is_measured_as_one() -> None:
    shapes = ((8, 8, 3),)
    workload = parse_reference("keras:ResNet50", mode="infer", input_shapes=shapes)
    told = bench_command(request(workload=workload, batch_size=0), on_card("xla"), "xla")
    assert told == (
        "tfdyno bench keras:ResNet50 --mode infer --input-shape 8,8,3 --against backend=jax"
    )


def test_processors_and_foreign_cards_are_refused() -> None:
    processors = replace(T4, slug=CPU, vendor=CPU_VENDOR)
    with pytest.raises(UsageError, match="--backends is not for cpu"):
        check(request(gpus=(processors,)))
    with pytest.raises(UsageError, match="cannot be estimated"):
        check(request(gpus=(replace(T4, vendor="AMD"),)))
