"""What a profile tells beside its times."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.runtime.planted_profiles import COMPUTE, GEMM, Made, Planes, Training, planes_of, space

from tfdyno.profile.device import Events, cpu_events, gpu_events
from tfdyno.profile.planes import read_planes
from tfdyno.profile.steps import Steps
from tfdyno.profile.told import capability_told, execution_of, host_only, lost, precision_told

if TYPE_CHECKING:
    from tfdyno.profile.lines import Profile

HALF = "void cutlass::Kernel<cutlass_80_tensorop_f16_s16816gemm_f16_128x128>"
STEPS = Steps(edges_s=np.array([0.0, 1.0, 2.0]), how="markers", retraced={}, notes=())


def profile(planes: Planes) -> Profile:
    return read_planes(space(planes))


def gpu(*made: Made) -> Events:
    return gpu_events(profile({"/device:GPU:0": {COMPUTE: list(made)}}))[0]


@pytest.mark.parametrize(
    ("name", "policy"),
    [
        (HALF, "mixed_float16"),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn", "mixed_bfloat16"),
        ("volta_dgemm_64x64_nn", "float64"),
        (GEMM, "float32"),
    ],
)
def test_most_matrix_products_tell_the_precision(name: str, policy: str) -> None:
    cast = Made(name="Cast_GPU_DT_HALF_DT_FLOAT_kernel", at_us=90, us=900)
    other = Made(name=GEMM, at_us=50, us=9)
    assert precision_told(gpu(Made(name=name, at_us=0, us=30), other, cast)) == policy


def test_kernels_of_xla_tell_that_the_step_is_compiled() -> None:
    facts = {"hlo_op": "fusion.3"}
    made = [Made(name="fusion_3", at_us=0, us=9, facts=facts), Made(name=GEMM, at_us=9, us=5)]
    found = profile({"/device:GPU:0": {COMPUTE: made}})
    assert execution_of(found, gpu_events(found)[0], STEPS) == "xla"


def test_operations_that_python_starts_one_by_one_are_eager() -> None:
    calls = [Made(name="EagerLocalExecute: MatMul", at_us=10 * k, us=5) for k in range(60)]
    found = profile({"/host:CPU": {"python": [*calls, Made(name="MatMul:MatMul", at_us=1, us=2)]}})
    assert execution_of(found, cpu_events(found), STEPS) == "eager"  # 30 in each of two steps
    few = profile({"/host:CPU": {"python": [*calls[:8], Made(name="a:MatMul", at_us=1, us=2)]}})
    assert execution_of(few, cpu_events(few), STEPS) == "graph"


def test_operations_that_ran_on_the_cpu_while_the_gpu_rested_are_named() -> None:
    planes = planes_of(Training(steps=4, pause_us=4000))
    python = planes["/host:CPU"]["python"]
    starts = [one.at_us for one in python if one.name == "train"]
    for start in starts:
        python.append(Made(name="net/unique:Unique", at_us=start + 500, us=3000))
        python.append(Made(name="net/dense:MatMul", at_us=start + 4000, us=3000))  # launches
    found = profile(planes)
    events = gpu_events(found)[0]
    edges = events.begin_s[::10]
    # by hand: 3 ms of a step of 14.05 ms
    told = host_only(found, events, edges)
    assert told == ("Unique (net/unique): 21% of the step",)


def test_the_plane_of_a_card_tells_its_compute_capability() -> None:
    planes = planes_of(Training(steps=2))
    said = {"/device:GPU:0": {"compute_cap_major": 8, "compute_cap_minor": 6, "core_count": 84}}
    assert capability_told(read_planes(space(planes, said))) == "8.6"
    assert capability_told(read_planes(space(planes))) == ""


def test_a_gpu_without_its_host_is_told() -> None:
    assert "no events of the host" in lost(profile(planes_of(Training(host=False))))[0]
    assert lost(profile(planes_of(Training()))) == ()
