from __future__ import annotations

import jax
import numpy as np
import pytest
from tests.runtime.swept_points import first_of_each

from tfdyno.runtime.calibrate import jax_chain as chains
from tfdyno.runtime.calibrate.points import Point, kernel_of


@pytest.mark.parametrize("point", first_of_each(), ids=lambda one: f"{one.operation} {one.form}")
def test_a_kernel_makes_what_its_record_says_or_is_refused(point: Point) -> None:
    try:
        run, given = chains.built(point)
    except NotImplementedError:
        assert point.operation in {"tile", "loss", "select", "power", "convert", "compare",
                                   "pool_gradient", "random"}  # fmt: skip
        return
    made = jax.eval_shape(run, *given)
    if point.operation != "scatter":
        assert made.size * made.dtype.itemsize == kernel_of(point).write_bytes.fixed


def test_a_chain_is_not_folded_into_one_kernel() -> None:
    point = Point(operation="gemm", dtype="f32", sizes={"m": 8, "n": 4, "k": 2}, form="forward")
    made = chains.chain(point, 3, "xla")()
    assert [one.shape for one in made] == [(8, 4)] * 3
    run, given = chains.built(point)
    assert np.allclose(made[2], run(*given))


def test_without_a_gpu_none_is_named() -> None:
    chains.prepare()
    assert chains.devices() == []
    chains.wait(chains.chain(None, 0, "xla")())
    assert chains.release() == jax.__version__
