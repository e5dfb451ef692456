"""Find the fastest recipe of a workload by measured trials, chosen by Optuna, and prove it."""

from __future__ import annotations

import concurrent.futures
import contextlib
import threading
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.core.base.lock import lock_folder
from tfdyno.core.recipe.retreat import told_of
from tfdyno.core.train.tuning import Trial, Tuning
from tfdyno.jobs.bench import bench
from tfdyno.jobs.child.recipe_env import recipe_environment
from tfdyno.jobs.child.worker import silent
from tfdyno.jobs.holders.guard import Asked, announced, visible_to
from tfdyno.jobs.tune._look import StartInspection, look_of, this_machine
from tfdyno.jobs.tune._next import Left, drafted_at, judged
from tfdyno.jobs.tune._place import Places, difference
from tfdyno.jobs.tune._proof import settled
from tfdyno.jobs.tune._runs import RunFailed, benched
from tfdyno.jobs.tune._trial import as_it_ran, rates_of, with_measured
from tfdyno.jobs.tune.request import (
    Node,
    NodeLost,
    TuneRequest,
    check,
    check_kept,
    key_of,
    prepare_folder,
)
from tfdyno.model.measure import trial_judge as judge
from tfdyno.model.measure.steady_part import beside_s
from tfdyno.model.measure.trial_law import PROBABILITY, interval, is_behind, middle, moved_ratio
from tfdyno.store.tuning_study import LOCK_FILE, TuningStudy, check_optuna
from tfdyno.words.base.language import ENGLISH, answering, say
from tfdyno.words.base.stages import under
from tfdyno.words.bench.measurement import device_words
from tfdyno.words.train.tune_notes import note_words, uncompared_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from tfdyno.core.measure.measurement import Measurement
    from tfdyno.core.recipe.recipe import Recipe

MOST_TRIES = 2
"""The most tries of a trial whose run crashed or hung: once may be the machine's fault."""
MOST_AGAIN = 2
"""Recipes in a row that the sampler proposes again, before an untried one is taken instead."""


def tune(
    request: TuneRequest,
    *,
    progress: Callable[[str], None] = silent,
    engine: AbstractContextManager[Sequence[Node]] | None = None,
) -> Iterator[Tuning]:
    """Measure trials until enough are, or none is left, then prove the fastest.

    Every run is stored as soon as it ended, every trial as soon as it is judged: who is stopped
    between has the last answer, and the same question with ``resume`` goes on.

    Args:
        request: The workload, where to start, the space.
        progress: Called with a line at every stage.
        engine: Gives the nodes that measure, one trial at a time each, and is entered when all
            that can be refused was; None: this machine.

    Yields:
        What is known after the start, after each trial, and at last with the proof.

    Raises:
        UsageError: A setting is not possible, the workload fails, the folder is in use or holds
            another study, it was measured elsewhere, or there is nothing to resume.
        ToolError: The start's run crashed, or the place failed: a full card or disk, a lost node.
    """
    check_optuna()
    check(request)
    folder = request.folder
    prepare_folder(request)
    with lock_folder(folder, LOCK_FILE):
        study = TuningStudy(folder, seed=request.seed)
        check_kept(study.request, study.place, request)
        if engine is None:
            _look_for_room(request, progress)
        with engine or contextlib.nullcontext(()) as nodes:
            yield from _Tuner(request, study, progress, nodes).run()


def _look_for_room(request: TuneRequest, progress: Callable[[str], None]) -> None:
    """Tell who else is on the cards of this machine, or wait for them."""
    visible = visible_to(recipe_environment(request.recipe))
    asked = Asked(visible=visible, recipe=request.recipe, workload=request.workload,
                  on_jax=request.backend == "jax", waits=request.wait_free)  # fmt: skip
    announced(asked, tell=progress)


class _Tuner:
    """One session of a study."""

    def __init__(
        self,
        request: TuneRequest,
        study: TuningStudy,
        progress: Callable[[str], None],
        nodes: Sequence[Node],
    ) -> None:
        self._request, self._study, self._progress = request, study, progress
        self._lock = threading.Lock()
        self._trials: list[Trial] = []
        self._look: StartInspection | None = None
        self._is_local = not nodes
        self._nodes = tuple(nodes) or (this_machine(request),)
        self._left_out: tuple[str, ...] = ()
        self._places = Places(request, progress)

    def run(self) -> Iterator[Tuning]:
        """Run all of ``tune`` behind the checks."""
        self._study.left_running()
        self._trials = list(self._study.trials())
        self._begin()
        yield self._so_far()
        yield from self._one_by_one() if len(self._nodes) == 1 else self._together()
        yield self._proven()

    def _begin(self) -> None:
        """Measure the start, unless it is, on nodes that are alike, and open the study with it."""
        request, study = self._request, self._study
        if place := study.place:
            self._nodes = self._places.those_of(self._nodes, place)
        own = [one for one in self._trials if one.recipe == request.recipe]
        unfit = next((one for one in own if one.status == "not_fit" and one.ran), None)
        look = self._look = look_of(request, study.space, unfit, self._nodes[0],
                                    self._measure_start, self._places, self._progress)  # fmt: skip
        if not place:
            others, self._left_out = self._places.alike(self._nodes[1:], look.environment)
            self._nodes = (self._nodes[0], *others)
            study.begin(key_of(request), look.space, look.environment)
        if look.uncompared:
            why = uncompared_words(look.uncompared)
            self._progress(say("the proof will be of speed alone: {why}", why=why))
        if not own:
            study.enqueue(look.own_values)
            number, values = study.ask(look.space)
            start = replace(look.start, number=number, values=values)
            study.tell(start)
            self._trials.append(start)

    def _one_by_one(self) -> Iterator[Tuning]:
        """Run them on one machine, in this thread: Ctrl-C arrives here."""
        while trial := self._next(0):
            self._ended(self._measured(trial, self._nodes[0]))
            yield self._so_far()

    def _together(self) -> Iterator[Tuning]:
        """Run a trial on each node at a time; a lost node is no more, and its trial waits."""
        running: dict[concurrent.futures.Future[Trial], tuple[Node, Trial]] = {}
        free = list(self._nodes)
        pool = concurrent.futures.ThreadPoolExecutor(len(free))
        try:
            while True:
                while free and (trial := self._next(len(running))):
                    node = free.pop()
                    running[pool.submit(self._measured, trial, node)] = node, trial
                if not running:
                    break
                done, _ = concurrent.futures.wait(
                    running, return_when=concurrent.futures.FIRST_COMPLETED
                )
                for one in done:
                    node, trial = running.pop(one)
                    try:
                        self._ended(one.result())
                    except NodeLost as error:
                        self._lost(node, trial, error)
                    else:
                        free.append(node)
                    yield self._so_far()
        except BaseException:  # no run goes on that nobody waits for
            for node in self._nodes:
                node.stop()
            raise
        finally:
            pool.shutdown(cancel_futures=True)

    def _lost(self, node: Node, trial: Trial, error: NodeLost) -> None:
        """Go on without a node; raises what it said where it was the last one."""
        self._nodes = tuple(one for one in self._nodes if one is not node)
        if not self._nodes:
            raise error
        self._left_out = (*self._left_out, f"Node {node.name} was lost: {error}")
        self._progress(note_words(self._left_out[-1], ()))
        with self._lock:
            self._trials = [one for one in self._trials if one.number != trial.number]
            self._study.give_back(trial.number)

    def _measure_start(self, node: Node) -> tuple[Measurement, ...]:
        return self._bench(self._request.recipe, node, say("the start"), lambda _sides: False)

    def _bench(
        self,
        recipe: Recipe,
        node: Node,
        title: str,
        enough: Callable[[Sequence[Measurement]], bool],
    ) -> tuple[Measurement, ...]:
        """Return all runs of a recipe, or what is kept of them; raises as ``benched`` does."""
        asked = bench.BenchRequest(
            workload=self._request.workload,
            recipe=recipe,
            backend=self._request.backend,
            protocol=self._request.protocol,
            folder=self._request.folder,
            label="tune",
        )

        def told(line: str) -> None:
            self._progress(under(title, line))

        place = partial(self._places.of, node)
        return benched(asked, node, place, progress=told, enough=enough)

    def _next(self, running: int) -> Trial | None:
        """Return the next trial that has to be run; what need not be is told on the way."""
        look, again = self._look, 0
        assert look
        while sum(one.ran for one in self._trials) + running < self._request.trials:
            left = Left(look.space, self._trials)
            if not left.count:
                return None
            number, values = self._study.ask(look.space)
            trial = drafted_at(number, values, self._request, look, self._trials)
            found = judged(trial, self._trials)
            if found is None:
                with self._lock:
                    self._trials.append(trial)
                return trial
            self._study.tell(found)
            self._trials.append(found)
            again = again + 1 if found.status == "same" else 0
            if again >= MOST_AGAIN:
                self._study.enqueue(left.one(self._request.seed + number))
        return None

    def _measured(self, trial: Trial, node: Node) -> Trial:
        """Run a trial; what its runs fail by is told as its answer.

        Raises:
            TfdynoError: The place failed: the trial is asked for again in another session.
        """
        ran = replace(trial, ran=True, where=node.name)
        title = say("trial {number} ({changes})", number=trial.number, changes=_words(trial))
        stopped: list[str] = []

        def enough(sides: Sequence[Measurement]) -> bool:
            reason = self._behind(trial.number, sides[0])
            stopped[:] = [reason] if reason else []
            return bool(reason)

        for again in range(MOST_TRIES):
            try:
                (found,) = self._bench(trial.recipe, node, title, enough)
                break
            except RunFailed as failed:
                if failed.is_memory:
                    return replace(ran, status="not_fit", reason=str(failed))
                is_refused = isinstance(failed.error, UsageError)
                if is_refused or again + 1 == MOST_TRIES:
                    return replace(ran, status="failed", reason=str(failed), is_refused=is_refused)
                self._progress(say("{title}: once more, since {error}", title=title, error=failed))
        self._check_place(found)
        with self._lock:
            others = [one for one in self._trials if one.number != trial.number]
        assert self._look
        in_graph = self._look.own_values.get("execution") == "graph"
        told = as_it_ran(
            with_measured(ran, found), others, self._request.recipe, starts_in_graph=in_graph
        )
        if told.status == "same":
            return told
        if len(found.runs) < self._request.runs:
            reason = stopped[0] if stopped else self._behind(trial.number, found)
            return replace(told, status="pruned", reason=reason or "It was surely slower.")
        return told

    def _check_place(self, found: Measurement) -> None:
        """Refuse what was measured elsewhere than the start; raises ``ToolError``."""
        assert self._look
        if other := difference(self._look.environment, found.environment):
            raise ToolError("the machine is not as it was when the start was measured", why=other,
                            remedy="make it so, or give another --output")  # fmt: skip

    def _behind(self, number: int, so_far: Measurement) -> str:
        """Say why the trial is surely slower than the best by its runs so far; empty: it is not."""
        rates = rates_of(so_far)
        with self._lock:
            others = list(self._trials)
            self._study.report(number, len(rates), middle(rates))
        best = judge.best_of(others)
        if best is None or len(rates) >= self._request.runs:
            return ""
        moved = moved_ratio(tuple(map(beside_s, so_far.runs)), best.beside_s)
        if not is_behind(rates, best.rates_per_s, judge.spread_of(others), moved=moved):
            return ""
        slower = 1 - middle(rates) / middle(best.rates_per_s)
        return (
            f"After {len(rates)} of {self._request.runs} runs it is {slower:.0%} slower than "
            f"trial {best.number}, surely ({PROBABILITY:.0%})."
        )

    def _ended(self, trial: Trial) -> None:
        with self._lock:
            self._trials = [trial if one.number == trial.number else one for one in self._trials]
            self._study.tell(trial)

    def _so_far(self) -> Tuning:
        look, request = self._look, self._request
        assert look
        known = judge.spread_of(self._trials)
        trials = tuple(
            replace(one, interval_per_s=interval(one.rates_per_s, known))
            for one in self._trials if one.status != "running"
        )  # fmt: skip
        best = next(iter(judge.ranked(trials, request.recipe)), None) or judge.best_of(trials)
        with answering(ENGLISH):  # as the file of the answer has it
            device_name = device_words(look.environment)
        left = Left(look.space, self._trials).count
        return Tuning(
            reference=request.workload.reference,
            title=look.title,
            backend=request.backend,
            start=request.recipe,
            space=look.space,
            trials=trials,
            best=best.number if best else None,
            recipe=request.recipe,
            device=look.device,
            device_name=device_name,
            update_samples=look.update_samples,
            runs=request.runs,
            asked_trials=request.trials,
            left=left,
            ended="trials" if left else "covered",
            confidence_ratio=PROBABILITY,
            spread_ratio=known.log_ratio if known.is_known else 0.0,
            engine="local" if self._is_local else "ray",
            uncompared=look.uncompared,
            notes=(*look.notes, *self._left_out, *_retreats(trials)),
        )

    def _proven(self) -> Tuning:
        """Return the answer, the fastest set against the start on the first node that stays."""
        look = self._look
        assert look
        while True:
            node = self._nodes[0]
            try:
                return settled(self._request, self._so_far(), look, node,
                               partial(self._places.of, node), self._progress)  # fmt: skip
            except NodeLost:
                self._nodes = self._nodes[1:]
                if not self._nodes:
                    raise


def _retreats(trials: Sequence[Trial]) -> tuple[str, ...]:
    """Return a sentence for each trial that did not run as it was asked to."""
    return tuple(
        f"Trial {one.number}: {told_of(one.retreats)}"
        for one in trials if one.retreats and one.status != "same"
    )  # fmt: skip


def _words(trial: Trial) -> str:
    return ", ".join(f"{name}={value}" for name, value in trial.changes.items()) or say("the start")
