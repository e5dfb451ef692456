"""TensorFlow and JAX side by side in words."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest
from tests.advice import around, estimate

from tfdyno.core.base.interval import Interval
from tfdyno.core.choose.backends import BackendsAnswer, BackendsOnCard, BackendStep, Obstacle
from tfdyno.core.choose.workload import Trace, Workload
from tfdyno.words.base.language import answering
from tfdyno.words.choose.backends import card_words, first_step_words, why_words

Fits = Literal["yes", "no"]
TRACE = Trace(
    workload=Workload(reference="train.py", kind="script"), title="convnet", batch_size=64,
    marker=0, script_batch_size=64, policy="float32", path="jax", path_reason="", loss="mse",
    optimizer="sgd", execution="xla", parameter_count=1, trainable_parameter_count=1, tensors=(),
    stablehlo_sha256="", seconds_s=0.0, script_seconds_s=0.0, versions={},
)  # fmt: skip
GRAPH = BackendStep(
    backend="tensorflow", execution="graph",
    estimate=estimate(execution="graph", step_s=around(0.2), software="TensorFlow 2.21"),
)  # fmt: skip
XLA = BackendStep(
    backend="tensorflow", execution="xla",
    estimate=estimate(step_s=around(0.1), software="TensorFlow 2.21"),
)  # fmt: skip
JAX = BackendStep(
    backend="jax", execution="xla",
    estimate=estimate(step_s=around(0.05), software="JAX", compile_s=around(20.0)),
)  # fmt: skip
CARD = BackendsOnCard(
    gpu="t4", gpu_name="NVIDIA T4", steps=(GRAPH, XLA, JAX), verdict="faster",
    speed_ratio=Interval(low=1.4, best=2.0, high=2.8), baseline="xla",
)  # fmt: skip
ANSWER = BackendsAnswer(
    title="convnet", batch_size=64, batch_source="as asked", trace=TRACE, cards=(CARD,),
    command="tfdyno bench train.py --against backend=jax",
)  # fmt: skip


def test_a_faster_jax_is_told_with_its_range() -> None:
    assert card_words(ANSWER, CARD) == (
        "convnet at batch 64 on T4: JAX would be 2.0 times as fast (1.4–2.8) as TensorFlow with "
        "XLA: about 50 ms a step against 100 ms."
    )


def test_a_slower_one_and_one_that_nobody_can_tell() -> None:
    slow = replace(CARD, verdict="slower", speed_ratio=Interval(low=0.4, best=0.5, high=0.7))
    assert "JAX would be slower, 0.50 times as fast (0.40–0.70) as" in card_words(ANSWER, slow)
    same = replace(CARD, verdict="no_difference", baseline="graph")
    assert card_words(ANSWER, same) == (
        "convnet at batch 64 on T4: no difference that can be told between JAX and TensorFlow in "
        "graph execution, about 50 ms and 200 ms a step; their ranges overlap."
    )


@pytest.mark.parametrize(
    ("on_jax", "on_tensorflow", "ending"),
    [
        ("no", "yes", " By its estimate it does not fit the card on JAX."),
        ("yes", "no", " By its estimate it does not fit the card on TensorFlow."),
        ("no", "no", " By its estimate it fits the card in neither."),
        ("yes", "yes", "against 100 ms."),
    ],
)
def test_what_fits_one_way_only_is_told(on_jax: Fits, on_tensorflow: Fits, ending: str) -> None:
    assert JAX.estimate
    assert XLA.estimate
    jax = replace(JAX, estimate=replace(JAX.estimate, fits=on_jax))
    xla = replace(XLA, estimate=replace(XLA.estimate, fits=on_tensorflow))
    card = replace(CARD, steps=(GRAPH, xla, jax))
    assert card_words(ANSWER, card).endswith(ending)


@pytest.mark.parametrize(
    ("obstacle", "names", "said"),
    [
        ("script", "tf.GradientTape", "a.py, line 3, tf.GradientTape: it is TensorFlow's"),
        ("wheel", "12.0", "XLA of the official wheel fails on compute capability 12.0"),
        ("outside_xla", "CTCLoss", "it uses CTCLoss, which exists outside of XLA only"),
        ("step", "a.py:step", "a step function is TensorFlow's own"),
        ("untraced", "not traceable: why", "not traceable: why"),
    ],
)  # fmt: skip
def test_each_obstacle_has_its_words(obstacle: Obstacle, names: str, said: str) -> None:
    step = BackendStep(
        backend="jax",
        execution="xla",
        obstacle=obstacle,
        names=names,
        file="a.py",
        line=3,
        why="it is TensorFlow's",
    )
    assert why_words(step) == said
    card = replace(CARD, steps=(GRAPH, XLA, step), verdict="unknown", speed_ratio=None)
    assert card_words(ANSWER, card) == f"JAX cannot run convnet: {said}."


def test_the_first_step_is_what_xla_compiles_and_unknown_without_it() -> None:
    assert first_step_words(JAX) == "20 s (16–25)"
    assert first_step_words(GRAPH) == ""


def test_it_is_told_in_chinese() -> None:
    with answering("zh"):
        assert card_words(ANSWER, CARD).startswith("convnet，批大小 64，T4：JAX 的速度会是")
