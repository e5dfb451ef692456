"""The stages of a pipeline, from the names of its iterators."""

from __future__ import annotations

import numpy as np
import pytest
from tests.runtime.planted_profiles import Made, space

from tfdyno.profile.child import input_facts
from tfdyno.profile.planes import read_planes

MAP = "Iterator::Root::Prefetch::ParallelMapV2"
EDGES = np.array([0.0, 50e-6, 100e-6])


def test_stages_have_their_own_time_per_step_sources_first() -> None:
    threads = {
        "tf_data_iterator_get_next/1": [
            Made(name="Iterator::Root", at_us=0, us=40),
            Made(name="Iterator::Root::Prefetch", at_us=1, us=38),
        ],
        "tf_data_iterator_resource/1": [
            Made(name=f"{MAP}::BatchV2", at_us=2, us=30),
            Made(name=f"{MAP}::BatchV2[1]::Generator", at_us=5, us=20),
            Made(name=MAP, at_us=35, us=8),
            Made(name="PyFunc:PyFunc", at_us=5, us=2),
            Made(name="Iterator::Root::Prefetch", at_us=500, us=99),
        ],
    }  # fmt: skip
    facts = input_facts(read_planes(space({"/host:CPU": threads})), EDGES)
    assert facts is not None
    assert [(stage.kind, stage.runs_python) for stage in facts.stages] == [
        ("from_generator", True),
        ("batch", False),
        ("map", True),
        ("prefetch", False),
    ]
    # per step of two: 20, 30 - 20, 8, 38; what is after the last step does not count
    assert [stage.own_s for stage in facts.stages] == pytest.approx([10e-6, 5e-6, 4e-6, 19e-6])
    assert (facts.prefetches, facts.is_cached) == (True, False)
    assert [stage.parallel_calls for stage in facts.stages] == [1, 1, -1, 1]


@pytest.mark.parametrize(
    ("last", "ahead"), [("Prefetch", True), ("ParallelMapV2", True), ("BatchV2", False)]
)
def test_batches_are_made_ahead_where_the_last_stage_does_so(last: str, ahead: bool) -> None:
    made = [
        Made(name=f"Iterator::Root::{last}", at_us=0, us=9),
        Made(name=f"Iterator::Root::{last}::Prefetch::Map", at_us=1, us=5),
    ]
    facts = input_facts(read_planes(space({"/host:CPU": {"tf_data_iterator": made}})), EDGES)
    assert facts is not None
    assert facts.prefetches is ahead


def test_no_iterator_is_no_pipeline() -> None:
    made = [Made(name="train", at_us=0, us=5)]
    assert input_facts(read_planes(space({"/host:CPU": {"python": made}})), EDGES) is None
