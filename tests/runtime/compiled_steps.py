"""Prints what XLA compiles small steps to, without a GPU: bytes that kernels move, by name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tfdyno.catalog.gpus import find
from tfdyno.jobs.choose.compile import _target
from tfdyno.kernels.hlo.kernels import KernelReader
from tfdyno.kernels.hlo.text import parse
from tfdyno.kernels.records import Sizes
from tfdyno.runtime.compile import xla_gpu
from tfdyno.runtime.compile.target import target_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tfdyno.core.choose.program import Kernel

CARD = find("h200-sxm-141gb")


def moved_bytes(kernels: Iterable[Kernel]) -> float:
    """What all kernels but matrix products read and write."""
    rest = (each for each in kernels if each.kind != "gemm")
    return sum((each.read_bytes + each.write_bytes).at(1) for each in rest)


def main() -> None:
    """Compile every step for an H200."""
    xla_gpu.prepare()
    from tests.runtime.small_steps import STEPS, module_of

    target = target_text(_target(CARD, CARD.memory_bytes))
    found = {}
    for name in STEPS:
        text = xla_gpu.compile_module(module_of(name), target).hlo_text
        found[name] = moved_bytes(KernelReader(parse(text), Sizes(1, 0), train=True).kernels())
    print(json.dumps(found))


if __name__ == "__main__":
    main()
