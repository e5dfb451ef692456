"""XLA's GPU compiler without a GPU: the only module that uses jax's internal names for it.

Checked with the versions that ``pyproject.toml`` pins; a test compiles for real and fails when one
of these names has moved.
"""

from __future__ import annotations

import contextlib
import os
import threading
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import ToolError
from tfdyno.kernels.hlo.plan import MemoryTotals
from tfdyno.runtime.compile import xla_lines
from tfdyno.runtime.compile.xla_lines import PassRun

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jaxlib.mlir import ir

    from tfdyno.core.base.untyped import Value

PACKAGES = ("jax", "jaxlib", "jax-cuda12-pjrt", "nvidia-cuda-nvcc-cu12")
INSTALL = 'install it with: pip install "tfdyno[exact]" (Linux on x86-64 only)'
FLAGS = (
    "--xla_gpu_autotune_level=0",  # there is no GPU to time candidates on
    "--xla_gpu_enable_triton_gemm=false",  # untuned Triton products instead of cuBLAS otherwise
    "--xla_gpu_enable_cublaslt=true",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """What the compiler made, and what it said on the way."""

    hlo_text: str
    totals: MemoryTotals
    rematerialisation: PassRun | None
    """What it computes again to keep to the memory of the target; None: nothing, there is room."""


def prepare() -> None:
    """Set what the compiler reads from the environment; call before jax is imported.

    Raises:
        ToolError: The compiler is not installed; says how to install it.
    """
    missing = [name for name in PACKAGES if not _version(name)]
    if missing:
        why = f"package {missing[0]} is not installed"
        raise ToolError("this needs XLA's compiler for NVIDIA GPUs", why=why, remedy=INSTALL)
    os.environ["XLA_FLAGS"] = " ".join(FLAGS)
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "0"  # notes are read, and not passed on
    os.environ["TF_CPP_VMODULE"] = xla_lines.VERBOSE
    os.environ["JAX_SKIP_CUDA_CONSTRAINTS_CHECK"] = "1"


def versions() -> dict[str, str]:
    """Return versions of the packages that decide what is compiled."""
    return {name: _version(name) for name in PACKAGES}


def compile_module(module: ir.Module, target_text: str, *, cards: int = 1) -> Compiled:
    """Compile a StableHLO module for a described GPU; aliases of its arguments are kept.

    Args:
        module: The step.
        target_text: What the compiler is told of a card.
        cards: That share the step as the arguments' ``mhlo.sharding`` says; bytes are of each.

    Raises:
        ToolError: The compiler refused; its reason in one line.
    """
    from jax.experimental import topologies
    from jaxlib import _jax

    with _standard_error() as lines:
        try:
            topology = topologies.get_topology_desc(
                platform="cuda", target_config=target_text, topology=f"1x1x{cards}"
            )
            executable = topology.devices[0].client.compile(
                module,
                executable_devices=_jax.DeviceList(tuple(topology.devices)),
                compile_options=_options(cards),
            )
        except (RuntimeError, ValueError, NotImplementedError) as error:
            reason = (str(error).splitlines() or ["no reason given"])[0]
            raise ToolError("XLA could not compile the step for this GPU", why=reason) from None
    stats = executable.get_compiled_memory_stats()
    return Compiled(
        hlo_text=executable.hlo_modules()[0].to_string(),
        totals=MemoryTotals(
            argument_bytes=stats.argument_size_in_bytes,
            output_bytes=stats.output_size_in_bytes,
            aliased_bytes=stats.alias_size_in_bytes,
            temporary_bytes=stats.temp_size_in_bytes,
        ),
        rematerialisation=xla_lines.told(lines),
    )


def _options(cards: int) -> Value:
    from jax._src import compiler

    if cards == 1:
        return compiler.get_compile_options(num_replicas=1, num_partitions=1)
    import numpy as np

    options = compiler.get_compile_options(
        num_replicas=1, num_partitions=cards, device_assignment=np.arange(cards).reshape(1, cards)
    )
    options.executable_build_options.use_spmd_partitioning = True
    options.executable_build_options.use_shardy_partitioner = False  # it reads another attribute
    return options


@contextlib.contextmanager
def _standard_error() -> Iterator[list[str]]:
    """Read what C++ code writes to standard error; all but notes are passed on."""
    lines: list[str] = []
    read, write = os.pipe()
    real = os.dup(2)
    os.dup2(write, 2)
    os.close(write)

    def forward() -> None:
        with os.fdopen(read, errors="replace") as pipe:
            for line in pipe:
                lines.append(line)
                if not xla_lines.is_note(line):
                    os.write(real, line.encode())

    reader = threading.Thread(target=forward, daemon=True)
    reader.start()
    try:
        yield lines
    finally:
        os.dup2(real, 2)
        reader.join(timeout=5)
        os.close(real)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
