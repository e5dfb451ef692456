"""Find the fastest recipe of a workload by measured trials, chosen by Optuna, and prove it."""

from __future__ import annotations

import concurrent.futures
import contextlib
import random
import threading
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from tfdyno.core.errors import TfdynoError
from tfdyno.core.folder_lock import FolderLock
from tfdyno.core.tuning import Trial, Tuning
from tfdyno.jobs import bench
from tfdyno.jobs._tune_look import Look, look_of
from tfdyno.jobs._tune_proof import settled
from tfdyno.jobs._tune_question import (
    Node,
    NodeLost,
    Question,
    check,
    check_kept,
    key_of,
    prepare_folder,
)
from tfdyno.jobs._tune_trial import drafted, moved_ratio, rates_of, with_measured
from tfdyno.jobs._worker import silent
from tfdyno.model import trial_judge as judge
from tfdyno.model.steady_part import beside_s
from tfdyno.model.trial_law import PROBABILITY, interval, is_behind, middle
from tfdyno.store.tuning_study import TuningStudy, check_optuna
from tfdyno.view.bench_words import device_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tfdyno.core.measurement import Measurement
    from tfdyno.core.recipe import Recipe
    from tfdyno.core.search_space import Value

LOCK_FILE = ".tune.lock"
_SAME_PLACE = ("device", "cards", "cpu", "cpu_count", "tensorflow")
MOST_AGAIN = 2
"""Recipes in a row that the sampler proposes again, before an untried one is taken instead."""
MOST_LISTED = 4096
"""Combinations that are gone through to find an untried one."""


def tune(
    question: Question,
    *,
    progress: Callable[[str], None] = silent,
    nodes: Sequence[Node] = (),
) -> Iterator[Tuning]:
    """Measure trials until enough are, or none is left, then prove the fastest.

    Every run is stored as soon as it ended, every trial as soon as it is judged: who is stopped
    between has the last answer, and the same question with ``resume`` goes on.

    Args:
        question: The workload, where to start, the space.
        progress: Called with a line at every stage.
        nodes: That measure, one trial at a time each; none: this machine.

    Yields:
        What is known after the start, after each trial, and at last with the proof.

    Raises:
        UsageError: A setting is not possible, the workload fails, the folder is in use or holds
            another study, or there is nothing to resume.
        ToolError: A child of the start crashed, or the disk is full.
    """
    check_optuna()
    check(question)
    folder = question.folder
    prepare_folder(question)
    with contextlib.closing(FolderLock(folder, LOCK_FILE)):
        study = TuningStudy(folder, seed=question.seed)
        check_kept(study.question, question)
        yield from _Tuner(question, study, progress, nodes).run()


class _Tuner:
    """One sitting of a study."""

    def __init__(
        self,
        question: Question,
        study: TuningStudy,
        progress: Callable[[str], None],
        nodes: Sequence[Node],
    ) -> None:
        self._question, self._study, self._progress = question, study, progress
        self._lock = threading.Lock()
        self._trials: list[Trial] = []
        self._look: Look | None = None
        self._nodes = tuple(nodes)

    def run(self) -> Iterator[Tuning]:
        """All of ``tune`` behind the checks."""
        again = self._study.left_running()
        self._trials = list(self._study.trials())
        look = self._begun()
        yield self._so_far()
        for values in again:
            if values != look.own_values:  # the start is measured by now
                self._study.enqueue(values)
        yield from self._one_by_one(look) if len(look.nodes) == 1 else self._together(look)
        yield self._proven()

    def _one_by_one(self, look: Look) -> Iterator[Tuning]:
        """On one machine, in this thread: Ctrl-C arrives here."""
        while trial := self._next(0):
            self._ended(self._measured(trial, look.nodes[0]))
            yield self._so_far()

    def _together(self, look: Look) -> Iterator[Tuning]:
        """A trial on each node at a time."""
        running: dict[concurrent.futures.Future[Trial], Node] = {}
        free = list(look.nodes)
        pool = concurrent.futures.ThreadPoolExecutor(len(free))
        try:
            while True:
                while free and (trial := self._next(len(running))):
                    node = free.pop()
                    running[pool.submit(self._measured, trial, node)] = node
                if not running:
                    break
                done, _ = concurrent.futures.wait(
                    running, return_when=concurrent.futures.FIRST_COMPLETED
                )
                for one in done:
                    free.append(running.pop(one))
                    self._ended(one.result())
                    yield self._so_far()
        except BaseException:  # no run goes on that nobody waits for
            for node in look.nodes:
                node.stop()
            raise
        finally:
            pool.shutdown(cancel_futures=True)

    def _begun(self) -> Look:
        """Measure the start, unless it is, and open the study with it."""
        question = self._question
        look = self._look = look_of(question, self._study.space, self._nodes, self._measure_start,
                                    self._progress)  # fmt: skip
        if not self._study.question:
            self._study.begin(key_of(question), look.space)
        if not any(one.recipe == question.recipe for one in self._trials):
            self._study.enqueue(look.own_values)
            number, values = self._study.ask(look.space)
            start = replace(look.start, number=number, values=values)
            self._study.tell(start)
            self._trials.append(start)
        return look

    def _measure_start(self, node: Node) -> tuple[Measurement, ...]:
        return self._bench(self._question.recipe, node, "the start", lambda _sides: False)

    def _bench(
        self,
        recipe: Recipe,
        node: Node,
        title: str,
        enough: Callable[[Sequence[Measurement]], bool],
    ) -> tuple[Measurement, ...]:
        """All runs of a recipe, or what is kept of them."""
        asked = bench.Question(
            workload=self._question.workload,
            recipe=recipe,
            protocol=self._question.protocol,
            folder=self._question.folder,
            label="tune",
        )
        if kept := bench.kept_answer(asked):
            return kept
        asked = replace(asked, resume=bench.can_resume(asked))
        say = partial(_say, self._progress, title)
        try:
            return bench.bench(asked, progress=say, enough=enough, run=node.run)
        finally:
            node.ended()

    def _next(self, running: int) -> Trial | None:
        """The next trial that has to be run; what need not be is told on the way."""
        look, again = self._look, 0
        assert look
        while sum(one.ran for one in self._trials) + running < self._question.trials:
            open_ones = self._open(look)
            if not open_ones:
                return None
            number, values = self._study.ask(look.space)
            trial = self._drafted(number, values, look)
            found = self._judged(trial, look)
            if found is None:
                with self._lock:
                    self._trials.append(trial)
                return trial
            self._study.tell(found)
            self._trials.append(found)
            again = again + 1 if found.status == "same" else 0
            if again >= MOST_AGAIN:
                pick = random.Random(self._question.seed + number)
                self._study.enqueue(pick.choice(open_ones))
        return None

    def _open(self, look: Look) -> list[dict[str, Value]]:
        """Combinations that no trial had."""
        known = {tuple(one.values.items()) for one in self._trials}
        found = []
        for at, values in enumerate(look.space.combinations()):
            if at >= MOST_LISTED:
                break
            if tuple(values.items()) not in known:
                found.append(values)
        return found

    def _drafted(self, number: int, values: Mapping[str, Value], look: Look) -> Trial:
        return drafted(
            number,
            values,
            look.space,
            self._question.recipe,
            own_batch_size=look.batch_size,
            replicas=look.replicas,
            update_samples=look.update_samples,
            expected=lambda recipe, size: look.expected(recipe, size, self._trials),
        )

    def _judged(self, trial: Trial, look: Look) -> Trial | None:
        """The trial with why it is not run; None: it is to be run."""
        if trial.status == "failed":
            return trial
        if same := judge.as_before(trial, self._trials):
            twin = next(one for one in self._trials if one.number == same.same_as)
            return replace(
                trial, status="same", reason=same.reason, same_as=same.same_as,
                samples_per_s=twin.samples_per_s,
            )  # fmt: skip
        if reason := judge.refused(trial, self._trials):
            return replace(trial, status="failed", reason=reason)
        arms = [look.arm(one.recipe) for one in self._trials]
        certain = judge.certain(trial, self._trials, arms, look.arm(trial.recipe))
        if reason := certain or judge.unfit(trial.estimate):
            return replace(trial, status="not_fit", reason=reason)
        if reason := judge.hopeless(trial.estimate, self._trials):
            return replace(trial, status="hopeless", reason=reason)
        return None

    def _measured(self, trial: Trial, node: Node) -> Trial:
        """Run a trial; what fails is told as its answer."""
        ran = replace(trial, ran=True, where=node.name)
        title = f"trial {trial.number} ({_words(trial)})"
        stopped: list[str] = []

        def enough(sides: Sequence[Measurement]) -> bool:
            reason = self._behind(trial.number, sides[0])
            stopped[:] = [reason] if reason else []
            return bool(reason)

        try:
            (found,) = self._bench(trial.recipe, node, title, enough)
        except NodeLost:
            raise
        except TfdynoError as error:
            is_memory = "ran out of memory" in str(error)
            return replace(ran, status="not_fit" if is_memory else "failed", reason=str(error))
        told = with_measured(ran, found)
        if other := self._other_machine(found):
            return replace(told, status="failed", reason=other)
        if len(found.runs) < self._question.runs:
            reason = stopped[0] if stopped else self._behind(trial.number, found)
            return replace(told, status="pruned", reason=reason or "It was surely slower.")
        return told

    def _other_machine(self, found: Measurement) -> str:
        """What of the place differs from that of the start; empty: nothing does."""
        assert self._look
        first = self._look.environment
        for name in _SAME_PLACE if first else ():
            before, now = getattr(first, name), getattr(found.environment, name)
            if before != now:
                return f"It ran on another machine: {name} was {before} and is {now}."
        return ""

    def _behind(self, number: int, so_far: Measurement) -> str:
        """Why the trial is surely slower than the best by its runs so far; empty: it is not."""
        rates = rates_of(so_far)
        with self._lock:
            others = list(self._trials)
            self._study.report(number, len(rates), middle(rates))
        best = judge.best_of(others)
        if best is None or len(rates) >= self._question.runs:
            return ""
        moved = moved_ratio(tuple(map(beside_s, so_far.runs)), best.beside_s)
        if not is_behind(rates, best.rates_per_s, judge.spread_of(others), moved_ratio=moved):
            return ""
        slower = 1 - middle(rates) / middle(best.rates_per_s)
        return (
            f"After {len(rates)} of {self._question.runs} runs it is {slower:.0%} slower than "
            f"trial {best.number}, surely ({PROBABILITY:.0%})."
        )

    def _ended(self, trial: Trial) -> None:
        with self._lock:
            self._trials = [trial if one.number == trial.number else one for one in self._trials]
            self._study.tell(trial)

    def _so_far(self) -> Tuning:
        look, question = self._look, self._question
        assert look
        known = judge.spread_of(self._trials)
        trials = tuple(
            replace(one, interval_per_s=interval(one.rates_per_s, known))
            for one in self._trials if one.status != "running"
        )  # fmt: skip
        best = judge.best_of(trials)
        left = len(self._open(look))
        return Tuning(
            reference=question.workload.reference,
            title=look.title,
            start=question.recipe,
            space=look.space,
            trials=trials,
            best=best.number if best else None,
            recipe=question.recipe,
            device=look.device,
            device_name=device_words(look.environment) if look.environment else "",
            update_samples=look.update_samples,
            runs=question.runs,
            asked_trials=question.trials,
            left=left,
            ended="trials" if left else "covered",
            confidence_ratio=PROBABILITY,
            spread_ratio=known.log_ratio if known.is_known else 0.0,
            engine="ray" if self._nodes else "local",
            notes=look.notes,
        )

    def _proven(self) -> Tuning:
        """The answer, with the fastest set against the start."""
        look = self._look
        assert look
        return settled(
            self._question, self._so_far(), look.start, look.nodes[0],
            batch_size=look.batch_size, samples_per_epoch=look.samples_per_epoch,
            progress=self._progress,
        )  # fmt: skip


def _say(progress: Callable[[str], None], head: str, line: str) -> None:
    progress(f"{head}: {line}")


def _words(trial: Trial) -> str:
    return ", ".join(f"{name}={value}" for name, value in trial.changes.items()) or "the start"
