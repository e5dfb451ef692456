"""The example of three slow trainings: the cause of each is found, and its fix proven."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.jobs.diagnose.diagnose import DiagnoseRequest, diagnose

EXAMPLE = Path(__file__).parents[2] / "examples" / "find_bottleneck"
CLASSES = {"photos.py": "input", "forecast.py": "host", "readings.py": "launch"}

pytestmark = pytest.mark.tf


@pytest.mark.parametrize(
    "script",
    [
        "forecast.py",
        pytest.param("photos.py", marks=pytest.mark.slow),
        pytest.param("readings.py", marks=pytest.mark.slow),
    ],
)
def test_the_planted_cause_is_found(script: str) -> None:
    workload = parse_reference(str(EXAMPLE / script), mode="train")
    found = diagnose(DiagnoseRequest(workload=workload))
    assert found.primary.bottleneck_class == CLASSES[script]


@pytest.mark.slow
def test_a_setting_is_proven_for_each_script(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLE))
    sys.modules.pop("prove", None)
    import prove  # type: ignore[import-not-found]

    for script in CLASSES:
        lines = prove.rows(script, prove.proven(script))
        assert "none was kept" not in "".join(lines)
