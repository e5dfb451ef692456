from __future__ import annotations

import time

from tfdyno.runtime.calibrate.clock import MOST_KERNELS, Timed, chain_length


def test_a_window_tells_a_call_and_leaves_the_first_one_out() -> None:
    count = 0

    def call() -> None:
        nonlocal count
        count += 1
        time.sleep(0.002)

    timed = Timed(name="sleep", call=call, wait=lambda _: None, count=1,
                  window_s=3e-3)  # fmt: skip
    timed.warm()
    before = count
    taken_s, used_s = timed.window()
    assert count == before + 1 + timed.calls
    assert taken_s >= 0.002
    assert used_s < taken_s


def test_short_kernels_make_long_chains_and_large_ones_fit_the_memory() -> None:
    assert chain_length(1e-7, 8.0, 1e9, "gpu graph loop") == MOST_KERNELS["gpu graph"]
    assert chain_length(1e-7, 8.0, 1e9, "cpu xla gemm") == MOST_KERNELS["cpu xla"]
    assert chain_length(1e-4, 8.0, 1e9, "cpu graph loop") == 10
    assert chain_length(1e-1, 8.0, 1e9, "cpu graph loop") == 1
    assert chain_length(1e-7, 5e8, 1e9, "cpu graph loop") == 2


def test_a_chain_of_a_gpu_is_longer_than_the_call_that_it_has_to_hide() -> None:
    assert chain_length(1e-4, 8.0, 1e9, "gpu xla gemm") == 20
    assert 1e-4 * chain_length(1e-4, 8.0, 1e9, "gpu xla gemm") > 5 * 3e-4


def test_convolutions_which_are_built_one_by_one_have_short_chains() -> None:
    assert chain_length(2e-5, 8.0, 1e9, "gpu xla convolution") == 24
    assert chain_length(2e-5, 8.0, 1e9, "gpu xla gemm") == 100
