"""jobs/train/backend: the backend that plain Keras would run on, and what a run's folder has."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.workload import Workload
from tfdyno.jobs.train.backend import found_backend

if TYPE_CHECKING:
    from pathlib import Path

SETS = 'import os\nos.environ["KERAS_BACKEND"] = "{}"\nimport keras\n'
DEFAULT = 'import os\nos.environ.setdefault("KERAS_BACKEND", "jax")\nimport keras\n'
MAY = 'import os, sys\nif "jax" in sys.argv:\n    os.environ["KERAS_BACKEND"] = "jax"\n'


def script(folder: Path, source: str, name: str = "") -> Workload:
    path = folder / "train.py"
    path.write_text(source)
    return Workload(reference=f"{path}{name}", kind="script", mode="train")


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """Variables of a user whose Keras has no settings."""
    return {"KERAS_HOME": str(tmp_path / "keras")}


def test_the_script_counts_before_the_environment(tmp_path: Path, home: dict[str, str]) -> None:
    given = {**home, "KERAS_BACKEND": "tensorflow"}
    found = found_backend(script(tmp_path, SETS.format("jax")), given)
    assert found.name == "jax"
    assert found.note == "It trains on JAX, which line 2 of train.py names."
    assert found_backend(script(tmp_path, SETS.format("jax"), ":build"), given).name == "jax"
    back = found_backend(
        script(tmp_path, SETS.format("tensorflow")), {**home, "KERAS_BACKEND": "jax"}
    )
    assert (back.name, back.note) == ("tensorflow", "")


def test_a_default_of_the_script_does_not(tmp_path: Path, home: dict[str, str]) -> None:
    named = script(tmp_path, DEFAULT)
    assert found_backend(named, {**home, "KERAS_BACKEND": "tensorflow"}).name == "tensorflow"
    assert found_backend(named, home).name == "jax"


def test_kerass_own_file_counts_last(tmp_path: Path, home: dict[str, str]) -> None:
    named = script(tmp_path, "import keras\n")
    assert found_backend(named, home).name == ""
    file = tmp_path / "keras/keras.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"backend": "jax"}))
    found = found_backend(named, home)
    assert (found.name, found.note) == ("jax", f"It trains on JAX, which {file} names.")
    given = {**home, "KERAS_BACKEND": "jax"}
    assert found_backend(named, given).note == "It trains on JAX, which KERAS_BACKEND names."
    file.write_text("[broken")
    assert found_backend(named, home).name == ""


def test_a_choice_at_run_time_is_told(tmp_path: Path, home: dict[str, str]) -> None:
    found = found_backend(script(tmp_path, MAY), home)
    assert found.name == ""
    assert found.note.startswith("Line 3 of train.py may choose another backend of Keras: name it")


def test_another_backend_is_refused_with_the_place(tmp_path: Path, home: dict[str, str]) -> None:
    said = "Keras would run on torch here, .*: line 2 of train.py names it; name one of them with"
    with pytest.raises(UsageError, match=said):
        found_backend(script(tmp_path, SETS.format("torch")), home)


def test_a_standard_task_is_tensorflows(home: dict[str, str]) -> None:
    task = Workload(reference="task:resnet18-cifar10", kind="task", mode="train")
    assert found_backend(task, {**home, "KERAS_BACKEND": "jax"}).name == ""
