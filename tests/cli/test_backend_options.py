"""cli/backend_options: which backend of Keras is meant, and what is to be told of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tfdyno.cli.backend_options import backend_of
from tfdyno.jobs.choose.reference import parse_reference

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("asked", "backend", "is_told"),
    [(None, "jax", True), ("jax", "jax", False), ("tensorflow", "tensorflow", False)],
)
def test_an_option_stands_before_what_the_script_names(
    asked: str | None, backend: str, is_told: bool, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text('import os\nos.environ["KERAS_BACKEND"] = "jax"\nimport keras\n')
    found, note = backend_of(parse_reference(str(script), mode="train"), asked)
    assert found == backend
    assert ("line 2 of train.py" in note) == is_told
