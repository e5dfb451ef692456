"""jobs/holders/need: the estimate of a run's memory where its trace is kept, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.probe.fake_nvml import FakeNvml, NoNvml, on

from tfdyno.catalog.gpus import find
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.jobs.choose import estimate
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.jobs.choose.trace import kept_trace, trace
from tfdyno.jobs.holders.guard import known_need

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

SCRIPT = """
import keras, numpy
model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(16), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(numpy.ones((64, 8)), numpy.ones((64, 1)), batch_size=16)
"""


def test_only_a_kept_trace_tells_the_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(SCRIPT)
    workload, nvml = parse_reference("train.py"), FakeNvml()
    assert kept_trace(workload) is None
    assert on(nvml, known_need, workload, Recipe(), None) is None
    trace(workload)
    need = on(nvml, known_need, workload, Recipe(batch_size=32), None)
    gpu = find("h100-sxm5-80gb")
    asked = estimate.EstimateRequest(workload=workload, gpus=(gpu,), batch_size=32, route="quick")
    answer = estimate.estimate(asked).estimates[0]
    assert need == answer.process_memory_bytes
    assert need
    assert need.low > answer.peak_memory_bytes.low  # the context of CUDA is in it
    for other in (Recipe(remat="1GiB"), Recipe(precision="float8"), Recipe(ema=0.9)):
        assert on(nvml, known_need, workload, other, None) is None  # not in the estimate
    assert on(nvml, known_need, workload, Recipe(remat="blocks"), None) is None  # no such trace
    trace(replace(workload, remat="blocks"))
    assert on(nvml, known_need, workload, Recipe(remat="blocks"), None)
    shared = Recipe(strategy="mirrored", devices=2)
    assert on(FakeNvml(count=2), known_need, workload, shared, None) is None
    assert on(NoNvml(), known_need, workload, Recipe(), None) is None
    (tmp_path / "train.py").write_text(SCRIPT.replace("16", "17"))
    assert kept_trace(workload) is None  # it is another script now
