from __future__ import annotations

from pathlib import Path

import pytest

from tfdyno.core.errors import UsageError
from tfdyno.jobs.serve_setup import default_folder, serving_python, setup


def test_the_environment_lies_in_the_users_data_folder_unless_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFDYNO_DATA", str(tmp_path))
    monkeypatch.delenv("TFDYNO_SERVING", raising=False)
    assert default_folder() == tmp_path / "serving"
    monkeypatch.setenv("TFDYNO_SERVING", "~/served")
    assert default_folder() == Path.home() / "served"


def test_without_one_a_server_is_refused_and_nothing_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFDYNO_SERVING", str(tmp_path / "none"))
    with pytest.raises(UsageError, match="tfdyno serve --setup"):
        serving_python()
    assert list(tmp_path.iterdir()) == []


def test_an_interpreter_that_does_not_fit_makes_nothing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no Python interpreter"):
        setup(folder=tmp_path / "serving", python="/bin/sh")
    assert list(tmp_path.iterdir()) == []
