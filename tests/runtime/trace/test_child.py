"""The child that traces imports no more than the workload needs."""

from __future__ import annotations

import importlib
import importlib.util
import sys

import pytest

from tfdyno.core.choose.workload import Workload
from tfdyno.runtime.trace import child


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """No part of scikit-learn is imported, whatever other tests did."""
    for name in [one for one in sys.modules if one.split(".")[0] == "sklearn"]:
        monkeypatch.delitem(sys.modules, name)


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("kind", ["application", "task"])
def test_scikit_learn_is_hidden_from_keras_where_no_code_of_the_users_runs(kind: str) -> None:
    workload = Workload(reference="keras:ResNet50", kind=kind)  # type: ignore[arg-type]
    with child._no_sklearn(workload), pytest.raises(ImportError):
        importlib.import_module("sklearn")
    assert "sklearn" not in sys.modules  # whoever asks later finds it


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("kind", ["script", "function", "keras_file", "step_function"])
def test_scikit_learn_is_there_for_the_users_code(kind: str) -> None:
    workload = Workload(reference="train.py", kind=kind)  # type: ignore[arg-type]
    with child._no_sklearn(workload):
        assert "sklearn" not in sys.modules
