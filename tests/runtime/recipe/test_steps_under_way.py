"""Processes of a real cluster that are killed while they train."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.runtime.clusters import trained

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Function, Value

pytestmark = pytest.mark.tf


class Given:
    """A step that was done on a worker which died; its result is copied from there in vain."""

    def __init__(self, failures: int, outcome: Value) -> None:
        self.failures, self.outcome = failures, outcome

    def fetch(self) -> Value:
        import tensorflow as tf

        self.failures -= 1
        if self.failures >= 0:
            raise tf.errors.UnavailableError(None, None, "/job:worker/replica:0/task:1 is gone")
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


class Coordinator:
    """Gives out steps that another worker does again."""

    def schedule(self, function: Function, args: tuple[Any, ...]) -> Given:
        return Given(function(), *args)

    def done(self) -> bool:
        return True


def test_a_result_that_a_dead_worker_took_along_is_waited_for() -> None:
    from tfdyno.runtime.recipe.steps_under_way import StepsUnderWay

    steps = StepsUnderWay(Coordinator(), {"worker": ["127.0.0.1:1"]}, 1)
    steps.add(lambda: 3, ({"loss": 0.5},))
    steps.join()
    assert steps.last_value == {"loss": 0.5}


def test_what_the_step_itself_raised_is_not_waited_for() -> None:
    import tensorflow as tf

    from tfdyno.runtime.recipe.steps_under_way import StepsUnderWay

    steps = StepsUnderWay(Coordinator(), {"worker": ["127.0.0.1:1"]}, 1)
    steps.add(lambda: 1, (tf.errors.InvalidArgumentError(None, None, "too large here"),))
    with pytest.raises(tf.errors.InvalidArgumentError, match="too large here"):
        steps.join()


def test_without_one_worker_the_other_does_all_steps() -> None:
    found = trained()["one_left"]
    assert 100 <= found["updates"] <= 101  # the step that was under way may be done twice
    assert [name.partition(" (")[0] for name in found["missing"]] == ["worker 1"]


def test_without_any_worker_the_run_ends_with_a_sentence() -> None:
    found = trained()
    assert found["none_left"].startswith("no step was done for 2 s: worker 0 (127.0.0.1:")
    assert "do not answer any more; start the cluster again with --resume" in found["none_left"]
