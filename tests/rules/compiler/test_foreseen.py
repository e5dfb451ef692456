from __future__ import annotations

from typing import Any

import pytest

from tfdyno.core.base.interval import Scaled
from tfdyno.core.choose.program import BufferPlan, Kernel, Program
from tfdyno.rules.compiler.foreseen import CompilePlace, faults_at, patterns_of, warning_of

H200 = CompilePlace(framework="tensorflow", version="2.21.0", compute_capability="9.0")


def names(place: CompilePlace, *patterns: str) -> list[str]:
    return [one.id for one in faults_at(place, patterns or None)]


def program(*kernels: Kernel) -> Program:
    none = Scaled()
    plan = BufferPlan(
        argument_bytes=none, output_bytes=none, aliased_bytes=none, temporary_bytes=none,
        peak_bytes=none, parts_bytes={}, largest=(), live_curve=(),
    )  # fmt: skip
    return Program(
        trace_sha256="", route="quick", family="9.0", batch_size=64, marker=0, kernels=kernels,
        buffers=plan, seconds_s=0.0, versions={},
    )  # fmt: skip


def convolution(channels: int) -> Kernel:
    return Kernel(kind="convolution", dtype="f16", direction="forward", dims={"cout": (channels,)})


def product(m: int, n: int, k: int, **changes: Any) -> Kernel:
    sizes: dict[str, tuple[int, ...]] = {"m": (m,), "n": (n,), "k": (k,), "batch": (1,)}
    return Kernel(kind="gemm", dtype="f16", dims=sizes, **changes)


@pytest.mark.parametrize(
    ("place", "found"),
    [
        (H200, ["symbolic_tile"]),
        (CompilePlace(framework="tensorflow", version="2.21", compute_capability="9.0"),
         ["symbolic_tile"]),
        (CompilePlace(framework="tensorflow", version="2.20.0", compute_capability="9.0"), []),
        (CompilePlace(framework="tensorflow", version="2.21.0", compute_capability="8.0"), []),
        (CompilePlace(framework="tensorflow", version="2.21.0", compute_capability="7.5",
               cudnn="9.5.1.17"), ["cudnn_autotuner"]),
        (CompilePlace(framework="tensorflow", version="2.21.0", compute_capability="7.5",
               cudnn="9.24.0"), []),
        (CompilePlace(framework="jax", version="0.10.2", compute_capability="7.0"),
         ["gemm_autotuner"]),
        (CompilePlace(framework="jax", version="0.10.2", compute_capability="8.6"),
         ["triton_wrong_86"]),
        (CompilePlace(framework="jax", version="0.11.0", compute_capability="8.6"), []),
        (CompilePlace(framework="jax", version="0.11.0", compute_capability="12.0"),
         ["triton_wrong_120", "slow_fusion_autotuner"]),
        (CompilePlace(framework="jax", version="0.12.0", compute_capability="12.0"), []),
        (CompilePlace(framework="tensorflow", version="2.21.0", compute_capability="12.0"),
         ["ptx_too_old"]),
        (CompilePlace(framework="tensorflow", version="2.22", compute_capability="10.3"),
         ["ptx_too_old"]),
        (CompilePlace(framework="tensorflow", version="2.15.0", compute_capability="12.0"), []),
        (CompilePlace(framework="tensorflow", version="", compute_capability="9.0"), []),
    ],
)  # fmt: skip
def test_a_fault_is_told_where_release_card_and_cudnn_match(
    place: CompilePlace, found: list[str]
) -> None:
    assert names(place) == found


def test_a_model_without_the_pattern_is_not_warned() -> None:
    assert names(H200, "convolution", "product") == []
    assert names(H200, "convolution", "convolution_flatten_dense") == ["symbolic_tile"]


def test_an_xla_that_compiles_nothing_is_told_with_what_works() -> None:
    place = CompilePlace(framework="tensorflow", version="2.21", compute_capability="12.0")
    (fault,) = faults_at(place, ())  # whatever the model
    said = warning_of(fault, place)
    assert said.startswith("XLA, the default of fit in Keras 3, fails with the wheel of TensorFlow")
    assert "What works: graph execution (jit_compile=False), NVIDIA's container" in said


def test_the_warning_names_the_thread_and_the_flag_that_avoids_it() -> None:
    (fault,) = faults_at(H200)
    said = warning_of(fault, H200)
    assert "TensorFlow 2.21.0 on compute capability 9.0: Triton finds no tile" in said
    assert "jax-ml/jax#40237" in said
    assert "XLA_FLAGS=--xla_gpu_enable_triton_gemm=false" in said
    assert "for a model with convolutions, Flatten and Dense" in warning_of(fault, H200, about=True)


def test_a_silent_fault_offers_xlas_own_check() -> None:
    place = CompilePlace(framework="jax", version="0.10.2", compute_capability="12.0")
    said = [warning_of(one, place) for one in faults_at(place) if one.silent]
    assert len(said) == 1
    assert "XLA_FLAGS=--xla_gpu_verify_triton_fusion_numerics=true tells" in said[0]


@pytest.mark.parametrize(
    ("kernels", "is_flat"),
    [
        ((convolution(32), product(64, 64, 6 * 6 * 32)), True),
        ((convolution(32), product(64, 10, 32)), False),  # pooled to one place
        ((convolution(768), product(64 * 197, 768, 4 * 768)), False),  # rows are tokens
        ((product(64, 64, 1152),), False),
        ((convolution(32), product(64, 64, 1152, phase="backward")), False),
        ((convolution(32), product(64, 64, 1150)), False),
    ],
)
def test_flatten_is_seen_by_the_length_of_the_rows(
    kernels: tuple[Kernel, ...], is_flat: bool
) -> None:
    assert ("convolution_flatten_dense" in patterns_of(program(*kernels))) is is_flat
