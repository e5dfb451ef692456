"""What a run tells while it goes on, on a time that the test makes, and on real tensors."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from tests.runtime.benches import in_tensorflow
from tests.turns import loops_of

from tfdyno.runtime.train.watch import NanLoss, RunAbout, Watch, is_loss

REAL = """
import json, time
import keras, numpy as np, tensorflow as tf
from tfdyno.runtime.train.watch import NanLoss, RunAbout, Watch

lines = []
watch = Watch(lines.append)
x = np.random.default_rng(0).normal(size=(64, 4)).astype("float32")
y = x.sum(1, keepdims=True)
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile("sgd", "mse", metrics=["mae"])
make = model.make_train_function
done = [0]

def watched(force=False):
    make(force)
    run = model.train_function
    def step(iterator):
        logs = run(iterator)
        done[0] += 1
        watch.steps(done[0], logs)
        return logs
    model.train_function = step

model.make_train_function = watched

class Ends(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        done[0] = 0
    def on_epoch_end(self, epoch, logs=None):
        watch.epoch_end(epoch, logs)

watch.begin(model, RunAbout(epochs=2, steps=8, samples_per_step=8))
model.fit(x, y, batch_size=8, epochs=2, validation_data=(x, y), verbose=0, callbacks=[Ends()])
watch.end()
clean = list(lines)
lost = None
x[40] = np.inf  # the sixth batch of eight
watch = Watch(lines.append)
watch.begin(model, RunAbout(epochs=1, steps=8, samples_per_step=8))
model.train_function = None
try:
    model.fit(x, y, batch_size=8, shuffle=False, verbose=0, callbacks=[Ends()])
except NanLoss as error:
    lost = [error.name, str(error.value), error.epoch, error.step]
result = {"events": [json.loads(line) for line in clean], "lost": lost, "rate": watch.samples_per_s}
"""


class Time:
    """A clock that stands still but for what a test adds."""

    def __init__(self) -> None:
        """Start anywhere but at 0."""
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


class Unfinished:
    """A number that the device has yet to compute: reading it too early is an error here."""

    def __init__(self, value: float, time: Time) -> None:
        """``time`` tells how old it is."""
        self.value, self.time, self.made_s = value, time, time.now_s

    def __float__(self) -> float:
        assert self.time.now_s - self.made_s >= 1.0
        return self.value


def watched(about: RunAbout) -> tuple[Watch, Time, list[dict[str, Any]]]:
    """A watch on a clock of its own, begun, and the events that it tells."""
    time = Time()
    events: list[dict[str, Any]] = []
    watch = Watch(
        lambda line: events.append(json.loads(line)), memory=lambda: (1 << 20, "process"), now=time
    )
    watch.begin(None, about)
    return watch, time, events


def test_at_most_two_events_a_second_and_logs_are_read_when_they_are_old() -> None:
    watch, time, events = watched(RunAbout(epochs=1, steps=1000, samples_per_step=32))
    time.now_s += 9.0  # the first step compiles
    for step in range(1, 1001):
        watch.steps(step, {"loss": Unfinished(1.0 / step, time)})
        time.now_s += 0.01
    told = [event for event in events if event["event"] == "steps"]
    assert len(told) == pytest.approx(10.0 * 2, abs=2)
    assert "loss" not in told[0]
    last = told[-1]
    # 1.0 to 1.5 s before: 100 to 150 steps of 10 ms.
    assert last["step"] - 151 <= 1 / last["loss"] <= last["step"] - 99
    assert last["memory_bytes"] == 1 << 20


def test_the_rate_leaves_the_first_step_out_and_tells_how_long_still() -> None:
    about = RunAbout(epochs=2, steps=100, samples_per_step=32)
    watch, time, events = watched(about)
    time.now_s += 30.0
    for step in range(1, 51):
        watch.steps(step, {})
        time.now_s += 0.1
    told = [event for event in events if event["event"] == "steps"][-1]
    assert told["samples_per_s"] == pytest.approx(320.0)
    assert told["eta_s"] == pytest.approx((200 - told["step"]) * 0.1, abs=0.11)
    assert told["seconds"] == pytest.approx(30.0 + (told["step"] - 1) * 0.1)
    assert "mfu" not in told


def test_mfu_only_where_the_peak_is_known() -> None:
    about = RunAbout(epochs=1, samples_per_step=1, flops_per_step=1e12, peak_flops_per_s=100e12)
    watch, time, events = watched(about)
    for step in range(1, 31):
        watch.steps(step, {})
        time.now_s += 0.1  # 10 TFLOP/s of 100
    assert events[-1]["mfu"] == pytest.approx(0.1)
    assert "eta_s" not in events[-1]  # how long an epoch is nobody knows yet


def test_validation_is_no_training_but_counts_for_the_end() -> None:
    watch, time, events = watched(RunAbout(epochs=3, samples_per_step=10))
    for epoch in range(3):
        for step in range(1, 21):
            watch.steps(step, {"loss": 0.5})
            time.now_s += 0.1
        time.now_s += 4.4  # 5.0 s after the last step, 0.5 of them in callbacks
        watch.epoch_ends()
        time.now_s += 0.5
        watch.epoch_end(epoch, {"loss": 0.5, "val_loss": math.inf, "val_acc": 0.25})
    watch.end()
    ends = [event for event in events if event["event"] == "epoch"]
    assert [event["epoch"] for event in ends] == [1, 2, 3]
    assert ends[0]["metrics"] == {"loss": 0.5, "val_loss": None, "val_acc": 0.25}
    assert [event["samples_per_s"] for event in ends] == pytest.approx([100, 105.26316, 105.26316])
    # 40 steps of about 0.1 s and two validations of 5 s.
    assert ends[0]["eta_s"] == pytest.approx(14.0)
    assert ends[2]["eta_s"] == 0.0
    assert ends[0]["steps"] == 20
    assert watch.samples_per_s == pytest.approx(10 * (19 + 20 + 20) / (1.9 + 1.9 + 1.9))
    assert watch.seconds_s == pytest.approx(3 * 6.9)
    pace = watch.pace.pace()
    assert pace.epochs == 3
    assert pace.epoch_end_s == pytest.approx(3 * 5.0)
    assert pace.callback_s == pytest.approx(3 * 0.5)
    # The first step is left out, and the 0.1 s before the first of each later epoch are not.
    assert sum(pace.steps_per_sample) == 19 + 20 + 20
    spent = zip(pace.samples_s, pace.steps_per_sample, strict=True)
    assert math.fsum(s * n for s, n in spent) == pytest.approx(1.9 + 1.9 + 1.9)


def test_a_resumed_epoch_counts_from_where_it_goes_on() -> None:
    watch, time, events = watched(RunAbout(epochs=2, first_epoch=1, steps=100, samples_per_step=1))
    for step in range(81, 101):
        watch.steps(step, {})
        time.now_s += 0.5
    last = [event for event in events if event["event"] == "steps"][-1]
    assert (last["epoch"], last["step"], last["eta_s"]) == (2, 100, 0.0)
    assert last["samples_per_s"] == pytest.approx(2.0)


def test_a_lost_loss_ends_the_run_as_soon_as_it_is_read() -> None:
    watch, time, events = watched(RunAbout(epochs=1, steps=100))

    def train() -> None:
        for step in range(1, 101):
            loss = 1.0 if step < 30 else math.nan
            watch.steps(step, {"loss": loss, "accuracy": 0.5})
            time.now_s += 0.1

    with pytest.raises(NanLoss, match=r"loss is nan at step 3\d of epoch 1"):
        train()
    assert events[-1]["loss"] is None
    assert events[-1]["accuracy"] == 0.5


def test_a_lost_loss_at_the_end_of_an_epoch_is_seen_after_its_event() -> None:
    watch, _, events = watched(RunAbout(epochs=1))
    watch.steps(7, {"loss": 1.0})
    with pytest.raises(NanLoss, match="decoder_loss is inf at step 7 of epoch 1"):
        watch.epoch_end(0, {"decoder_loss": math.inf})
    assert events[-1]["event"] == "epoch"


def test_losses_by_name() -> None:
    names = ("loss", "a_loss", "val_loss", "val_a_loss", "lossless", "accuracy")
    assert [is_loss(name) for name in names] == [True, True, False, False, False, False]


def test_what_is_no_number_is_left_out() -> None:
    watch, time, events = watched(RunAbout(epochs=1))
    for step in range(1, 4):
        watch.steps(step, {"loss": 1.0, "parts": {"a": 1}, "words": "none", "step": 99})
        time.now_s += 1.0
    assert (events[-1]["loss"], events[-1]["step"]) == (1.0, 3)
    assert {"parts", "words"} & set(events[-1]) == set()


def test_a_call_with_nothing_due_costs_less_than_500_turns_of_an_empty_loop() -> None:
    watch = Watch(lambda _line: None, memory=lambda: (0, "process"))
    watch.begin(None, RunAbout(epochs=1, steps=1 << 30))
    logs = {"loss": 1.0}

    def calls() -> None:
        for step in range(1000):
            watch.steps(step, logs)

    assert loops_of(calls) * 1000 < 500


@pytest.mark.tf
def test_a_real_fit_is_watched() -> None:
    found = in_tensorflow(REAL)
    kinds = [event["event"] for event in found["events"]]
    assert (kinds[0], kinds[-1], kinds.count("epoch")) == ("begin", "epoch", 2)
    last = found["events"][-1]
    assert set(last["metrics"]) == {"loss", "mae", "val_loss", "val_mae"}
    assert (last["step"], last["steps"], last["eta_s"]) == (8, 8, 0.0)
    assert last["memory_bytes"] > 50 << 20
    assert last["samples_per_s"] > 0
    assert found["lost"] == ["loss", "nan", 1, 8]
    assert found["rate"] > 0
