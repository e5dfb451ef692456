"""runtime/jax_failure: an operation of TensorFlow's own in a model is named with its line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tfdyno.core.errors import UsageError
from tfdyno.runtime.jax_failure import told

if TYPE_CHECKING:
    from pathlib import Path


def failed(line: str, folder: Path) -> UsageError:
    """The error that a script of this line ends in, as ``measured_code`` makes it."""
    script = folder / "train.py"
    script.write_text(f"def run(tf):\n    {line}\n")
    found: dict[str, object] = {}
    exec(compile(script.read_text(), str(script), "exec"), found)
    error = UsageError("train.py failed")
    try:
        found["run"](None)  # type: ignore[operator]
    except AttributeError as cause:
        error.__context__ = cause
    return error


@pytest.mark.parametrize("name", ["tf.nn.relu", "tf.cast"])
def test_it_is_named_with_its_line(name: str, tmp_path: Path) -> None:
    found = str(told(failed(f"return {name}(3)", tmp_path), None))
    assert f"train.py, line 2: {name} cannot run on the JAX backend" in found
    assert "use keras.ops" in found


@pytest.mark.parametrize("line", ["return tf.data.Dataset(3)", "return None.x", "tf.keras.x()"])
def test_other_failures_stay_what_they_are(line: str, tmp_path: Path) -> None:
    error = failed(line, tmp_path)
    assert told(error, None) is error


def test_a_rule_of_the_layout_is_the_cause_where_it_failed(tmp_path: Path) -> None:
    rule = UsageError("the rule is wrong")
    assert told(failed("return tf.cast(3)", tmp_path), rule) is rule
