"""One run of a bench: a fresh child process, watched from outside, read into a ``BenchRun``."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import ToolError
from tfdyno.core.base.flags import is_file_name
from tfdyno.core.base.lasting import Lasting
from tfdyno.core.base.units import DAY_S, HOUR_S, format_bytes
from tfdyno.core.measure.measurement import BenchRun, Measured, Protocol
from tfdyno.core.messages.bench import RUN, MeasuredRun, MeasureHere, MeasureRun
from tfdyno.core.recipe.retreat import told_of
from tfdyno.core.train.jax_plan import JaxPlan
from tfdyno.engines.process.process import ChildCrash
from tfdyno.jobs.child.recipe_env import environment_of, recipe_environment
from tfdyno.jobs.child.worker import run_child, silent
from tfdyno.jobs.choose.trace import interpreter
from tfdyno.jobs.compiled.flags import own_choice
from tfdyno.jobs.compiled.keeping import Compiling, Kept, with_programs
from tfdyno.jobs.holders.found_cards import count_cards
from tfdyno.jobs.holders.guard import Asked, guarded, visible_to
from tfdyno.jobs.retreat.retreating import Trial, Work, retreating
from tfdyno.jobs.train.jax_run import jax_environment
from tfdyno.probe.telemetry.telemetry import Sampler

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tfdyno.core.measure.software import Backend
    from tfdyno.core.recipe.recipe import Recipe

START_LIMIT_S = HOUR_S
"""The time for imports, the user's code up to ``fit`` and the first step, compiled."""
EPOCHS_LIMIT_S = 30 * DAY_S
"""Whole epochs take what they take; this only ends what hangs for ever."""


Measuring = Callable[[MeasureHere, Callable[[str], None]], Measured]
"""Makes one run, as ``measured`` does."""
MEMORY_LOOK_S = 0.05
"""Between two looks: a step that fills a gigabyte takes longer."""


def measured(
    asked: MeasureHere, progress: Callable[[str], None], *, keeps_programs: bool = False
) -> Measured:
    """Run the workload once in a fresh process; in another, a step back, where XLA fails in it.

    Args:
        asked: What to run.
        progress: Called with a line at every stage of the child.
        keeps_programs: Whether compiled programs of earlier processes are taken, and kept for later
            ones. The first step says nothing about compiling then: the run tells so.

    Raises:
        UsageError: The workload failed, or cannot take a setting.
        CompilerError: XLA fails to compile it, and no step back is left or may be taken.
        ToolError: The child crashed, hung or ran out of memory.
    """
    work = Work(
        subject=asked.workload.reference, recipe=asked.recipe, had=asked.had,
        has_graph=asked.backend == "tensorflow",
        tell=lambda line: progress(Lasting(line)),
    )  # fmt: skip
    found, retreats = retreating(lambda trial: _once(asked, trial, progress, keeps_programs), work)
    notes = (*found.task.notes, *filter(None, [told_of(retreats)]))
    return replace(found, task=replace(found.task, retreats=retreats, notes=notes))


def _once(
    asked: MeasureHere, trial: Trial, progress: Callable[[str], None], keeps_programs: bool
) -> Measured:
    """Make one try, under the steps back that were taken."""
    variables = trial.variables(_environment(asked, trial.recipe))
    compiling = Compiling(
        workload=asked.workload,
        recipe=trial.recipe,
        framework=asked.backend,
        python=interpreter(asked.workload),
        variables=variables,
        doing=f"bench {asked.workload.mode} {asked.protocol.data}",
    )

    def run(programs: Mapping[str, str], heard: Callable[[str], None]) -> Measured:
        return _measured(replace(asked, recipe=trial.recipe), variables, programs, heard)

    if keeps_programs:
        found, kept = with_programs(compiling, run, progress)
    else:
        found, kept = run({}, progress), Kept()
    notes = (*found.task.notes, *_warmed(asked.backend, {**os.environ, **variables}))
    return replace(
        found,
        run=replace(found.run, order=asked.order, programs_kept=kept.is_loaded),
        task=replace(found.task, notes=notes),
    )


def _environment(asked: MeasureHere, recipe: Recipe) -> dict[str, str]:
    """Return the variables of the recipe, and those of the backend over them."""
    variables = recipe_environment(recipe)
    return variables | (jax_environment(JaxPlan(), recipe) if asked.backend == "jax" else {})


def _warmed(backend: Backend, variables: Mapping[str, str]) -> tuple[str, ...]:
    """A cache of the user's own makes first steps shorter than they are without."""
    if (name := own_choice(backend, variables)) and not is_file_name(variables[name]):
        return (f"{name} names a cache of compiled programs: first steps may be without compiling",)
    return ()


def _measured(
    asked: MeasureHere,
    variables: dict[str, str],
    programs: Mapping[str, str],
    progress: Callable[[str], None],
) -> Measured:
    recipe, protocol, doing = asked.recipe, asked.protocol, asked.doing
    memory = MemoryWatch(asked.limit_bytes)

    def watch(pid: int) -> None:
        sampler.watch(pid)
        memory.watch(pid)

    visible, on_jax = visible_to(variables), asked.backend == "jax"
    with (
        guarded(Asked(visible=visible, recipe=recipe, on_jax=on_jax), tell=silent) as room,
        memory.told(doing),
        Sampler(visible=visible) as sampler,
    ):
        found = run_child(
            RUN,
            MeasureRun(
                workload=asked.workload,
                recipe=recipe,
                protocol=protocol,
                backend=asked.backend,
                first_weights=asked.first_weights,
                seen_gpus=count_cards(visible=visible) if on_jax else 0,
            ),
            progress=progress,
            timeout_s=START_LIMIT_S + (EPOCHS_LIMIT_S if protocol.epochs else protocol.most_s),
            python=interpreter(asked.workload),
            env={**variables, **room.variables, **programs},
            doing=doing,
            hide_gpu=False,
            started=watch,
        )
    return Measured(
        run=replace(_run(found, protocol, doing), telemetry=sampler.telemetry()),
        task=found.task,
        environment=environment_of(found.software, variables),
    )


def _run(found: MeasuredRun, protocol: Protocol, doing: str) -> BenchRun:
    """Return the child's numbers, of which only possible ones pass."""
    made_up = protocol.data.startswith("synthetic")
    run = replace(found.run, metrics={} if made_up else _finite(found.run.metrics))
    if not run.steady_s or any(not 0 < sample < math.inf for sample in run.samples_s):
        raise ToolError(f"{doing} measured no step", why="it ended too early",
                        remedy="give it more data or more time with --seconds")  # fmt: skip
    return run


def _finite(metrics: Mapping[str, float]) -> dict[str, float]:
    """Return metrics that are numbers: a loss of NaN is told in the notes, JSON has none."""
    return {name: value for name, value in metrics.items() if math.isfinite(value)}


class MemoryWatch:
    """Ends a process whose resident memory, with that of its children, is over the limit."""

    def __init__(self, limit_bytes: int) -> None:
        """Watch nothing yet; a limit of 0 is none."""
        self._limit_bytes = limit_bytes
        self._over = threading.Event()
        self._seen_bytes = 0

    def watch(self, pid: int) -> None:
        """Begin with this process."""
        if self._limit_bytes:
            threading.Thread(target=self._look, args=(pid,), daemon=True).start()

    @contextlib.contextmanager
    def told(self, doing: str) -> Iterator[None]:
        """Say, until the block ends, that a run was killed for its memory.

        Raises:
            ToolError: It took more than the limit.
        """
        try:
            yield
        except ChildCrash:
            if not self._seen_bytes:
                raise
            raise ToolError(
                f"{doing} ran out of memory",
                why=f"it took {format_bytes(self._seen_bytes)}, and the limit is "
                    f"{format_bytes(self._limit_bytes)}",
            ) from None  # fmt: skip
        finally:
            self._over.set()

    def _look(self, pid: int) -> None:
        import psutil

        with contextlib.suppress(psutil.Error):
            process = psutil.Process(pid)
            while not self._over.wait(MEMORY_LOOK_S):
                held_bytes = _resident_bytes(process)
                if held_bytes > self._limit_bytes:
                    self._seen_bytes = held_bytes
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                    return


def _resident_bytes(process: object) -> int:
    """Sum over a process and what it has started; what ends meanwhile counts nothing."""
    import psutil

    assert isinstance(process, psutil.Process)
    total = 0
    for one in (process, *process.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):
            total += int(one.memory_info().rss)
    return total
