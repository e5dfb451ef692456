from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.ui.what_ifs import GIVEN

from tfdyno.catalog.gpus import find
from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.jobs.child.worker import silent
from tfdyno.jobs.choose.predict import predictor_for
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.jobs.choose.trace import trace
from tfdyno.ui import traces as module
from tfdyno.ui.traces import MOST_HELD, NotTraced, Traces

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.choose.workload import Workload
    from tfdyno.jobs.choose.trace import Traced

WAIT_S = 60.0


@pytest.fixture(scope="module")
def made() -> Traced:
    return trace(GIVEN)


def until_traced(traces: Traces, workload: Workload) -> Traced:
    end_s = time.monotonic() + WAIT_S
    while time.monotonic() < end_s:
        try:
            return traces.of(workload)
        except NotTraced:
            time.sleep(0.01)
    raise TimeoutError


def test_a_kept_trace_is_there_at_once_and_stays_the_same_object(made: Traced) -> None:
    traces = Traces()
    found = traces.of(GIVEN)
    assert found.trace == made.trace
    assert traces.of(GIVEN) is found
    assert traces.of(GIVEN, 77) is found  # its batch is free


def test_one_trace_is_made_at_a_time_and_told_in_stages(
    made: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    running, most, go = [0], [0], threading.Event()

    def slow(
        workload: Workload, *, batch_size: int | None, progress: Callable[[str], None]
    ) -> Traced:
        running[0] += 1
        most[0] = max(most[0], running[0])
        progress(f"reading {workload.reference}")
        assert go.wait(WAIT_S)
        running[0] -= 1
        return made

    monkeypatch.setattr(module, "trace", slow)
    monkeypatch.setattr(module, "kept_trace", lambda *_, **__: None)
    traces = Traces()
    named = [parse_reference(f"keras:{name}") for name in ("VGG16", "VGG19")]
    for one in named:
        with pytest.raises(NotTraced):
            traces.of(one)
    told: set[str] = set()
    end_s = time.monotonic() + WAIT_S
    while not told & {f"reading {one.reference}" for one in named} and time.monotonic() < end_s:
        for one in named:
            with pytest.raises(NotTraced) as stage:
                traces.of(one)
            told.add(stage.value.stage)
    assert "waiting for another trace" in told
    go.set()
    assert all(until_traced(traces, one).trace == made.trace for one in named)
    assert most == [1]


@pytest.mark.parametrize("error", [UsageError("no fit"), RuntimeError("odd")])
def test_a_failure_is_told_once_and_tried_again(
    made: Traced, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    errors = [error]

    def failing(*_: object, **__: object) -> Traced:
        if errors:
            raise errors.pop()
        return made

    monkeypatch.setattr(module, "trace", failing)
    monkeypatch.setattr(module, "kept_trace", lambda *_, **__: None)
    traces = Traces()
    with pytest.raises((UsageError, ToolError), match=r"no fit|odd"):
        until_traced(traces, GIVEN)
    assert until_traced(traces, GIVEN).trace == made.trace


def test_a_batch_that_is_part_of_the_model_has_a_trace_of_its_own(
    made: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    fixed = replace(made, trace=replace(made.trace, marker=0, batch_size=32))
    asked: list[int | None] = []

    def kept(_: Workload, *, batch_size: int | None) -> Traced:
        asked.append(batch_size)
        return replace(fixed, trace=replace(fixed.trace, batch_size=batch_size or 32))

    monkeypatch.setattr(module, "kept_trace", kept)
    traces = Traces()
    assert traces.of(GIVEN).trace.batch_size == 32
    assert traces.of(GIVEN, 32).trace.batch_size == 32
    assert traces.of(GIVEN, 64).trace.batch_size == 64
    assert asked == [None, 64]


def test_a_changed_file_is_seen_when_the_page_is_loaded_again(tmp_path: Path, made: Traced) -> None:
    source, _, function = GIVEN.reference.rpartition(":")
    script = tmp_path / "mine.py"
    script.write_text(Path(source).read_text())
    mine = parse_reference(f"{script}:{function}")
    traces = Traces()
    before = until_traced(traces, mine)
    assert before.trace.parameter_count == made.trace.parameter_count
    text = script.read_text()
    assert "Dense(10" in text
    script.write_text(text.replace("Dense(10", "Dense(20"))
    assert traces.of(mine) is before  # while somebody moves the controls
    traces.forget()
    assert until_traced(traces, mine).trace.parameter_count > before.trace.parameter_count


def test_few_traces_stay_in_memory(made: Traced, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "kept_trace", lambda *_, **__: made)
    traces = Traces()
    first = traces.of(GIVEN)
    for number in range(MOST_HELD):
        traces.of(replace(GIVEN, fit_number=number + 2))
    assert traces.of(GIVEN) is not first


def test_estimates_are_dropped_when_they_are_many(
    made: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_ESTIMATES", 2)
    traces = Traces()
    held = traces.of(GIVEN)
    for batch_size in (1, 2, 3):
        predictor_for(held, batch_size=batch_size, progress=silent).estimate(find("l4"))
    assert len(held.estimates or ()) == 3
    assert traces.of(GIVEN).estimates == {}
