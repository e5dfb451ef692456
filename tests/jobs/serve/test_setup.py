from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.served import serving_python as serving_folder_python

from tfdyno.core.base.errors import UsageError
from tfdyno.engines.serving_environment import STAMP
from tfdyno.jobs.serve.setup import default_folder, needed_setup, serving_python, setup


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


def test_what_is_needed_is_told_with_the_libraries_that_it_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "serving"
    monkeypatch.setenv("TFDYNO_SERVING", str(folder))
    needed = needed_setup()
    assert needed
    assert (needed.folder, needed.why) == (folder, f"there is no serving environment in {folder}")
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(sys.executable)
    (folder / STAMP).write_text(json.dumps({"requirements": "older", "gpu": True}))
    older = needed_setup()
    assert older
    assert (older.gpu, older.why.endswith("was made by another version of tfdyno")) == (True, True)


def test_where_it_is_as_it_should_be_nothing_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFDYNO_SERVING", str(Path(serving_folder_python()).parents[1]))
    assert needed_setup() is None


def test_an_interpreter_that_does_not_fit_makes_nothing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no Python interpreter"):
        setup(folder=tmp_path / "serving", python="/bin/sh")
    assert list(tmp_path.iterdir()) == []
