"""TensorFlow and JAX side by side as text and JSON."""

from __future__ import annotations

import json
from dataclasses import replace

from tests.words.choose.test_backends import ANSWER, CARD, GRAPH, XLA

from tfdyno.core.base.codec import to_json
from tfdyno.core.choose.backends import BackendStep
from tfdyno.core.choose.workload import Workload
from tfdyno.view.choose.backends_text import backends_document, backends_text

STOPPED = BackendStep(
    backend="jax",
    execution="xla",
    obstacle="script",
    names="tf.function",
    file="a.py",
    line=7,
    why="only TensorFlow has it",
)


def test_the_answer_comes_first_and_the_proof_last() -> None:
    text = backends_text(ANSWER, width=100)
    lines = text.splitlines()
    assert lines[0].startswith("convnet at batch 64 on T4: JAX would be 2.0 times as fast")
    assert lines[-2] == "Nothing of this is measured. On a machine with the card, this proves it:"
    assert lines[-1] == "  tfdyno bench train.py --against backend=jax"


def test_each_way_is_a_row_with_time_memory_and_first_step() -> None:
    text = backends_text(ANSWER, width=120)
    rows = {line.split("  ")[0]: line for line in text.splitlines()}
    assert "200 ms" in rows["TensorFlow, graph"]
    assert "not known" in rows["TensorFlow, graph"]
    assert "160–250" in rows["TensorFlow, graph"]
    assert "50 ms" in rows["Keras on JAX"]
    assert "20 s (16–25)" in rows["Keras on JAX"]
    assert "10.0" in rows["Keras on JAX"]
    assert "memory traffic" in rows["TensorFlow, XLA"]


def test_it_fits_80_columns() -> None:
    assert max(map(len, backends_text(ANSWER, width=80).splitlines())) <= 80


def test_a_way_that_cannot_run_has_its_reason_and_no_row_and_no_command() -> None:
    card = replace(CARD, steps=(GRAPH, XLA, STOPPED), verdict="unknown", speed_ratio=None)
    text = " ".join(backends_text(replace(ANSWER, cards=(card,), command="")).split())
    assert text.startswith("JAX cannot run convnet: a.py, line 7, tf.function")
    assert "Keras on JAX: a.py, line 7, tf.function: only TensorFlow has it" in text
    assert "proves it" not in text


def test_json_has_each_way_with_its_estimate_or_why_not() -> None:
    card = replace(CARD, steps=(GRAPH, XLA, STOPPED), verdict="unknown", speed_ratio=None)
    told = json.loads(to_json(backends_document(replace(ANSWER, cards=(CARD, card)))))
    first, second = told["backends"]
    assert [step["estimate"]["step_s"]["best"] for step in first["steps"]] == [0.2, 0.1, 0.05]
    assert (first["verdict"], first["speed_ratio"]["best"], first["baseline"]) == (
        "faster", 2.0, "xla",
    )  # fmt: skip
    assert second["steps"][2]["estimate"] is None
    assert second["steps"][2]["why_not"].startswith("a.py, line 7, tf.function")
    assert told["command"] == ANSWER.command
    assert told["trace"]["title"] == "convnet"


def test_a_preset_is_said_not_to_be_measured() -> None:
    workload = Workload(reference="keras_hub:gpt2_base_en", kind="preset")
    trace = replace(ANSWER.trace, workload=workload)
    text = " ".join(backends_text(replace(ANSWER, trace=trace, command="")).split())
    assert text.endswith("measured: a preset brings no weights. A script can be.")
