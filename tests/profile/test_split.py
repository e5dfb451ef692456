"""Every moment of a step is counted once, and the device hides what the host does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.runtime.planted_profiles import COMPUTE, COPIES, GEMM, Made, Training, planes_of, space

from tfdyno.core.measure.bottleneck import SPLIT_PARTS
from tfdyno.profile.device import Events, gpu_events
from tfdyno.profile.planes import read_planes
from tfdyno.profile.spans import Spans, merged
from tfdyno.profile.split import device_edges, split
from tfdyno.profile.steps import Steps

US = 1e-6


def device(*lines: list[Made]) -> Events:
    planes = {"/device:GPU:0": dict(zip((COMPUTE, COPIES), lines, strict=False))}
    return gpu_events(read_planes(space(planes)))[0]


def stretch(begin_us: float, end_us: float) -> Spans:
    return merged(np.array([begin_us * US]), np.array([end_us * US]))


def steps_at(*edges_us: float) -> Steps:
    return Steps(edges_s=np.array(edges_us) * US, how="markers", retraced={}, notes=())


def kernel(at_us: float, us: float) -> Made:
    return Made(name=GEMM, at_us=at_us, us=us)


def test_what_the_device_does_hides_what_the_host_does() -> None:
    # one step of 5 ms: computing 0-2, copying 1-3, the host waits 2.5-4, runs Python 3.5-4.5
    events = device([kernel(0, 2000)], [Made(name="MemcpyH2D", at_us=1000, us=2000)])
    host = {"input": stretch(2500, 4000), "python": stretch(3500, 4500)}
    parts = split(np.array([0, 5e-3]), events, host).parts_s
    assert {name: s for name, s in parts.items() if s} == {
        "compute": pytest.approx(2e-3),
        "copy": pytest.approx(1e-3),
        "input": pytest.approx(1e-3),  # 3 to 4
        "host": pytest.approx(1e-3),  # 4 to 4.5 is Python, 4.5 to 5 a long pause
    }


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 4000), st.integers(1, 900)), min_size=1, max_size=8),
    st.integers(0, 4000),
    st.integers(0, 4000),
)
def test_parts_add_up_and_none_is_negative(
    kernels: list[tuple[int, int]], wait: int, python: int
) -> None:
    events = device([kernel(at, us) for at, us in sorted(kernels)])
    host = {"input": stretch(wait, wait + 700), "python": stretch(python, python + 300)}
    told = split(np.array([0, 1.5e-3, 3e-3, 5e-3]), events, host)
    assert set(told.parts_s) == set(SPLIT_PARTS)
    assert min(told.parts_s.values()) >= 0
    assert sum(told.parts_s.values()) == pytest.approx(5e-3 / 3)
    assert sum(told.operations.class_s.values()) == pytest.approx(told.parts_s["compute"])


def test_streams_that_work_at_once_share_the_time() -> None:
    conv = Made(name="cudnn_conv2d", at_us=0, us=1000)
    told = split(np.array([0, 1e-3]), device([kernel(0, 1000)], [conv]), {})
    assert told.operations.class_s == {
        "gemm": pytest.approx(0.5e-3),
        "conv": pytest.approx(0.5e-3),
    }


def test_double_precision_is_told() -> None:
    double = Made(name="volta_dgemm_64x64_nn", at_us=0, us=400)
    told = split(np.array([0, 1e-3]), device([double, kernel(400, 600)]), {})
    assert told.operations.float64_s == pytest.approx(400 * US)


def test_a_step_of_the_device_begins_with_what_the_host_started_in_it() -> None:
    # the host runs 700 us ahead of the device: its edges are not the device's
    training = Training(steps=3, kernels=2, ahead_us=700)
    profile = read_planes(space(planes_of(training)))
    events = gpu_events(profile)[0]
    begin = events.begin_s[[0, 2, 4]]
    edges = begin - 701 * US
    steps = Steps(edges_s=edges, how="markers", retraced={}, notes=())
    assert device_edges(steps, events) == pytest.approx(begin)


def test_a_step_in_which_nothing_was_started_is_joined_to_the_one_before() -> None:
    events = device([kernel(0, 10), kernel(200, 10)])
    assert device_edges(steps_at(0, 100, 200), events) == pytest.approx([0, 200 * US])


def test_one_step_ends_with_its_work() -> None:
    events = device([kernel(0, 10), kernel(200, 50)])
    assert device_edges(steps_at(0, 100), events) == pytest.approx([0, 250 * US])
