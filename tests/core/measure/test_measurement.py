"""core/measurement: a result survives its way through JSON, and unknown keys do not."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.measurements import TASK, measurement, run

from tfdyno.core.base.codec import from_json, to_json
from tfdyno.core.base.errors import UsageError
from tfdyno.core.measure.measurement import Measurement


def test_a_measurement_comes_back_from_json_as_it_was() -> None:
    one = measurement([[0.1, 0.2, 0.1], [0.1, 0.1, 0.1]])
    assert from_json(to_json(one), Measurement) == one


def test_a_key_of_a_later_version_is_refused_by_name() -> None:
    text = json.loads(to_json(measurement([[0.1]])))
    text["runs"][0]["humidity"] = 3
    with pytest.raises(UsageError, match=r"\$\.runs\[0\]\.humidity"):
        from_json(json.dumps(text).encode(), Measurement)


def test_the_samples_that_count_are_steady_and_hold_steps_only() -> None:
    assert run([9.0, 5.0, 1.0, 7.0, 2.0], steady_from=2, excluded=(3,)).steady_s == (1.0, 2.0)
    assert run([9.0, 5.0, 1.0, 2.0], steady_from=4).steady_s == (1.0, 2.0)  # none found: half
    assert run([]).steady_s == ()


@pytest.mark.parametrize(("batch", "replicas", "samples"), [(64, 2, 128), (0, 1, 1), (0, 4, 4)])
def test_a_step_of_an_unknown_batch_counts_as_one_sample(
    batch: int, replicas: int, samples: int
) -> None:
    task = replace(TASK, batch_size=batch, replica_count=replicas)
    assert task.samples_per_step == samples
