"""Small programs whose times can be worked out by hand."""

from __future__ import annotations

from tfdyno.core.base.interval import Scaled
from tfdyno.core.choose.program import BufferPlan, Direction, Kernel, KernelKind, Program
from tfdyno.core.choose.workload import Mode, Trace, Workload

NO_BYTES = Scaled()


class Neutral(dict[str, float]):
    """Constants of an ideal machine: every factor 1, every cost per launch 0."""

    def __missing__(self, name: str) -> float:
        nothing = ("t_", "host_", "tensor_feed", "gemm_feed", "window_overlap", "allreduce_fixed",
                   "allreduce_start")  # fmt: skip
        return 0.0 if name.startswith(nothing) else 1.0


def convolution(
    *,
    flops: float,
    traffic_bytes: float = 0.0,
    dtype: str = "f16",
    channels: tuple[int, int] = (64, 64),
    groups: int = 1,
    window: tuple[int, ...] = (1, 1),
    direction: Direction = "forward",
) -> Kernel:
    """One convolution of stride 1; work is per sample."""
    return Kernel(
        kind="convolution",
        dtype=dtype,
        flops=Scaled(per_sample=flops),
        read_bytes=Scaled(per_sample=traffic_bytes),
        direction=direction,
        layer="conv",
        dims={
            "cin": (channels[0],),
            "cout": (channels[1],),
            "groups": (groups,),
            "window": window,
            "stride": (1,) * len(window),
        },
    )


def kernel(kind: KernelKind, *, flops: float = 0.0, traffic_bytes: float = 0.0) -> Kernel:
    """One float16 kernel; work is per sample."""
    return Kernel(
        kind=kind,
        dtype="f16",
        flops=Scaled(per_sample=flops),
        write_bytes=Scaled(per_sample=traffic_bytes),
        layer="layer",
    )


def program(
    *kernels: Kernel,
    peak: Scaled = NO_BYTES,
    route: str = "quick",
    marker: int = 37,
    batch_size: int = 296,
) -> Program:
    """A program with these kernels and a plan of nothing but activations."""
    nothing = Scaled()
    return Program(
        trace_sha256="0" * 64,
        route="exact" if route == "exact" else "quick",
        family="8.x" if route == "exact" else "",
        batch_size=batch_size,
        marker=marker,
        kernels=kernels,
        buffers=BufferPlan(
            argument_bytes=nothing,
            output_bytes=nothing,
            aliased_bytes=nothing,
            temporary_bytes=peak,
            peak_bytes=peak,
            parts_bytes={"activations": peak},
            largest=(),
            live_curve=(),
        ),
        seconds_s=0.0,
        versions={},
    )


def trace(*, policy: str = "mixed_float16", mode: Mode = "train", parameters: int = 0) -> Trace:
    """A trace of a model with so many trainable parameters."""
    return Trace(
        workload=Workload(reference="keras:Test", kind="application", mode=mode),
        title="test",
        batch_size=296,
        marker=37,
        script_batch_size=0,
        policy=policy,
        path="jax",
        path_reason="test",
        loss="",
        optimizer="",
        execution="xla",
        parameter_count=parameters,
        trainable_parameter_count=parameters,
        tensors=(),
        stablehlo_sha256="0" * 64,
        seconds_s=0.0,
        script_seconds_s=0.0,
        versions={},
    )
