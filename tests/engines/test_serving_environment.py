from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

import pytest
from tests.served import serving_python

from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.engines import serving_environment
from tfdyno.engines.serving_environment import REQUIREMENTS, STAMP, fitting_python, make, python_of

if TYPE_CHECKING:
    from pathlib import Path


def made(folder: Path, *, digest: str) -> Path:
    """What an environment looks like from outside."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(sys.executable)
    (folder / STAMP).write_text(json.dumps({"requirements": digest, "gpu": False}))
    return folder


def silent(_stage: str) -> None:
    pass


def test_without_an_environment_it_is_said_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="tfdyno serve --setup"):
        python_of(tmp_path / "nothing")


def test_an_environment_of_other_requirements_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="another version of tfdyno"):
        python_of(made(tmp_path / "old", digest="other"))


def test_progress_says_which_of_all_packages_is_had() -> None:
    told: list[str] = []
    tell = serving_environment._placed(told.append, REQUIREMENTS[False])
    lines = (
        "Collecting absl-py==2.5.1 (from -r x)",
        "Downloading absl_py-2.5.1-py3.whl (136 kB)",
        "Collecting aiohttp==3.14.5 (from -r x)",
        "Installing collected packages: a",
    )
    for line in lines:
        tell(serving_environment._told(line))
    pins = [x for x in REQUIREMENTS[False].read_text().splitlines() if "==" in x]
    assert [pin.split("==")[0] for pin in pins[:3]] == ["absl-py", "aiohappyeyeballs", "aiohttp"]
    count = len(pins)
    assert told == [
        f"package 1 of {count}: looking for absl-py==2.5.1",
        f"package 1 of {count}: downloading absl_py (136 kB)",
        f"package 3 of {count}: looking for aiohttp==3.14.5",
        "installing the packages",
    ]


def test_an_environment_of_these_requirements_is_found_and_not_made_again(tmp_path: Path) -> None:
    digest = serving_environment._digest(gpu=False)
    folder = made(tmp_path / "serving", digest=digest)
    assert python_of(folder) == folder / "bin" / "python"
    found = make(folder, python=fitting_or_skip(), gpu=False, progress=silent)
    assert not found.is_new
    assert list(tmp_path.iterdir()) == [folder]


def fitting_or_skip() -> str:
    try:
        return fitting_python("")
    except UsageError as error:
        pytest.skip(str(error))


def test_a_folder_with_something_else_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "thesis.txt").write_text("all of it")
    with pytest.raises(UsageError, match="holds something else"):
        make(tmp_path / "own", python="", gpu=False, progress=silent)
    assert (tmp_path / "own" / "thesis.txt").read_text() == "all of it"


@pytest.mark.parametrize("named", ["/bin/sh", "no-such-python"])
def test_an_interpreter_that_does_not_fit_is_refused_by_name(named: str) -> None:
    with pytest.raises(UsageError, match=named):
        fitting_python(named)


@pytest.mark.slow
def test_a_package_that_cannot_be_had_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    stages: list[str] = []
    with pytest.raises(ToolError, match="satisfies the requirement absl-py"):
        make(tmp_path / "serving", python=fitting_or_skip(), gpu=False, progress=stages.append)
    assert stages[0] == "making an empty environment"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("gpu", [False, True])
def test_every_requirement_is_pinned_with_hashes_and_names_no_host(gpu: bool) -> None:
    text = REQUIREMENTS[gpu].read_text()
    pins = [line for line in text.splitlines() if line and not line.startswith((" ", "#"))]
    assert all("==" in line and line.endswith("\\") for line in pins)
    assert "://" not in text
    names = {line.split("==")[0] for line in pins}
    assert {"nvidia-pytriton", "keras", "msgspec", "tensorflow-serving-api"} <= names
    # Two TensorFlows over each other would break both.
    assert ("tensorflow" in names, "tensorflow-cpu" in names) == (gpu, not gpu)
    assert ("nvidia-cudnn-cu12" in names) == gpu


def test_the_environment_for_tests_is_one_that_serves() -> None:
    assert os.access(serving_python(), os.X_OK)
