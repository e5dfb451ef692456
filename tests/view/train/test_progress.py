"""The events of a training that runs."""

from __future__ import annotations

import json

import pytest

from tfdyno.view.train.progress import (
    TrainEvent,
    eta_words,
    line_words,
    metric_words,
    read_event,
    step_words,
)

STEPS = {
    "event": "steps", "epoch": 2, "epochs": 10, "step": 120, "steps": 500, "seconds": 30.0,
    "accuracy": 0.91, "loss": 0.3125, "samples_per_s": 812.4, "mfu": 0.31, "eta_s": 720.0,
    "memory_bytes": 1 << 30,
}  # fmt: skip


def event(**fields: object) -> TrainEvent:
    found = read_event(json.dumps({**STEPS, **fields}))
    assert found is not None
    return found


def test_an_event_is_read_with_its_metrics() -> None:
    found = event()
    assert (found.kind, found.epoch, found.step, found.steps) == ("steps", 2, 120, 500)
    assert found.metrics == {"accuracy": 0.91, "loss": 0.3125}
    assert line_words(found) == (
        "epoch 2/10  120/500  loss 0.3125  accuracy 0.9100  812 samples/s  MFU 31%  1 GiB  "
        "ETA 12 min"
    )


def test_the_end_of_an_epoch_has_its_metrics_in_a_table_of_their_own() -> None:
    ended = event(event="epoch", metrics={"val_loss": 0.5, "loss": 0.25}, eta_s=0.0)
    assert metric_words(ended) == "loss 0.2500  val_loss 0.5000"
    assert line_words(ended).startswith("epoch 2/10  loss 0.2500")
    assert eta_words(ended) == ""


def test_what_is_not_known_is_left_out() -> None:
    bare = event(steps=0, mfu=None, eta_s=None, samples_per_s=None, memory_bytes=0, loss=None)
    assert step_words(bare) == "120"
    assert line_words(bare) == "epoch 2/10  120  loss NaN  accuracy 0.9100"


@pytest.mark.parametrize("line", ["importing TensorFlow", "{not json", '{"other": 1}', ""])
def test_a_stage_is_no_event(line: str) -> None:
    assert read_event(line) is None
