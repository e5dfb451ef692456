"""Trainings that end before enough was seen: by failing, by their data, by a stop, by an exit."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.looks import START, STEP, WAITS, Looks, Training, facts_of

from tfdyno.core.base.errors import UsageError

pytestmark = pytest.mark.tf
LOOP = WAITS + STEP + "for number, (a, b) in enumerate(data.repeat()):\n    step(a, b)\n"
AT = "    if number == {number}:\n        {what}\n"
STOPS = "__import__('os').kill(__import__('os').getpid(), 15)"
KEPT = "kept = []\n" + LOOP.replace(
    "    step(a, b)\n", "    kept.append(step(a, b) * tf.ones(999))\n"
)
CALLBACK = (
    "class At(keras.callbacks.Callback):\n"
    "    seen = 0\n"
    "    def on_train_batch_end(self, batch, logs=None):\n"
    "        self.seen += 1\n"
    "        if self.seen == {number}:\n"
    "            {what}\n"
    "model().fit(x, y, batch_size=20, epochs=100, verbose=0, callbacks=[At()])\n"
)
EMPTY = "data = tf.data.Dataset.from_tensor_slices((x[:0], y[:0])).batch(8)\n"
ONE = "data = tf.data.Dataset.from_tensor_slices((x[:8], y[:8])).batch(8)\n"
MEMORY = {"memory_alone": True, "until_sure": True, "own_s": 1.0, "most_s": 5.0, "least_steps": 60}
RUNS = {
    "step_3": Training(code=LOOP + AT.format(number=1, what="raise KeyError('label')")),
    "late": Training(
        code=LOOP + AT.format(number=60, what="raise KeyError('label')"),
        limits={"least_steps": 500, "most_s": 60.0},
    ),
    "late_fit": Training(
        code=START + CALLBACK.format(number=90, what="raise KeyError('label')"),
        limits={"least_steps": 9000, "most_s": 60.0},
    ),
    "stop": Training(
        code=LOOP + AT.format(number=60, what=STOPS),
        limits={"least_steps": 500, "most_s": 60.0},
    ),
    "stop_fit": Training(
        code=START + CALLBACK.format(number=90, what=STOPS),
        limits={"least_steps": 9000, "most_s": 60.0},
    ),
    "stop_early": Training(code=LOOP + AT.format(number=1, what=STOPS)),
    "swallowed": Training(
        code=LOOP
        + "    try:\n        if number == 25:\n            "
        + STOPS
        + "\n    except BaseException:\n        pass\n"
    ),
    "empty_fit": Training(code=START + EMPTY + "model().fit(data)\n"),
    "empty_loop": Training(code=START + EMPTY + STEP + "for a, b in data:\n    step(a, b)\n"),
    "one_loop": Training(code=START + ONE + STEP + "for a, b in data:\n    step(a, b)\n"),
    "one_fit": Training(
        code=START + ONE + "model().fit(data, epochs=2)\n",
        limits={"least_steps": 30, "most_s": 60.0},
    ),
    "once": Training(
        code=START + "def rows():\n    yield x[:8], y[:8]\n" + "model().fit(rows())\n"
    ),
    "exit": Training(
        code=WAITS + STEP + "for a, b in data:\n    step(a, b)\nimport sys\nsys.exit(3)\n"
    ),
    "never": Training(code=START + "m = model()\nprint(m.count_params())\n"),
    "leak": Training(code=KEPT, limits={**MEMORY, "most_s": 60.0}),  # it ends when it is sure
    "leak_stop": Training(
        code=KEPT + AT.format(number=150, what=STOPS),
        limits={**MEMORY, "own_s": 60.0, "most_s": 60.0},
    ),
    "leak_fit": Training(
        code=START + "kept = []\n"
        "model().fit(x, y, batch_size=20, epochs=100, verbose=0, callbacks=[\n"
        "    keras.callbacks.LambdaCallback(\n"
        "        on_train_batch_end=lambda batch, logs: kept.append(x.copy()))])\n",
        limits=MEMORY,
    ),
    "leak_function": Training(
        code=START + "def pair():\n    return model(), (x, y)\n", function="pair", limits=MEMORY
    ),
    "leak_short": Training(
        code=WAITS + STEP + "for a, b in data:\n    step(a, b)\n", limits=MEMORY
    ),
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return Looks(tmp_path_factory.mktemp("ends"), RUNS)


def test_a_script_that_fails_at_step_3_says_where_and_what_the_steps_before_took(
    found: dict[str, Any],
) -> None:
    one, line = found["step_3"], len(RUNS["step_3"].code.splitlines())
    assert one["exit_code"] == 2
    assert (
        f" failed at step 3: line {line}: KeyError: 'label'; before that 2 steps ran: "
        in (one["refused"])
    )
    assert "the first took " in one["refused"]


@pytest.mark.parametrize("name", ["late", "late_fit"])
def test_a_script_that_fails_in_its_steady_steps_is_told_with_them(
    name: str, found: dict[str, Any]
) -> None:
    one = found[name]
    facts = facts_of(one)
    assert facts.steps_seen >= 40
    assert f"It failed after {facts.steps_seen} steps: what was seen until then is told." in (
        facts.notes
    )
    error = UsageError(one["failed"]["what"], why=one["failed"]["why"])
    assert one["failed"]["kind"] == "usage"
    assert f" failed at step {facts.steps_seen + 1}: line " in str(error)
    assert "KeyError: 'label'" in str(error)
    assert len(facts.step_s) > 5


@pytest.mark.parametrize("name", ["stop", "stop_fit", "swallowed"])
def test_a_stop_in_the_middle_hands_over_what_was_seen(name: str, found: dict[str, Any]) -> None:
    facts = facts_of(found[name])
    assert found[name]["stopped"] == "SIGTERM"
    assert f"It was stopped after {facts.steps_seen} steps: what was seen until then is told." in (
        facts.notes
    )
    assert len(facts.step_s) > 5
    assert facts.host.cpus >= 1


def test_a_stop_before_there_are_steady_steps_says_how_far_it_came(found: dict[str, Any]) -> None:
    one = found["stop_early"]
    assert "facts" not in one
    # Asked for after the second: the step that is under way comes to its end.
    assert one["seen"].startswith("3 steps ran: the first took ")


def test_data_without_a_batch_is_refused(found: dict[str, Any]) -> None:
    assert found["empty_fit"]["exit_code"] == 2
    assert "ended after 0 steps" in found["empty_fit"]["refused"]
    assert found["empty_loop"]["exit_code"] == 2
    assert (
        "without a step of a loop of its own; see that its data gives batches"
        in (found["empty_loop"]["refused"])
    )


@pytest.mark.parametrize("name", ["one_loop", "once"])
def test_a_single_step_tells_nothing_of_a_steady_one(name: str, found: dict[str, Any]) -> None:
    assert found[name]["exit_code"] == 2
    assert "the training ended after its first step: that one compiles" in found[name]["refused"]
    assert "1 step ran: it took " in found[name]["refused"]


def test_one_batch_in_each_epoch_is_enough(found: dict[str, Any]) -> None:
    facts = facts_of(found["one_fit"])
    assert facts.steps_seen >= 30
    assert (facts.steps_per_epoch, facts.batch_size) == (1, 8)


def test_an_exit_after_the_training_is_its_end(found: dict[str, Any]) -> None:
    facts = facts_of(found["exit"])
    assert facts.steps_seen == 10
    note = "The training ended by itself after 10 steps"  # a busy machine is warm by then
    assert any(one.startswith(note) for one in facts.notes)


def test_a_script_that_never_trains_is_refused(found: dict[str, Any]) -> None:
    assert found["never"]["exit_code"] == 2
    assert "has no call 1 of fit: it ended without fit" in found["never"]["refused"]


def test_memory_alone_skips_the_parts_of_the_step(found: dict[str, Any]) -> None:
    facts = facts_of(found["leak"])
    assert (facts.held_s, facts.operations, facts.input) == ((), None, None)
    assert {one.counted_by for one in facts.memory if one.where == "host"} == {
        "allocator", "kernel",
    }  # fmt: skip
    (growth,) = facts.growth
    # By hand: 999 floats, and what a tensor takes beside them.
    assert 4000 < growth.bytes_per_step < 8000
    assert growth.kind == "tensors"
    assert growth.suspects[0].endswith("held by train.py:26 (kept)")


def test_growth_is_told_too_where_a_stop_was_asked_for(found: dict[str, Any]) -> None:
    facts = facts_of(found["leak_stop"])
    assert found["leak_stop"]["stopped"] == "SIGTERM"
    assert facts.growth[0].kind == "tensors"
    assert facts.memory


def test_memory_of_a_fit_names_what_its_callback_keeps(found: dict[str, Any]) -> None:
    facts = facts_of(found["leak_fit"])
    (growth,) = facts.growth
    # By hand: 200 x 8 floats are 6,400 bytes.
    assert 6400 <= growth.bytes_per_step < 9000
    assert "(kept)" in growth.suspects[0]
    assert (facts.batch_size, facts.steps_per_epoch) == (20, 10)


def test_memory_of_a_function_is_looked_at_as_well(found: dict[str, Any]) -> None:
    facts = facts_of(found["leak_function"])
    assert facts.growth == ()
    assert facts.memory


def test_a_short_training_has_no_slope(found: dict[str, Any]) -> None:
    facts = facts_of(found["leak_short"])
    assert (facts.memory, facts.growth, facts.steps_seen) == ((), (), 10)
