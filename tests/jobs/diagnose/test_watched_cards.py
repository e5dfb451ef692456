"""jobs/_watched_cards: what NVML tells beside a real child becomes facts of its steady steps."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from tests.jobs.records import CARD
from tests.probe.fake_nvml import FakeNvml, NoNvml, nvml_is
from tests.view.diagnoses import FACTS
from tests.view.trainings import ENVIRONMENT

from tfdyno.core.messages.diagnose import SteadySpan
from tfdyno.jobs.diagnose.diagnose import LEAST_POINTS, UNREAD, card_sampler, with_cards
from tfdyno.probe.telemetry.telemetry import Sampler

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.measure.measurement import Environment
    from tfdyno.core.measure.step_facts import StepFacts

PLACE = replace(ENVIRONMENT, device="gpu", cards=(CARD, replace(CARD, name="the other one")))
ON_CARD = replace(FACTS, device="gpu")
OTHERS_BYTES = (50 << 30, 5 << 30)


class Shared(FakeNvml):
    """Two cards; on each there is a stranger beside those that use both."""

    def __init__(self) -> None:
        super().__init__(count=2)

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[Any]:  # noqa: N802
        stranger = SimpleNamespace(pid=1, usedGpuMemory=OTHERS_BYTES[handle])
        return [stranger, *super().nvmlDeviceGetComputeRunningProcesses(handle)]


class Mute(FakeNvml):
    """A card that is counted still, and answers nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.lost = {0}

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index


@contextmanager
def watched(nvml: FakeNvml) -> Iterator[Sampler]:
    """A sampler that has seen enough of a child which still runs."""
    words = [sys.executable, "-c", "import time; time.sleep(30)"]
    with (
        nvml_is(nvml),
        Sampler(interval_s=0.02, visible="0,1") as sampler,
        subprocess.Popen(words) as process,
    ):
        try:
            sampler.watch(process.pid)
            nvml.processes = [(process.pid, 20 << 30)]
            wait(sampler, 0.0)
            yield sampler
        finally:
            process.kill()


def wait(sampler: Sampler, since_s: float) -> None:
    until_s = time.monotonic() + 60
    while len(sampler.telemetry(since_s).at_s) < LEAST_POINTS and time.monotonic() < until_s:
        time.sleep(0.02)


def told(
    sampler: Sampler | None, *used: int, since_s: float = 0.0, place: Environment = PLACE
) -> StepFacts:
    steady = SteadySpan(began_s=since_s, ended_s=time.monotonic(), cards=used)
    return with_cards(ON_CARD, steady, sampler, place)


def test_the_card_that_trains_is_told_without_the_training_itself() -> None:
    with watched(Shared()) as sampler:
        (card,) = told(sampler, 1).cards
        both = told(sampler, 0, 1).cards
    assert (card.name, card.power_w) == ("the other one", 612.345)
    assert card.busy_ratio == pytest.approx(0.97)
    assert (card.lowered_ratio, card.reasons) == (1.0, ("software power cap",))
    assert (card.clock_hz, card.clock_limit_hz) == (1.755e9, 2.0e9)
    assert [one.other_memory_bytes for one in both] == list(OTHERS_BYTES)


def test_what_a_card_did_before_the_steady_steps_is_left_out() -> None:
    nvml = FakeNvml()
    with watched(nvml) as sampler:
        nvml.reasons = 0
        since_s = time.monotonic() + 0.5  # a point may be under way
        wait(sampler, since_s)
        assert told(sampler, 0).cards[0].lowered_ratio > 0.0
        assert told(sampler, 0, since_s=since_s).cards[0].lowered_ratio == 0.0
        assert told(sampler, 0, since_s=time.monotonic()) == ON_CARD  # too short to tell


def test_errors_that_are_corrected_count_only_while_steps_run() -> None:
    nvml = FakeNvml()
    nvml.errors = {0: 7, 1: 2}
    with watched(nvml) as sampler:
        before = told(sampler, 0).cards[0]
        nvml.errors[0] = 19
        wait(sampler, time.monotonic() + 0.5)
        after = told(sampler, 0).cards[0]
    assert (before.corrected_errors, before.uncorrected_errors) == (0, 2)
    assert (after.corrected_errors, after.uncorrected_errors) == (12, 2)


@pytest.mark.parametrize("nvml", [NoNvml(), Mute()])
def test_a_card_that_does_not_answer_is_one_note(nvml: FakeNvml) -> None:
    with watched(nvml) as sampler:
        found = told(sampler, 0)
    assert found == told(None, 0) == replace(ON_CARD, notes=(*FACTS.notes, UNREAD))


def test_what_a_divided_card_tells_is_not_of_the_slice_that_trains() -> None:
    divided = replace(PLACE, cards=(replace(CARD, mig=True),))
    with watched(FakeNvml()) as sampler:
        assert told(sampler, 0, place=divided).notes[-1] == UNREAD


def test_without_a_card_nothing_is_watched_and_nothing_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for machine in (NoNvml(), FakeNvml(count=0), None):
        monkeypatch.setattr("tfdyno.probe.cards.cards.bindings", lambda found=machine: found)
        assert card_sampler(None) is None
    monkeypatch.setattr("tfdyno.probe.cards.cards.bindings", FakeNvml)
    assert card_sampler("-1") is None
    assert card_sampler("0") is not None
    assert with_cards(FACTS, None, None, ENVIRONMENT) == FACTS
    assert told(None) == ON_CARD  # no card that TensorFlow uses
