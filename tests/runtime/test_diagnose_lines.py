"""Where a thread of the user's own spends its time."""

from __future__ import annotations

import time
from pathlib import Path

from tfdyno.runtime.diagnose_lines import LineSampler

NAME = Path(__file__).name


def _sleeps() -> int:
    time.sleep(0.3)
    return _sleeps.__code__.co_firstlineno + 1


def test_the_line_that_takes_the_time_is_told_with_its_seconds() -> None:
    sampler = LineSampler(lambda: True, every_s=0.005)
    sampler.start()
    line = _sleeps()
    found = sampler.stop()
    assert max(found, key=found.__getitem__) == f"{NAME}:{line}"
    assert 0.15 < found[f"{NAME}:{line}"] < 1.0


def test_what_does_not_count_is_not_told() -> None:
    sampler = LineSampler(lambda: False, every_s=0.005)
    sampler.start()
    _sleeps()
    assert sampler.stop() == {}


def test_a_loop_of_keras_is_not_the_users_line() -> None:
    def fit() -> None:
        time.sleep(0.1)

    sampler = LineSampler(lambda: True, every_s=0.005)
    sampler.start()
    fit()
    assert f"{NAME}:{fit.__code__.co_firstlineno + 1}" not in sampler.stop()


def test_stopping_without_a_start_gives_nothing() -> None:
    assert LineSampler(lambda: True).stop() == {}
