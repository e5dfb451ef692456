"""cli/backend_options: what knows TensorFlow alone refuses JAX, and never runs it on TensorFlow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tfdyno.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("command", ["diagnose"])
@pytest.mark.parametrize("words", [("--backend", "jax"), ()])
def test_what_measures_tensorflow_alone_never_runs_a_script_of_jax_there(
    command: str,
    words: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By the option, or as the script itself says."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(
        'import os\nos.environ["KERAS_BACKEND"] = "jax"\nimport keras\n'
    )
    assert main([command, "train.py", *words]) == 2
    error = capsys.readouterr().err
    assert (
        f"tfdyno {command} cannot run on the JAX backend: it measures TensorFlow's step; " in error
    )
    assert error.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []
