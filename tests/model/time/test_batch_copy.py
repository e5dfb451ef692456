from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.swept import card_file, loop

from tfdyno.catalog.generations import software
from tfdyno.catalog.gpus import find
from tfdyno.core.choose.card_file import Pace
from tfdyno.core.choose.time_model import Swept
from tfdyno.core.choose.workload import Workload
from tfdyno.jobs.choose.estimate import EstimateRequest, estimate
from tfdyno.model.time.batch_copy import KERAS_S, copy_s, fit_step_s

if TYPE_CHECKING:
    from tfdyno.core.choose.estimate import Estimate

TENSORFLOW, JAX = software("tensorflow", "2.21", "asked"), software("jax", "0.10", "asked")


@pytest.fixture(scope="module")
def step() -> Estimate:
    """ResNet-50: 32 images of 224 x 224 x 3 and their labels, in float32."""
    workload = Workload(reference="keras:ResNet50", kind="application", mode="train")
    request = EstimateRequest(
        workload=workload, gpus=(find("h200"),), batch_size=32, execution="xla"
    )
    return estimate(request).estimates[0]


def test_a_batch_takes_its_bytes_over_what_comes_from_memory_that_is_not_pinned(
    step: Estimate,
) -> None:
    images_bytes = 32 * 224 * 224 * 3 * 4
    assert step.memory_parts_bytes["inputs"] == pytest.approx(images_bytes, rel=0.01)
    assert step.copy_s is not None
    assert step.copy_s.best == pytest.approx(images_bytes / 6.5e9, rel=0.01)
    assert step.copy_s.low < step.copy_s.best < step.copy_s.high


def test_a_swept_card_tells_its_own_way(step: Estimate) -> None:
    card = card_file(loop(1, 1e-6), pace=Pace(to_card_bytes_per_s=2e10))
    swept = Swept(card=card, words="", log_width_ratio=0.1)
    found = copy_s(step, TENSORFLOW, swept)
    assert found is not None
    assert found.best == pytest.approx(step.memory_parts_bytes["inputs"] / 2e10)


def test_nothing_is_said_of_what_is_not_known(step: Estimate) -> None:
    assert copy_s(step, JAX, None) is None
    assert copy_s(step, None, None) is None
    assert copy_s(replace(step, mode="infer"), TENSORFLOW, None) is None


def test_a_step_of_fit_is_step_copy_and_what_keras_does_between_two(step: Estimate) -> None:
    assert step.copy_s is not None
    assert step.fit_step_s is not None
    for end in ("low", "best", "high"):
        parts = (step.step_s, step.copy_s, KERAS_S)
        assert getattr(step.fit_step_s, end) == pytest.approx(
            sum(getattr(one, end) for one in parts)
        )
    assert fit_step_s(replace(step, copy_s=None)) is None


def test_small_networks_on_a_real_card_lie_in_the_range() -> None:
    """Measured with ``bench`` on an H200, 2026-11-27: 2.51 ms at batch 128, 3.87 at 1,024."""
    script = Workload(reference="truth/gpu_day/small_net.py", kind="script", mode="train")
    for size, precision, seconds_s in ((128, "", 2.51e-3), (1024, "mixed_float16", 3.87e-3)):
        request = EstimateRequest(workload=script, gpus=(find("h200"),), batch_size=size,
                            precision=precision, execution="xla")  # fmt: skip
        found = estimate(request).estimates[0].fit_step_s
        assert found is not None
        assert found.low <= seconds_s <= found.high
