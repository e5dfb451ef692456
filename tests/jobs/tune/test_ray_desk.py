"""jobs/_tune_ray_desk: a trial goes on with what the command asks, and ends when it says so."""

from __future__ import annotations

import json
import pickle
import queue
import threading
import time
from typing import Any

from tfdyno.jobs.tune._ray_desk import Desk


def asked(run: int, trial: int) -> str:
    return json.dumps({"run": run, "trial": trial, "node": "a", "request": {"order": run}})


def ended(trial: int) -> str:
    return json.dumps({"ended": trial})


def test_a_trial_goes_on_run_by_run_until_it_is_ended() -> None:
    said: list[dict[str, Any]] = []
    desk = Desk(said.append)
    desk.listen([asked(0, 7), asked(1, 7), ended(7)])
    begun = desk.next_trial()
    assert begun
    assert (begun["trial"], begun["request"]) == (7, {"order": 0})
    assert desk.next_trial() is None  # the second run is of the same trial
    assert desk.judged(7, {"measured": "first"}) == {"order": 1}
    assert desk.judged(7, {"measured": "second"}) is None
    assert said == [{"run": 0, "measured": "first"}, {"run": 1, "measured": "second"}]


def test_the_judgement_is_waited_for() -> None:
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    desk = Desk(lambda _event: threading.Timer(0.05, lines.put, [asked(1, 0)]).start())
    threading.Thread(target=desk.listen, args=(iter(lines.get, ""),), daemon=True).start()
    lines.put(asked(0, 0))
    while desk.next_trial() is None:
        time.sleep(0.01)
    assert desk.judged(0, {}) == {"order": 1}
    lines.put("")


def test_when_nobody_asks_any_more_every_trial_ends() -> None:
    desk = Desk(lambda _event: None)
    desk.listen([asked(0, 0), asked(1, 1)])
    assert desk.is_closed
    assert desk.judged(0, {}) is None
    assert desk.judged(1, {}) is None


def test_a_lost_run_is_told_once_and_that_it_was_memory() -> None:
    said: list[dict[str, Any]] = []
    desk = Desk(said.append)
    desk.listen([asked(0, 0), asked(1, 1)])
    desk.lost(0, "the node died", is_memory=False)
    desk.lost(0, "the node has left the cluster", is_memory=False)
    desk.lost(1, "killed", is_memory=True)
    assert [(one["run"], one["error"]["kind"], one["error"]["why"]) for one in said] == [
        (0, "lost", "the node died"), (1, "tool", "the node ran out of memory"),
    ]  # fmt: skip


def test_ray_tune_may_keep_it_by_pickle() -> None:
    desk = Desk(print)
    desk.listen([asked(0, 0)])
    again = pickle.loads(pickle.dumps(desk))
    assert again.next_trial() is None
