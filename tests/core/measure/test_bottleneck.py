"""core/bottleneck: what ends a training is an error, what slows it is not."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest
from tests.view.diagnoses import HEALTHY, LEAK, SERIAL

from tfdyno.core.base.codec import from_json, to_json
from tfdyno.core.measure.bottleneck import ENDS_THE_RUN, Bottleneck, BottleneckClass


@pytest.mark.parametrize(
    ("one", "severity"), [(SERIAL, "warning"), (LEAK, "error"), (HEALTHY, "note")]
)
def test_the_class_says_how_bad_it_is(one: Bottleneck, severity: str) -> None:
    assert one.severity == severity


def test_what_ends_a_training_is_a_class() -> None:
    assert set(get_args(BottleneckClass)) >= ENDS_THE_RUN


def test_a_finding_comes_back_from_json_as_it_was() -> None:
    gained = replace(SERIAL, proven_gain=SERIAL.expected_gain)
    assert from_json(to_json(gained), Bottleneck) == gained
