"""Where a thread of the user's own spends its time."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

from tfdyno.runtime.diagnose.lines import LineSampler

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
    assert sampler.texts[f"{NAME}:{line}"] == "time.sleep(0.3)"


def test_what_does_not_count_is_not_told() -> None:
    sampler = LineSampler(lambda: False, every_s=0.005)
    sampler.start()
    _sleeps()
    assert sampler.stop() == {}


def test_a_loop_of_keras_is_not_the_users_line() -> None:
    installed = "/lib/site-packages/keras/trainer.py"
    names: dict[str, Any] = {}
    exec(compile("import time\ndef fit():\n    time.sleep(0.1)\n", installed, "exec"), names)
    sampler = LineSampler(lambda: True, every_s=0.005)
    sampler.start()
    names["fit"]()
    assert sampler.stop() == {}


def test_a_fit_of_the_users_own_has_lines() -> None:
    def fit() -> None:
        time.sleep(0.2)

    sampler = LineSampler(lambda: True, every_s=0.005)
    sampler.start()
    fit()
    assert sampler.stop()[f"{NAME}:{fit.__code__.co_firstlineno + 1}"] > 0.1


def test_stopping_without_a_start_gives_nothing() -> None:
    assert LineSampler(lambda: True).stop() == {}


def test_a_thread_that_computes_is_told_with_its_line_and_one_that_waits_is_idle() -> None:
    ended = threading.Event()

    def counts() -> None:
        while not ended.is_set():
            sum(range(2000))

    def sleeps() -> None:
        while not ended.is_set():
            time.sleep(0.05)

    threads = [threading.Thread(target=one, daemon=True) for one in (counts, sleeps)]
    for one in threads:
        one.start()
    sampler = LineSampler(lambda: True, every_s=0.005)
    sampler.start()
    time.sleep(0.5)
    sampler.stop()
    ended.set()
    line = counts.__code__.co_firstlineno
    own = [one for one in sampler.threads if one[0].startswith(NAME)]  # others may be there too
    (first, cpus), (_, idle_cpus) = own
    assert first in {f"{NAME}:{line + 1}", f"{NAME}:{line + 2}"}
    assert cpus > 0.01  # of a CPU, which others may take
    assert idle_cpus < cpus / 2
