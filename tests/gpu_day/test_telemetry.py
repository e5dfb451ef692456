"""gpu_day/telemetry: a line a second, of the CPUs or as nvidia-smi tells it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from gpu_day import telemetry

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_the_cpus_are_watched_and_a_second_sitting_adds_to_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telemetry, "PERIOD_S", 0.05)
    file = tmp_path / "telemetry.csv"
    for _ in range(2):
        with telemetry.watched(file, began_s=time.monotonic(), uuid=None) as unwatched:
            time.sleep(0.4)
        assert unwatched == ""
    points = telemetry.read(file)
    assert len(points) >= 4
    assert all(0 <= one["load_percent"] <= 100 and one["memory_mib"] > 0 for one in points)
    assert "power_w" not in points[0]
    times = [one["at_s"] for one in points]
    assert times == sorted(times)  # the second behind the first
    assert file.read_text().count("at_s") == 1


def test_a_card_is_asked_by_nvidia_smi_and_what_it_does_not_tell_is_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telemetry, "PERIOD_S", 0.05)
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho '97, 41000, 612.34, [N/A], 71'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    file = tmp_path / "telemetry.csv"
    with telemetry.watched(file, began_s=time.monotonic(), uuid="GPU-1"):
        time.sleep(0.4)
    point = telemetry.read(file)[0]
    assert {name: point[name] for name in point if name != "at_s"} == {
        "load_percent": 97, "memory_mib": 41000, "power_w": 612.34, "celsius": 71,
    }  # fmt: skip


def test_without_nvidia_smi_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with telemetry.watched(tmp_path / "x.csv", began_s=0.0, uuid="GPU-1") as unwatched:
        assert "nvidia-smi is not installed" in unwatched
    assert telemetry.read(tmp_path / "x.csv") == []
