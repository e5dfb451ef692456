"""Every call of ``fit`` in a script, traced one by one, so that their hours can be added up."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import TfdynoError, UsageError
from tfdyno.core.base.units import HOUR_S
from tfdyno.core.choose.workload import NO_FIT, OTHER_FITS, Workload
from tfdyno.jobs.choose._candidates import card_of, on_its_machines
from tfdyno.jobs.choose._request import Request, run_of
from tfdyno.jobs.choose.predict import Predictor, shared_batch
from tfdyno.model.choose.cost import steps_of
from tfdyno.words.base.language import say
from tfdyno.words.choose.advice import card
from tfdyno.words.choose.fits import added_fits, left_out_fit, unseen_fits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tfdyno.core.choose.advice import Candidate, Run
    from tfdyno.core.choose.hardware import Gpu
    from tfdyno.core.choose.workload import Trace
    from tfdyno.jobs.choose.market import Supply

MOST_FITS = 12
"""Each takes a trace of seconds; a search over settings may have hundreds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fits:
    """The calls of ``fit`` whose length is known, and what of others is told."""

    counted: tuple[tuple[int, Predictor], ...]
    """By their number, in order; empty: one call is answered for as if it were alone."""
    notes: tuple[str, ...] = ()

    def longest(self, request: Request, gpu: Gpu) -> Predictor:
        """Return the call whose steps take longest: of its step the answer tells."""
        return max((one for _, one in self.counted), key=lambda one: _steps_h(request, one, gpu, 1))

    def beside(self, request: Request, main: Predictor) -> list[tuple[Predictor, Run]]:
        """Return the other calls with their lengths."""
        return [(one, _run_of(request, one)) for _, one in self.counted if one is not main]

    def whole(self, request: Request, run: Run) -> Run:
        """Return the run of all of them; ``run`` where one is answered for."""
        runs = [_run_of(request, one) for _, one in self.counted]
        if len(runs) < 2:
            return run
        return replace(
            run,
            fits=len(runs),
            steps=sum(one.steps for one in runs),
            samples=sum(one.samples for one in runs),
            epochs=sum(max(1, one.epochs) for one in runs),
            validation_passes=sum(one.validation_passes for one in runs),
        )

    def told(
        self, request: Request, market: Sequence[Supply], pick: Candidate | None
    ) -> tuple[str, ...]:
        """Return what each call takes on the card that was picked, and which are not in."""
        if not self.counted or pick is None:
            return self.notes
        gpu = card_of(market, pick)
        hours = [
            _steps_h(request, on_its_machines(one, pick.offer), gpu, pick.count)
            for _, one in self.counted
        ]
        added = added_fits([number for number, _ in self.counted], hours, card(pick))
        return (added, *self.notes)

    def without_note_on_others(self, trace: Trace) -> Trace:
        """Return the trace without the warning that other calls are not in the answer."""
        if not self.counted:
            return trace
        kept = tuple(one for one in trace.warnings if not one.startswith(OTHER_FITS))
        return replace(trace, warnings=kept)


ONE_FIT = Fits(counted=())


def _run_of(request: Request, predictor: Predictor) -> Run:
    return run_of(request, predictor.traced.trace, predictor.batch_size)


def _steps_h(request: Request, predictor: Predictor, gpu: Gpu, count: int) -> float:
    """Return the hours that the steps of a call take, by the best figure."""
    held = request.global_batch_size
    size = shared_batch(held, count) if held and not held % count else 0
    estimate = predictor.estimate(gpu, replicas=count, batch_size=size)
    return estimate.step_s.best * steps_of(_run_of(request, predictor), estimate) / HOUR_S


def check_all_fits(request: Request) -> None:
    """Refuse what is of one call of ``fit``; raises ``UsageError``."""
    workload = request.workload
    if not (isinstance(workload, Workload) and workload.kind == "script"):
        raise UsageError("--all-fits is of a script, whose calls of fit it adds up")
    if workload.mode != "train":
        raise UsageError("--all-fits is of training", remedy="leave it or --scenario out")
    given = {
        "--fit": workload.fit_number > 1,
        "--steps, --epochs and --samples": request.steps or request.epochs or request.samples,
        "--feed": request.feed is not None,
        "--route exact": request.route == "exact",
    }
    if wrong := next((name for name, value in given.items() if value), ""):
        raise UsageError(
            f"--all-fits contradicts {wrong}",
            why="each call of fit has its own length and step",
            remedy="leave it out, or name one call with --fit",
        )


def all_fits(
    request: Request, workload: Workload, predictor_of: Callable[[Workload], Predictor]
) -> Fits:
    """Trace one call of ``fit`` after the other, until there is none.

    Args:
        request: What is asked; the first call has to be traced, later ones may fail.
        workload: The script.
        predictor_of: Traces a workload.

    Raises:
        UsageError: There is no call, or the length of none is known.
        ToolError: The trace of the first one failed.
    """
    counted: list[tuple[int, Predictor]] = []
    notes: list[str] = []
    for number in range(1, MOST_FITS + 1):
        try:
            predictor = predictor_of(replace(workload, fit_number=number))
        except TfdynoError as error:
            if number == 1:
                raise
            if not _is_the_end(error, number):
                notes.append(unseen_fits(number, error.what))
            break
        run = _run_of(request, predictor)
        if run.length_source == "assumed":
            notes.append(left_out_fit(number))
        else:
            counted.append((number, predictor))
    else:
        notes.append(
            unseen_fits(MOST_FITS + 1, say("only the first {count} are traced", count=MOST_FITS))
        )
    if not counted:
        raise UsageError(
            f"the length of no call of fit in {workload.reference} is known",
            remedy="give fit its steps_per_epoch, or name one call with --fit, and --samples",
        )
    return Fits(counted=tuple(counted), notes=tuple(notes))


def _is_the_end(error: TfdynoError, number: int) -> bool:
    """Return whether the script went to its end without so many calls."""
    return error.what.endswith(NO_FIT.format(number=number))
