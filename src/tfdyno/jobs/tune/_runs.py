"""The runs of a trial or of a proof: what is kept is taken, and whose fault a failure is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import TfdynoError
from tfdyno.jobs.bench import bench
from tfdyno.jobs.tune._place import difference
from tfdyno.jobs.tune.request import NodeLost

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tfdyno.core.measure.measurement import Environment, Measured, Measurement
    from tfdyno.core.messages.bench import MeasureHere
    from tfdyno.jobs.tune.request import Node


class RunFailed(Exception):  # noqa: N818  (it is what happened)
    """A run itself failed: it may be its settings. All else is of the place, and no trial's."""

    def __init__(self, error: TfdynoError) -> None:
        """Keep what the run said."""
        super().__init__(str(error))
        self.error = error

    @property
    def is_memory(self) -> bool:
        """Whether it ran out of memory."""
        return "ran out of memory" in str(self.error)


def benched(
    asked: bench.BenchRequest,
    node: Node,
    place: Callable[[], Environment],
    *,
    progress: Callable[[str], None],
    enough: Callable[[Sequence[Measurement]], bool],
    serves: Callable[[Sequence[Measurement]], bool] = bool,
) -> tuple[Measurement, ...]:
    """Return all runs of one recipe or of two, or what is kept of them from such a place.

    Args:
        asked: What is measured.
        node: The machine that makes the runs.
        place: Where that is; asked only where something is kept.
        progress: Called with a line at every stage.
        enough: As for ``bench.bench``.
        serves: Whether what is kept answers the question.

    Raises:
        RunFailed: A run failed.
        TfdynoError: The place did: a full card or disk, a lost node, results that cannot be kept.
    """
    kept = bench.kept_answer(asked)
    if kept and serves(kept) and not any(difference(one.environment, place()) for one in kept):
        return kept
    begun = bench.unfinished_answer(asked)
    joins = begun and not any(difference(one.environment, place(), is_one=True) for one in begun)
    failed: list[TfdynoError] = []

    def run(work: MeasureHere, heard: Callable[[str], None]) -> Measured:
        try:
            return node.run(work, heard)
        except NodeLost:
            raise
        except TfdynoError as error:
            failed.append(error)
            raise

    try:
        return bench.bench(
            replace(asked, resume=bool(joins)), progress=progress, enough=enough, run=run
        )
    except TfdynoError as error:
        if error not in failed:
            raise
        raise RunFailed(error) from error
    finally:
        node.ended()
