from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest
from tests.swept import loop

from tfdyno.model.time.calibrate.windows import read_windows, undisturbed

KERNEL = asdict(loop(4096, 1.0).kernel)


def told(**line: Any) -> str:
    return json.dumps(line)


def head(name: str, count: int, **more: Any) -> str:
    about = {"kernel": KERNEL, "tf32": False, "less": ""} if count else {}
    return told(name=name, execution="graph", count=count, **about, **more)


def calls(name: str, *windows: float) -> list[str]:
    return [told(name=name, call_s=each) for each in windows]


CALL = [head("graph call", 0), *calls("graph call", 1e-4, 1e-4)]


def test_the_call_is_taken_off_and_the_rest_shared_by_the_kernels() -> None:
    lines = [*CALL, head("graph mul", 10), *calls("graph mul", 3e-4, 3e-4)]
    found = read_windows(lines)
    (one,) = found.kernels
    assert one.kernel_s == pytest.approx((3e-4 - 1e-4) / 10)
    assert (one.windows, found.pace.call_s) == (2, 1e-4)


def test_a_disturbed_window_counts_for_nothing() -> None:
    lines = [*CALL, head("graph mul", 1), *calls("graph mul", 3e-4, 3e-4, 3e-4, 3e-4, 9e-1)]
    assert read_windows(lines).kernels[0].kernel_s == pytest.approx(2e-4)


def test_what_runs_beside_a_gradient_is_taken_off_too() -> None:
    lines = [
        *CALL, head("graph pool", 2), *calls("graph pool", 2e-4, 2e-4),
        head("graph both", 1).replace('"less": ""', '"less": "graph pool"'),
        *calls("graph both", 5e-4, 5e-4),
    ]  # fmt: skip
    both = read_windows(lines).kernels[1]
    assert both.kernel_s == pytest.approx(4e-4 - 0.5e-4)


def test_on_a_gpu_a_long_chain_hides_the_call_and_a_short_one_tells_nothing() -> None:
    long = [head("graph mul", 10, overlaps=True), *calls("graph mul", 3e-4, 3e-4)]
    short = [head("graph add", 10, overlaps=True), *calls("graph add", 1.2e-4, 1.2e-4)]
    (one,) = read_windows([*CALL, *long, *short]).kernels
    assert one.kernel_s == pytest.approx(3e-4 / 10)


def test_lines_that_are_cut_off_and_kernels_of_one_window_are_left_out() -> None:
    whole = [*CALL, head("graph mul", 1), *calls("graph mul", 3e-4)]
    assert read_windows([*whole, '{"name": "graph mul", "call']).kernels == ()
    assert read_windows(["", "no json", "[1]"]).kernels == ()


def test_a_kernel_that_the_call_drowns_is_left_out() -> None:
    lines = [*CALL, head("graph mul", 1), *calls("graph mul", 9e-5, 9e-5)]
    assert read_windows(lines).kernels == ()


def test_on_busy_processors_the_time_that_was_used_counts() -> None:
    # One processor: a call uses 2 ms of it, however long it waits to get it.
    assert undisturbed([(2e-3, 2e-3), (7e-3, 2e-3), (9e-3, 2e-3)])[0] == pytest.approx(2e-3)
    # Of two at a time at best: 4 ms of both are 2 ms.
    assert undisturbed([(2e-3, 4e-3)] * 9 + [(8e-3, 4e-3)])[0] == pytest.approx(2e-3, rel=0.01)
    # Always preempted: no call uses less than the one processor that it runs on.
    assert undisturbed([(8e-3, 2e-3)] * 4)[0] == pytest.approx(2e-3)


def test_of_few_windows_whose_processors_are_not_told_the_shortest_counts() -> None:
    assert undisturbed([(481e-6, 0.0), (52e-6, 0.0)])[0] == pytest.approx(52e-6)
    # A quarter of eight is two: by hand, between the second and the third.
    steady = [(each * 1e-6, 0.0) for each in (50, 51, 52, 53, 54, 55, 56, 57)]
    assert 51e-6 < undisturbed(steady)[0] < 52e-6


def test_the_way_to_the_card_and_the_version_are_read() -> None:
    found = read_windows([told(version="2.21.0"), told(pace="to_card_bytes_per_s", value=2e10)])
    assert (found.version, found.pace.to_card_bytes_per_s) == ("2.21.0", 2e10)
