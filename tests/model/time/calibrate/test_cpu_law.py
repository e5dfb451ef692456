from __future__ import annotations

from dataclasses import replace

import pytest
from tests.swept import card_file, loop, product, swept

from tfdyno.core.base.interval import Scaled
from tfdyno.core.choose.program import Kernel
from tfdyno.model.time.calibrate.cpu_law import group_of, on_cpus, price, rough_law, sizes_of

CARD = card_file(
    loop(1, 1e-6), loop(2**16, 5e-5), loop(2**20, 8e-4), product(64, 1e-5), product(512, 3e-3)
)


def test_start_peak_and_bandwidth_are_read_off_the_kernels() -> None:
    law = rough_law(CARD)
    assert law.start_s == 1e-6
    # 2 * 64^3 / 1e-5 = 5.24e10 and 2 * 512^3 / 3e-3 = 8.95e10: nine tenths of the way up.
    assert law.flops_per_s == pytest.approx(5.24288e10 + 0.9 * (8.9478485e10 - 5.24288e10))
    # 8 B / 1 us = 8e6, 8 * 65536 / 50 us = 1.0486e10, 8 * 2^20 / 800 us = 1.0486e10.
    assert law.bytes_per_s == pytest.approx(1.048576e10)


def test_a_swept_kernel_costs_what_was_measured() -> None:
    found = price([one.kernel for one in CARD.kernels], 1.0, 1.0, CARD)
    measured = [one.kernel_s for one in CARD.kernels]
    assert found.kernel_s == pytest.approx(measured, rel=0.05)


def test_what_runs_many_times_costs_so_many_times() -> None:
    once = CARD.kernels[1].kernel
    thrice = replace(
        once, count=3, read_bytes=once.read_bytes.times(3), write_bytes=once.write_bytes.times(3)
    )
    found = price([once, thrice], 1.0, 1.0, CARD)
    assert found.kernel_s[1] == pytest.approx(3 * found.kernel_s[0])


def test_an_operation_that_was_not_swept_takes_the_price_of_its_like() -> None:
    card = card_file(*CARD.kernels, loop(2**16, 4e-4, "exponential"))
    like = loop(2**16, 1.0, "log_plus_one").kernel
    other = loop(2**16, 1.0, "unheard_of").kernel
    found = price([like, other], 1.0, 1.0, card)
    assert found.kernel_s == pytest.approx([4e-4, 5e-5], rel=0.05)


def test_sizes_grow_with_the_batch() -> None:
    kernel = replace(product(64, 1.0).kernel, dims_scaled=("m",))
    assert sizes_of(kernel, 4.0) == (8.0, 6.0, 6.0, 0.0)


def test_a_gradient_of_a_weight_has_no_order_of_rows_and_columns() -> None:
    kernel = product(64, 1.0).kernel
    long = replace(kernel, dims={"m": (8,), "n": (128,), "k": (64,), "batch": (1,)})
    wide = replace(kernel, dims={"m": (128,), "n": (8,), "k": (64,), "batch": (1,)})
    assert sizes_of(long, 1.0) == sizes_of(wide, 1.0) == (7.0, 3.0, 6.0, 0.0)


def convolution(layer: str) -> Kernel:
    size = Scaled(per_sample=400.0)
    return Kernel(kind="convolution", dtype="f32", layer=layer, write_bytes=size,
                  direction="forward", dims={"groups": (1,)})  # fmt: skip


def test_images_are_not_turned_and_a_bias_is_part_of_its_convolution() -> None:
    image = convolution("conv")
    size = image.write_bytes
    turned = Kernel(kind="transpose", dtype="f32", layer="conv", name="transpose")
    bias = Kernel(kind="loop", dtype="f32", layer="conv", name="add", write_bytes=size)
    rectified = Kernel(kind="loop", dtype="f32", layer="conv", name="maximum", write_bytes=size)
    gradient = Kernel(kind="reduce", dtype="f32", layer="conv", name="reduce", phase="backward")
    assert on_cpus([image, turned, bias, rectified, gradient]) == (image,)


def test_what_is_no_part_of_a_library_call_stays() -> None:
    image = convolution("conv")
    heads = Kernel(kind="transpose", dtype="f32", layer="attention", name="transpose")
    residual = Kernel(kind="loop", dtype="f32", layer="", name="add", write_bytes=Scaled(fixed=1))
    sums = Kernel(kind="reduce", dtype="f32", layer="norm", name="reduce", phase="backward")
    assert on_cpus([image, heads, residual, sums]) == (image, heads, residual, sums)


def test_depthwise_convolutions_are_a_group_of_their_own() -> None:
    plain = convolution("a")
    depthwise = replace(plain, dims={"groups": (32,)})
    assert group_of(plain) != group_of(depthwise)
    card = card_file(*CARD.kernels, swept(plain, 1e-3))
    known = price([depthwise], 1.0, 1.0, card)
    assert known.groups[0] == group_of(plain)  # the nearest that was swept
