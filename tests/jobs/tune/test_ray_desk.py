"""jobs/_tune_ray_desk: a trial goes on with what the command asks, and ends when it says so."""

from __future__ import annotations

import pickle
import queue
import threading
import time

from tfdyno.core.base.errors import Failure
from tfdyno.core.choose.workload import Workload
from tfdyno.core.measure.fix_proof import Agreement
from tfdyno.core.messages.tune import (
    LOST,
    LookHere,
    NodeAnswer,
    NodeWork,
    RunDone,
    RunWanted,
)
from tfdyno.core.messages.wire import encode
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.jobs.tune._ray_desk import Desk

FOUND = NodeAnswer(
    found=Agreement(agrees=True, difference_ratio=0.0, tolerance_ratio=0.1, why="the same")
)


def work(run: int) -> NodeWork:
    named = Workload(reference=f"{run}.py", kind="script")
    return NodeWork(work=LookHere(workload=named, recipe=Recipe()), folder=".", on_cpu=True)


def asked(run: int, trial: int) -> str:
    return encode(RunWanted(run=run, trial=trial, node="a", work=work(run)))


def ended(trial: int) -> str:
    return encode(RunWanted(trial=trial))


def test_a_trial_goes_on_run_by_run_until_it_is_ended() -> None:
    said: list[RunDone] = []
    desk = Desk(said.append)
    desk.listen([asked(0, 7), asked(1, 7), ended(7)])
    begun = desk.next_trial()
    assert begun
    assert (begun.trial, begun.work) == (7, work(0))
    assert desk.next_trial() is None  # the second run is of the same trial
    assert desk.judged(7, FOUND) == work(1)
    assert desk.judged(7, FOUND) is None
    assert said == [RunDone(run=run, answer=FOUND) for run in (0, 1)]


def test_the_judgement_is_waited_for() -> None:
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    desk = Desk(lambda _event: threading.Timer(0.05, lines.put, [asked(1, 0)]).start())
    threading.Thread(target=desk.listen, args=(iter(lines.get, ""),), daemon=True).start()
    lines.put(asked(0, 0))
    while desk.next_trial() is None:
        time.sleep(0.01)
    assert desk.judged(0, FOUND) == work(1)
    lines.put("")


def test_when_nobody_asks_any_more_every_trial_ends() -> None:
    desk = Desk(lambda _event: None)
    desk.listen([asked(0, 0), asked(1, 1)])
    assert desk.is_closed
    assert desk.judged(0, FOUND) is None
    assert desk.judged(1, FOUND) is None


def test_a_lost_run_is_told_once_and_that_it_was_memory() -> None:
    said: list[RunDone] = []
    desk = Desk(said.append)
    desk.listen([asked(0, 0), asked(1, 1)])
    desk.lost(0, "the node died", is_memory=False)
    desk.lost(0, "the node has left the cluster", is_memory=False)
    desk.lost(1, "killed", is_memory=True)
    failures = [
        Failure(kind=kind, what="Ray has lost the run", why=why)
        for kind, why in ((LOST, "the node died"), ("tool", "the node ran out of memory"))
    ]
    assert said == [
        RunDone(run=run, answer=NodeAnswer(found=one)) for run, one in enumerate(failures)
    ]


def test_ray_tune_may_keep_it_by_pickle() -> None:
    desk = Desk(print)
    desk.listen([asked(0, 0)])
    again = pickle.loads(pickle.dumps(desk))
    assert again.next_trial() is None
