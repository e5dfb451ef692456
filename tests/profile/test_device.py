"""What devices did, with classes, and what the host was seen doing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.runtime.planted_profiles import (
    COMPUTE,
    GEMM,
    Made,
    Planes,
    Training,
    planes_of,
    space,
)

from tfdyno.profile.device import cpu_events, gpu_events, host_spans, launch_times
from tfdyno.profile.planes import read_planes

if TYPE_CHECKING:
    from tfdyno.profile.lines import Profile


def profile(planes: Planes) -> Profile:
    return read_planes(space(planes))


def test_kernels_have_classes_and_the_time_of_their_launch() -> None:
    (gpu,) = gpu_events(profile(planes_of(Training(steps=1, kernels=2, ahead_us=300))))
    assert [gpu.known[at].operation_class for at in gpu.known_index] == ["gemm", "gemm"]
    # each launch is 300.5 us before its kernel
    assert gpu.begin_s - gpu.launched_s == pytest.approx([300.5e-6] * 2)
    assert gpu.is_compute.all()


def test_a_kernel_whose_launch_is_not_known_counts_from_its_beginning() -> None:
    (gpu,) = gpu_events(profile(planes_of(Training(steps=1, kernels=2, host=False))))
    assert gpu.launched_s.tolist() == gpu.begin_s.tolist()


def test_the_busiest_gpu_comes_first() -> None:
    line = {COMPUTE: [Made(name=GEMM, at_us=0, us=5)]}
    more = {COMPUTE: [Made(name=GEMM, at_us=0, us=9)]}
    idle: dict[str, list[Made]] = {COMPUTE: []}
    found = gpu_events(
        profile({"/device:GPU:0": line, "/device:GPU:1": more, "/device:GPU:2": idle})
    )
    assert [each.title for each in found] == ["/device:GPU:1", "/device:GPU:0"]


def test_operations_of_the_cpu_are_those_of_the_executor_without_their_wrappers() -> None:
    threads = {
        "tf_Compute/1": [
            Made(name="ExecutorState::Process", at_us=0, us=50),
            Made(name="call:PartitionedCall", at_us=0, us=40),
            Made(name="net/dense/MatMul:MatMul", at_us=10, us=20),
        ],
        "tf_data_private_threadpool/1": [Made(name="Decode:DecodeJpeg", at_us=0, us=50)],
        "XLAEigen/1": [Made(name="dot.3", at_us=5, us=5, facts={"hlo_op": "dot.3"})],
    }
    cpu = cpu_events(profile({"/host:CPU": threads}))
    told = [cpu.known[at] for at in cpu.known_index]
    assert [(each.operation.title, each.operation_class) for each in told] == [
        ("call", "wrapper"), ("dot.3", "gemm"), ("net/dense/MatMul", "gemm")
    ]  # fmt: skip
    assert cpu.own_s == pytest.approx([0, 5e-6, 20e-6])  # a wrapper does no work of its own
    assert [each.is_compiled for each in told] == [False, True, False]


def test_a_host_that_waits_is_told_from_one_that_runs_python() -> None:
    threads = {
        "tf_data_iterator_get_next/1": [
            Made(name="IteratorGetNextOp::DoCompute", at_us=0, us=10),
            Made(name="Iterator::Root", at_us=2, us=7),
        ],
        "tf_Compute/1": [Made(name="PyFunc:PyFunc", at_us=40, us=3)],
        "tf_data_private_threadpool/1": [Made(name="PyFunc:PyFunc", at_us=60, us=5)],
    }  # fmt: skip
    spans = host_spans(profile({"/host:CPU": threads}))
    assert spans["input"].total_s == pytest.approx(10e-6)
    assert spans["python"].total_s == pytest.approx(3e-6)  # not that of the pipeline


def test_launches_are_calls_of_the_host_with_a_number() -> None:
    assert launch_times(profile(planes_of(Training(steps=2, kernels=3)))).size == 6
