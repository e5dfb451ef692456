"""A training as terminal text."""

from __future__ import annotations

import math

from tests.view.trainings import NAN, told

from tfdyno.core.train.device_mesh import DeviceMesh
from tfdyno.core.train.layout import Layout, Placed
from tfdyno.view.train.text import facts, headline, train_text


def test_the_first_line_is_the_result() -> None:
    assert headline(told()) == (
        "train.py: loss 0.5000, accuracy 0.7500, val_loss 0.6250 after 2 epochs (80 steps) in "
        "12.5 s, 205 samples/s."
    )


def test_a_stop_is_told_with_its_reason_and_how_to_go_on() -> None:
    command = "tfdyno train code/train.py --output run --resume"
    text = train_text(told(stopped="SIGTERM", resume_command=command))
    assert text.startswith("train.py stopped when asked to (SIGTERM or Ctrl-C): loss 0.5000,")
    assert text.endswith(f"Go on with:\n  {command}")
    early = told(stopped="spot notice", history={}, epochs=0, steps=4)
    assert headline(early) == (
        "train.py stopped by spot notice after 4 steps in 12.5 s, 205 samples/s."
    )


def test_a_run_that_was_finished_before_tells_no_speed() -> None:
    line = headline(told(samples_per_s=0.0, seconds_s=0.0001))
    assert line.endswith("after 2 epochs (80 steps).")


def test_a_task_keeps_its_name() -> None:
    assert headline(told(reference="task:lstm")).startswith("task:lstm: loss")


def test_what_the_numbers_rest_on_is_named() -> None:
    known = dict(facts(told()))
    assert known["updates"] == (
        "20 of the weights in 80 steps, 1 skipped at an overflow in float16"
    )
    assert known["batch"] == "32 (16 on each of 2 replicas), 4,810 parameters"
    assert known["checkpoints"] == "1 checkpoint, the newest step-000000080.json"
    assert known["settings"] == "execution=xla, seed=7"
    assert known["took"] == "execution: xla"
    assert known["memory"].startswith("700 MiB at most (the process")
    assert known["where"].startswith("2 CPUs (Some CPU); TensorFlow 2.21.0")
    plain = dict(facts(told(updates=80, skipped_updates=0, checkpoints=(), applied=())))
    assert (plain["updates"], plain["checkpoints"], plain["took"]) == ("", "", "")


def test_a_finding_has_its_evidence_and_its_fix() -> None:
    text = train_text(told(findings=(NAN,), history={"loss": [math.nan]}, stopped="NaN loss"))
    assert text.startswith("train.py stopped at a NaN loss: loss NaN after 2 epochs")
    weights = train_text(told(findings=(NAN,), stopped="NaN weights"))
    assert weights.startswith("train.py stopped at weights that are NaN: loss ")
    assert "✗ The loss is not a number.\n  because  step 41: dense_1 has inf\n" in text
    assert "  fix      Lower the learning rate.\n           tfdyno train x" in text
    assert "\x1b[31m✗" in train_text(told(findings=(NAN,)), colour=True)


def test_a_layout_is_told_with_what_no_rule_matches() -> None:
    layout = Layout(
        mesh=DeviceMesh(names=("model",), sizes=(2,)),
        weights=(Placed(path="a/kernel", shape=(8, 4), width_bytes=4),),
    )
    known = dict(facts(told(layout=layout)))
    assert known["layout"].startswith("Mesh model=2, by your rules")
    assert "1 kernel matches no rule" in known["layout"]
    assert not dict(facts(told()))["layout"]
