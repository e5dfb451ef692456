from __future__ import annotations

from typing import get_args

from tfdyno.core.choose.program import KernelKind
from tfdyno.words.choose import kernels


def test_every_kind_of_kernel_has_words() -> None:
    assert set(kernels.KINDS) == set(get_args(KernelKind))
    assert kernels.kind("gemm") == "matrix products"
    assert kernels.kind("newer") == "newer"


def test_a_cause_has_words_and_an_unknown_one_its_name() -> None:
    assert kernels.cause("memory") == "memory traffic"
    assert kernels.cause("host") == "host"


def test_a_way_to_run_is_called_as_people_call_it() -> None:
    assert kernels.execution("xla") == "XLA"
    assert kernels.execution("graph") == "graph"
