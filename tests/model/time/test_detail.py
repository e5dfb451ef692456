from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.model.steps import kernel, program

from tfdyno.core.base.interval import Scaled
from tfdyno.core.choose.program import Buffer
from tfdyno.model.time.detail import forward_kernels, forward_ratio, held_buffers, live_curve


def buffer(name: str, fixed: float, per_sample: float) -> Buffer:
    size = Scaled(fixed=fixed, per_sample=per_sample)
    return Buffer(name=name, layer="", part="activations", dtype="f32", shape=(1,), bytes=size)


def test_the_largest_buffers_are_ordered_at_the_batch_asked() -> None:
    plan = program().buffers
    plan = replace(plan, largest=(buffer("a", 0, 10), buffer("w", 500, 0), buffer("none", 0, 0)))
    small = held_buffers(plan, 10)
    assert [(one.name, one.held_bytes) for one in small] == [("w", 500), ("a", 100)]
    assert held_buffers(plan, 100)[0].name == "a"


def test_the_curve_is_scaled_to_the_batch() -> None:
    plan = replace(program().buffers, live_curve=((0.0, Scaled(fixed=5, per_sample=2)),))
    assert live_curve(plan, 10) == ((0.0, 25.0),)


def test_the_share_of_the_forward_pass_is_that_of_its_kernels() -> None:
    first = kernel("loop", traffic_bytes=1e6)
    back = replace(first, phase="backward")
    made = (first, back, replace(first, phase="update"), first)
    assert forward_ratio(made, np.array([1.0, 5.0, 1.0, 2.0])) == pytest.approx(3.0 / 9.0)
    assert forward_ratio((), np.array([])) == 1.0
    assert forward_kernels(made) == (first, first)
