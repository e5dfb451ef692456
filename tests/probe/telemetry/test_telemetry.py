"""Telemetry of real child processes, with the bindings' answers faked and really missing."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from tests.probe.fake_nvml import FakeNvml, nvml_is

from tfdyno.core.measure.measurement import MISSING, Telemetry
from tfdyno.probe.base import processors
from tfdyno.probe.telemetry import telemetry
from tfdyno.probe.telemetry.telemetry import Sampler

if TYPE_CHECKING:
    from collections.abc import Iterator

BUSY = "block = bytearray(96 << 20)\nwhile True: sum(range(1000))"
IDLE = "import time; time.sleep(30)"
QUICK_S = 0.05


@contextmanager
def child(code: str) -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        yield process.pid
        process.kill()


def points(sampler: Sampler, count: int, limit_s: float = 60.0) -> Telemetry:
    until = time.monotonic() + limit_s
    while len(sampler.telemetry().at_s) < count and time.monotonic() < until:
        time.sleep(0.02)
    return sampler.telemetry()


def test_a_busy_child_is_seen_twice_a_second_at_about_half_a_percent() -> None:
    """The real thing: real child, real interval, real bindings."""
    with child(BUSY) as pid, Sampler(pid) as sampler:
        told = points(sampler, 5)
    assert told.interval_s == 0.5
    assert told.at_s[-1] >= 2.5
    # Opening and the first point are in it before it can slow down: 0.0051 on a slow CPU.
    assert 0 < told.cost_ratio < 0.01
    assert max(told.cpu_ratio) > 0  # this machine may be full of others
    assert all(
        0 <= a + b <= 1.25 for a, b in zip(told.cpu_ratio, told.other_cpu_ratio, strict=True)
    )
    assert max(told.memory_bytes) > 96 << 20
    assert len({len(told.at_s), len(told.cpu_ratio), len(told.memory_bytes)}) == 1


def test_the_child_may_start_after_the_sampler() -> None:
    with Sampler(interval_s=QUICK_S) as sampler:
        assert sampler.telemetry() == Telemetry(interval_s=QUICK_S)
        with child(IDLE) as pid:
            sampler.watch(pid)
            sampler.watch(pid)
            assert points(sampler, 2).memory_bytes[0] > 1 << 20
    assert not sampler_threads()


def test_it_stops_by_itself_when_the_child_ends() -> None:
    with Sampler(interval_s=QUICK_S) as sampler:
        with child(IDLE) as pid:
            sampler.watch(pid)
            points(sampler, 1)
        until = time.monotonic() + 60
        while sampler_threads():
            assert time.monotonic() < until
            time.sleep(0.02)
        count = len(sampler.telemetry().at_s)
        time.sleep(3 * QUICK_S)
        assert len(sampler.telemetry().at_s) == count


@pytest.mark.parametrize("pid", [2**22 + 1, 0])
def test_a_child_that_was_never_there_leaves_no_points(pid: int) -> None:
    with Sampler(pid, interval_s=QUICK_S) as sampler:
        time.sleep(2 * QUICK_S)
    assert sampler.telemetry().at_s == ()


def test_every_card_is_followed_until_it_is_lost() -> None:
    nvml = FakeNvml(2)
    with child(IDLE) as pid:
        nvml.processes = [(1, 5 << 30)]
        with nvml_is(nvml), Sampler(pid, interval_s=QUICK_S, visible="0,1") as sampler:
            points(sampler, 2)
            nvml.processes = [(1, 5 << 30), (pid, 30 << 30)]
            nvml.lost = {1}
            now = len(sampler.telemetry().at_s)
            told = points(sampler, now + 2)
    kept, lost = told.cards
    assert {len(kept.power_w), len(lost.power_w), len(lost.throttle)} == {len(told.at_s)}
    assert (lost.power_w[0], lost.power_w[-1], lost.throttle[-1]) == (612.345, MISSING, ())
    assert set(kept.power_w) == {612.345}
    assert kept.other_memory_bytes[-1] == 5 << 30
    assert kept.throttle[-1] == ("software power cap",)


def test_cards_that_the_child_must_not_use_are_not_followed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    with child(IDLE) as pid, nvml_is(FakeNvml(4)), Sampler(pid, interval_s=QUICK_S) as sampler:
        told = points(sampler, 1)
    assert [card.index for card in told.cards] == [1]


def test_a_fault_ends_the_sampling_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> float:
        raise RuntimeError

    monkeypatch.setattr(processors, "busy_s", fail)
    with child(IDLE) as pid, Sampler(pid, interval_s=QUICK_S) as sampler:
        time.sleep(2 * QUICK_S)
    assert sampler.telemetry().at_s == ()


def test_a_dear_point_makes_the_next_one_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """A point of 20 ms may come once in 5 s: twice a second would cost 4 %."""
    whole = processors.busy_s

    def dear(which: tuple[int, ...]) -> float | None:
        end = time.thread_time() + 0.02
        while time.thread_time() < end:
            pass
        return whole(which)

    monkeypatch.setattr(processors, "busy_s", dear)
    with child(IDLE) as pid, Sampler(pid, interval_s=QUICK_S) as sampler:
        points(sampler, 1)
        points(sampler, 2, limit_s=1.0)
    assert len(sampler.telemetry().at_s) == 1


def test_a_driver_that_hangs_does_not_hold_the_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    free = threading.Event()
    nvml = FakeNvml()
    monkeypatch.setattr(nvml, "nvmlDeviceGetCount", lambda: free.wait(20) and 0)
    monkeypatch.setattr(telemetry, "STOP_LIMIT_S", 0.1)
    began = time.monotonic()
    with child(IDLE) as pid, nvml_is(nvml), Sampler(pid) as sampler:
        pass
    assert time.monotonic() - began < 18
    assert sampler.telemetry().at_s == ()
    free.set()


def sampler_threads() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == "tfdyno telemetry"]


def test_the_load_of_now_is_the_newest_point() -> None:
    with child(BUSY) as pid, Sampler(pid, interval_s=QUICK_S) as sampler:
        points(sampler, 1)
        found = sampler.load()
    assert Sampler().load() == {}
    assert found["memory_bytes"] > 0
    assert set(found) <= {"cpu_ratio", "memory_bytes", "cards"}
