"""Measure the input pipeline of a workload by itself, and say what feeds a card with it."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.catalog.assumptions import assumed
from tfdyno.catalog.gpus import find
from tfdyno.core.base.clock import today
from tfdyno.core.base.codec import from_builtins
from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.hardware import Gpu
from tfdyno.core.choose.workload import Workload
from tfdyno.core.deploy.dataset import READER
from tfdyno.core.measure.feed import Feed, FeedNeed
from tfdyno.core.measure.feed_document import FeedReport
from tfdyno.core.messages.data import DATA, MeasureData, MeasuredData, Plan
from tfdyno.jobs.child.recipe_env import environment_of
from tfdyno.jobs.child.worker import run_child, silent
from tfdyno.jobs.choose import estimate
from tfdyno.jobs.choose.trace import interpreter
from tfdyno.model.measure import feed_law, feed_pace
from tfdyno.model.measure.feeding import exponent_of, need_of
from tfdyno.store.dataset_folder import DatasetFolder

if TYPE_CHECKING:
    from collections.abc import Callable

START_LIMIT_S = 3600.0
"""The time for imports, the user's code up to its training, and the first batch."""
BESIDE_LIMIT_S = 900.0
"""The time for all that is measured beside the rounds; this only ends what hangs for ever."""
ROUND_LIMIT_S = 60.0
"""The time for one round beyond its own length: a batch may take long."""
MOST_ROUNDS = 100
STOP_GRACE_S = 20.0
"""The time after Ctrl-C for the child to hand over what it has measured."""
READER_FUNCTION = "read"
"""The function of the module beside a converted data set."""
_MAKE_IT = "make it with tfdyno data bench … --output FILE.json"
_BACKEND = {"KERAS_BACKEND": "tensorflow"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DataBenchRequest:
    """Whose data is measured, and how long."""

    workload: Workload
    batch_size: int = 0
    """0: as the data has it."""
    rounds: int = 5
    """The rounds with each number of CPUs."""
    seconds_s: float = 1.0
    """The time of a round."""
    cold: bool = True
    """Whether the system may be asked to forget the files."""
    gpus: tuple[Gpu, ...] = ()
    """That are to be fed."""
    precision: str = ""
    """The precision of the step on them; empty: the script's own."""


def reference_of(text: str) -> str:
    """Return a workload as typed; of a converted data set's folder, the function that reads it.

    Raises:
        UsageError: It is a folder without a data set, or one whose path has a colon.
    """
    folder = Path(text)
    if not folder.is_dir():
        return text
    DatasetFolder(folder).read()
    if ":" in str(folder):
        raise UsageError(f"the path {folder} has a colon",
                         why="that parts a file from its function",
                         remedy="go into it, and give . as the folder")  # fmt: skip
    return f"{folder / READER}:{READER_FUNCTION}"


def check(request: DataBenchRequest) -> None:
    """Refuse a question that has no answer, before any work; raises ``UsageError``."""
    if request.workload.has_no_data:
        what = f"{request.workload.reference} brings no data"
        raise UsageError(what, why="there is no input pipeline to measure",
                         remedy="give a script, file.py:function or a task")  # fmt: skip
    if request.rounds > MOST_ROUNDS:
        raise UsageError(f"{request.rounds:,} rounds are too many", remedy=f"{MOST_ROUNDS} at most")
    if request.gpus:
        estimate.check(_step(request))


def measured(
    request: DataBenchRequest,
    *,
    progress: Callable[[str], None] = silent,
    output: Callable[[str], None] = silent,
) -> Feed:
    """Measure the pipeline; where Ctrl-C ends it, what was measured until then.

    Args:
        request: Whose data, and how long.
        progress: Called with a line at every stage.
        output: Called with every line that the user's code prints.

    Raises:
        UsageError: The workload brings no data, or the user's code fails.
        ToolError: The child crashed.
    """
    check(request)
    plan = Plan(rounds=request.rounds, seconds_s=request.seconds_s, cold=request.cold)
    each_s = request.seconds_s + ROUND_LIMIT_S
    found = run_child(
        DATA,
        MeasureData(workload=request.workload, plan=plan, batch_size=request.batch_size),
        progress=progress,
        timeout_s=START_LIMIT_S + BESIDE_LIMIT_S + 8 * request.rounds * each_s,
        python=interpreter(request.workload),
        env=_BACKEND,
        doing=f"measuring the data of {request.workload.reference}",
        output=output,
        stop_grace_s=STOP_GRACE_S,
    )
    return placed(found)


def placed(found: MeasuredData) -> Feed:
    """Return what the child hands over, with where and when it was measured."""
    return replace(
        found.feed,
        title=_title(found.feed),
        environment=environment_of(found.software, _BACKEND),
        measured_on=today().isoformat(),
    )


def _title(feed: Feed) -> str:
    """A converted data set is called by its folder, not by the function that reads it."""
    place, _, name = feed.reference.rpartition(":")
    is_ours = Path(place).name == READER and name == READER_FUNCTION
    return Path(place).resolve().parent.name if is_ours else feed.title


def needs(
    feed: Feed, request: DataBenchRequest, *, progress: Callable[[str], None] = silent
) -> tuple[FeedNeed, ...]:
    """Return what each card needs of the pipeline, by the quick estimate of its step.

    Raises:
        UsageError: The workload cannot be traced.
        ToolError: The trace failed.
    """
    if not request.gpus:
        return ()
    progress("estimating the step")
    answer = estimate.estimate(_step(request), progress=progress)
    law, loss_ratio = feed_law.law_of(feed), assumed().feed_loss_ratio
    return tuple(
        need_of(law, one, gpu_name=find(one.gpu).name, loss_ratio=loss_ratio)
        for one in answer.estimates
    )


def _step(request: DataBenchRequest) -> estimate.EstimateRequest:
    return estimate.EstimateRequest(
        workload=request.workload,
        gpus=request.gpus,
        batch_size=request.batch_size,
        precision=request.precision,
        route="quick",
    )


def told(feed: Feed, needed: tuple[FeedNeed, ...] = ()) -> FeedReport:
    """Return a measurement with its figures, for who shows it.

    Raises:
        UsageError: No round gave a sample.
    """
    if not feed_law.standing(feed):
        raise UsageError(f"{feed.reference} has no round with samples", remedy="measure it again")
    law = feed_law.law_of(feed)
    cold, first = (feed_law.rounds_of(feed, kind) for kind in ("cold", "first"))
    later = feed_law.rounds_of(feed, "warm")
    read = sum(one.read_bytes for one in cold)
    grows = exponent_of(law)
    rate = feed_law.over(feed_law.full(feed), lambda one: one.samples / one.seconds_s)
    assert rate  # a round that stands has samples
    return FeedReport(
        feed=feed,
        law=law,
        stages=feed_law.stage_rates(feed, law),
        pace=feed_pace.pace(feed, law),
        rate_per_s=rate,
        other_ratio=feed_law.other_ratio(feed),
        busy_cpus=feed_law.busy_cpus(feed),
        read_bytes_per_s=feed_pace.read_bytes_per_s(feed),
        disk_per_s=feed_pace.disk_per_s(feed),
        cold_per_s=feed_law.over(cold, lambda one: one.samples / one.seconds_s),
        cold_disk_ratio=sum(one.disk_bytes for one in cold) / read if read else 0.0,
        first_per_s=feed_law.over(first, lambda one: one.samples / one.seconds_s)
        if later
        else None,
        grows=grows.best if grows else None,
        needs=needed,
    )


def read_feed(path: Path) -> Feed:
    """Return what ``data bench`` wrote or printed as JSON.

    Raises:
        UsageError: The file cannot be read, is of another kind, or holds no round with samples.
    """
    try:
        raw = json.loads(path.read_bytes())
    except OSError as error:
        raise UsageError(f"cannot read {path}", why=error.strerror or str(error)) from None
    except ValueError:
        raise UsageError(f"{path} is not JSON", remedy=_MAKE_IT) from None
    if not isinstance(raw, dict) or "feed" not in raw:
        raise UsageError(f"{path} holds no measured input pipeline", remedy=_MAKE_IT)
    feed = from_builtins(raw["feed"], Feed, where=str(path))
    if not feed_law.standing(feed):
        raise UsageError(f"{path} holds no round with samples", remedy=_MAKE_IT)
    return feed
