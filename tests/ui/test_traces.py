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
from tfdyno.ui.settings import APPLICATIONS
from tfdyno.ui.traces import MOST_HELD, MOST_WAITING, NotTraced, Traces

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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
        time.sleep(0.01)
        for one in named:
            with pytest.raises(NotTraced) as stage:
                traces.of(one)
            told.add(stage.value.stage)
    assert "waiting for another trace" in told
    go.set()
    assert all(until_traced(traces, one).trace == made.trace for one in named)
    assert most == [1]


class Tracing:
    """Stands for the child: it answers when the test lets it."""

    def __init__(self, answers: Sequence[Traced | Exception]) -> None:
        self.answers, self.made = list(answers), list[str]()
        self.began, self.go = threading.Semaphore(0), threading.Semaphore(0)

    def __call__(self, workload: Workload, **_: object) -> Traced:
        self.made.append(workload.reference)
        self.began.release()
        assert self.go.acquire(timeout=WAIT_S)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def wait(self) -> None:
        """Wait until a trace has begun."""
        assert self.began.acquire(timeout=WAIT_S)

    def set(self, monkeypatch: pytest.MonkeyPatch) -> Traces:
        monkeypatch.setattr(module, "trace", self)
        monkeypatch.setattr(module, "kept_trace", lambda *_, **__: None)
        return Traces()


def ask(traces: Traces, *workloads: Workload) -> None:
    for one in workloads:
        with pytest.raises(NotTraced):
            traces.of(one)


@pytest.mark.parametrize("error", [UsageError("no fit"), RuntimeError("odd")])
def test_a_failure_is_told_to_all_who_ask_and_tried_again_later(
    made: Traced, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    tracing = Tracing([error, made])
    traces = tracing.set(monkeypatch)
    tracing.go.release(2)
    for _ in range(3):  # the three answers of one page
        with pytest.raises((UsageError, ToolError), match=r"no fit|odd"):
            until_traced(traces, GIVEN)
    assert len(tracing.made) == 1
    monkeypatch.setattr(module, "TOLD_S", 0.0)
    assert until_traced(traces, GIVEN).trace == made.trace


def test_a_failure_is_tried_again_when_the_page_is_loaded_again(
    made: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracing = Tracing([UsageError("no fit"), made])
    traces = tracing.set(monkeypatch)
    tracing.go.release(2)
    with pytest.raises(UsageError):
        until_traced(traces, GIVEN)
    traces.forget()
    assert until_traced(traces, GIVEN).trace == made.trace


def test_failures_that_nobody_collected_do_not_fill_the_queue(
    made: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TOLD_S", 0.0)
    tracing = Tracing([*[UsageError("no fit")] * MOST_WAITING, made])
    traces = tracing.set(monkeypatch)
    for number in range(MOST_WAITING):
        ask(traces, replace(GIVEN, fit_number=number + 2))
    with pytest.raises(ToolError, match="traces are waited for"):
        traces.of(GIVEN)
    for _ in range(MOST_WAITING):
        tracing.wait()
        tracing.go.release()
    tracing.go.release()
    end_s = time.monotonic() + WAIT_S
    while traces._making:
        assert time.monotonic() < end_s
        time.sleep(0.01)
    assert until_traced(traces, GIVEN).trace == made.trace


def test_what_nobody_waits_for_any_more_is_not_traced(
    made: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracing = Tracing([made] * 3)
    traces = tracing.set(monkeypatch)
    first, left, wanted = (parse_reference(f"keras:{name}") for name in APPLICATIONS[:3])
    ask(traces, first)
    tracing.wait()
    ask(traces, left)
    ask(traces, wanted)
    traces._making[left, None].asked_s -= 2 * module.ABANDONED_S  # as if so long had passed
    tracing.go.release(3)
    assert until_traced(traces, wanted).trace == made.trace
    assert tracing.made == [first.reference, wanted.reference]


def test_the_last_that_was_asked_for_is_traced_first(
    made: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracing = Tracing([made] * 3)
    traces = tracing.set(monkeypatch)
    first, second, third = (parse_reference(f"keras:{name}") for name in APPLICATIONS[:3])
    ask(traces, first)
    tracing.wait()
    ask(traces, second, third)
    tracing.go.release(3)
    assert until_traced(traces, third).trace == made.trace
    assert tracing.made[:2] == [first.reference, third.reference]


def test_a_file_that_changed_while_it_was_traced_is_looked_at_again(
    made: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page was loaded again in the middle of a trace: what comes of it is of the old file."""
    newer = replace(made, trace=replace(made.trace, title="newer"))
    tracing = Tracing([made, newer])
    traces = tracing.set(monkeypatch)
    ask(traces, GIVEN)
    tracing.wait()
    traces.forget()
    tracing.go.release(2)
    assert until_traced(traces, GIVEN).trace.title == "newer"
    assert len(tracing.made) == 2


def test_what_is_held_is_answered_while_another_is_looked_for_on_the_disk(
    made: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    looking, go = threading.Event(), threading.Event()
    other = parse_reference("keras:VGG16")

    def slow_disk(workload: Workload, **_: object) -> Traced:
        if workload == other:
            looking.set()
            assert go.wait(WAIT_S)
        return made

    monkeypatch.setattr(module, "kept_trace", slow_disk)
    traces = Traces()
    traces.of(GIVEN)
    found: list[Traced] = []
    thread = threading.Thread(target=lambda: found.append(traces.of(other)))
    thread.start()
    assert looking.wait(WAIT_S)
    for call in (lambda: found.append(traces.of(GIVEN)), traces.forget):
        held = threading.Thread(target=call, daemon=True)
        held.start()
        held.join(WAIT_S)
        assert not held.is_alive()
    assert len(found) == 1
    go.set()
    thread.join(WAIT_S)
    assert len(found) == 2


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
