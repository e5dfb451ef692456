from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tfdyno.store import run_events as module
from tfdyno.store.run_events import EVENTS_FILE, RunEvents, read_events

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def line(kind: str = "steps", **more: object) -> str:
    return json.dumps({"event": kind, "epoch": 1, "epochs": 2, "step": 1, **more})


def steps(found: list[dict[str, Any]]) -> list[object]:
    return [one["step"] for one in found]


def test_events_are_kept_with_their_time_and_the_load(tmp_path: Path) -> None:
    with RunEvents(tmp_path, lambda: {"cpu_ratio": 0.5}, now=Clock()) as events:
        events.take("tracing the model")
        events.take("{no JSON")
        events.take('{"layout": 1}')
        events.take(line("begin"))
        events.take(line(loss=0.5))
    found, place = read_events(tmp_path)
    assert [one["event"] for one in found] == ["begin", "steps"]
    assert found[1] | {"loss": 0.5, "at": 1000.0, "load": {"cpu_ratio": 0.5}} == found[1]
    assert read_events(tmp_path, place) == ([], place)


def test_steps_are_a_second_apart_and_the_last_epoch_always_counts(tmp_path: Path) -> None:
    clock = Clock()
    with RunEvents(tmp_path, dict, now=clock) as events:
        for step in range(12):
            events.take(line(step=step))
            clock.now_s += 0.25
        events.take(line("epoch", epoch=1, step=20))
        events.take(line("epoch", epoch=2, step=21))
    assert steps(read_events(tmp_path)[0]) == [0, 4, 8, 20, 21]


def test_a_long_training_is_told_ever_more_seldom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_EVENTS", 4)
    clock = Clock()
    with RunEvents(tmp_path, dict, now=clock) as events:
        for step in range(16):
            events.take(line(step=step))
            clock.now_s += 1.0
    assert steps(read_events(tmp_path)[0]) == [0, 1, 2, 3, 4, 6, 8, 10, 12]


def test_a_half_written_line_waits_and_what_is_no_event_is_passed_over(tmp_path: Path) -> None:
    file = tmp_path / EVENTS_FILE
    first, second = f"{line(step=1)}\n", f"{line(step=2)}\n"
    file.write_text(f"{first}[1]\nnull\n{{broken\n{second[:9]}")
    found, place = read_events(tmp_path)
    assert (steps(found), place) == ([1], len(first) + len("[1]\nnull\n{broken\n"))
    with file.open("a") as more:
        more.write(second[9:])
    assert steps(read_events(tmp_path, place)[0]) == [2]


def test_a_session_after_a_kill_begins_with_a_line_of_its_own(tmp_path: Path) -> None:
    (tmp_path / EVENTS_FILE).write_text(line(step=1) + "\n" + line(step=2)[:10])
    with RunEvents(tmp_path, dict, now=Clock()) as events:
        events.take(line("begin", step=0))
    assert steps(read_events(tmp_path)[0]) == [1, 0]


def test_another_file_in_its_place_is_read_from_its_beginning(tmp_path: Path) -> None:
    (tmp_path / EVENTS_FILE).write_text(line(step=1) + "\n")
    assert steps(read_events(tmp_path, 10_000)[0]) == [1]


def test_many_events_are_read_in_portions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / EVENTS_FILE).write_text("".join(f"{line(step=step)}\n" for step in range(50)))
    monkeypatch.setattr(module, "MOST_BYTES", 300)
    found, place = list[dict[str, Any]](), 0
    for _ in range(50):
        more, place = read_events(tmp_path, place)
        assert len(more) < 6
        found += more
    assert steps(found) == list(range(50))


def test_what_cannot_be_written_does_not_end_the_training(tmp_path: Path) -> None:
    with RunEvents(tmp_path / "gone", dict) as events:
        events.take(line())
    assert not (tmp_path / "gone").exists()
