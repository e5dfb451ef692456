"""What goes wrong while steps are measured, as sentences."""

from __future__ import annotations

from pathlib import Path

import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno.runtime.base.step_failure import is_out_of_memory, measured_code, reason

OF_TENSORFLOW = """{{function_node __wrapped__IteratorGetNext}} ValueError: sample 3 is broken
Traceback (most recent call last):

  File "/usr/lib/python3/dist-packages/tensorflow/script_ops.py", line 269, in __call__
    ret = func(*args)

  File "/home/me/train.py", line 5, in batches
    raise ValueError("sample 3 is broken")

ValueError: sample 3 is broken


\t [[{{node PyFunc}}]] [Op:IteratorGetNext]"""


def failure(error: Exception, steps: int) -> UsageError:
    def run() -> None:
        with measured_code("train.py", lambda: steps, lambda: 32):
            raise error

    with pytest.raises(UsageError) as caught:
        run()
    return caught.value


def test_the_step_and_the_line_of_a_failure_are_told() -> None:
    text = str(failure(ValueError("shapes differ"), 2))
    assert text.startswith("train.py failed at step 3: ")
    assert "test_step_failure.py, line " in text
    assert text.endswith("ValueError: shapes differ.")


def test_a_file_that_fails_by_itself_is_named_once() -> None:
    def run() -> None:
        with measured_code(f"{__file__}:run", lambda: 0, lambda: 32):
            raise ValueError("no")

    with pytest.raises(UsageError, match=r":run failed: line \d+: ValueError: no\.$"):
        run()


def test_before_the_first_step_no_step_is_named() -> None:
    assert failure(ValueError("no"), 0).what == "train.py failed"


def test_the_line_inside_of_a_message_of_tensorflow_is_found() -> None:
    expected = "/home/me/train.py, line 5: ValueError: sample 3 is broken"
    assert reason(RuntimeError(OF_TENSORFLOW)) == expected


def test_a_failed_function_is_told_with_the_line_that_called_it_and_its_kind() -> None:
    text = (Path(__file__).parents[2] / "data/lost_worker/killed_within_a_step.txt").read_text()
    said = "RuntimeError: Collective ops is aborted by: Socket closed"
    assert (
        reason(RuntimeError(text)) == f"/home/me/tests/runtime/training_models.py, line 71: {said}"
    )


def test_a_sentence_of_our_own_passes_as_it_is() -> None:
    own = UsageError("the data ended after 3 steps", remedy="repeat it")
    assert failure(own, 3) is own


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError(), True),
        (RuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 9 bytes"), True),
        (RuntimeError("OOM when allocating tensor with shape[9]"), True),
        (RuntimeError("shapes differ"), False),
    ],
)
def test_what_means_out_of_memory(error: Exception, expected: bool) -> None:
    assert is_out_of_memory(error) is expected
