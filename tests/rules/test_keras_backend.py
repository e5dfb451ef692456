"""rules/keras_backend: the backend that a script sets, as Python would see it."""

from __future__ import annotations

import pytest

from tfdyno.rules.keras_backend import BackendSet, backend_set_in


@pytest.mark.parametrize(
    "line",
    [
        'os.environ["KERAS_BACKEND"] = "jax"',
        'os.environ.update({"KERAS_BACKEND": "jax"})',
        'os.putenv("KERAS_BACKEND", "jax")',
        'NAME = "jax"; os.environ["KERAS_BACKEND"] = NAME',
    ],
)
def test_a_variable_that_is_set_before_keras_is_found(line: str) -> None:
    found = backend_set_in(f"import os\n{line}\nimport keras\n")
    assert found == BackendSet(name="jax", line=2)


def test_a_default_counts_only_where_the_environment_names_none() -> None:
    found = backend_set_in('import os\nos.environ.setdefault("KERAS_BACKEND", "jax")\n')
    assert found == BackendSet(name="jax", line=2, is_default=True)


@pytest.mark.parametrize("load", ["import keras", "from tensorflow import keras"])
def test_a_variable_that_is_set_behind_keras_has_no_effect(load: str) -> None:
    assert backend_set_in(f'import os\n{load}\nos.environ["KERAS_BACKEND"] = "jax"\n') is None


def test_kerass_own_call_counts_behind_its_import_too() -> None:
    found = backend_set_in('import keras\nkeras.config.set_backend("jax")\n')
    assert found == BackendSet(name="jax", line=2)


@pytest.mark.parametrize(
    "source",
    [
        'import os, sys\nif "jax" in sys.argv:\n    os.environ["KERAS_BACKEND"] = "jax"\n',
        'import os, sys\n\nos.environ["KERAS_BACKEND"] = sys.argv[1]\n',
        'import os\ndef begin():\n    os.environ["KERAS_BACKEND"] = "jax"\n',
    ],
)
def test_what_is_not_so_in_every_run_is_not_sure(source: str) -> None:
    found = backend_set_in(source)
    assert found
    assert (found.line, found.is_sure) == (3, False)


@pytest.mark.parametrize("source", ["import keras\n", "KERAS_BACKEND is no Python", ""])
def test_a_script_that_sets_none_names_none(source: str) -> None:
    assert backend_set_in(source) is None
