"""``tfdyno calibrate``: sweep the card of this machine, for every later estimate."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tfdyno.cli.answer import Answer
from tfdyno.cli.command import TEXT, command, flag, group, option
from tfdyno.cli.options import PYTHON, NewFile, OneOf, Positive, Telling, check_writable
from tfdyno.cli.progress import progress_line
from tfdyno.core.choose.generation import Framework


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    seconds: float = option(
        type=Positive("time"), default=120.0, show_default=True, metavar="S",
        help="Time of the sweep; what tells most comes first.",
    )  # fmt: skip
    card: str = option(
        type=TEXT, default="", metavar="N|cpu",
        help="Number of a GPU, or cpu.  [default: the first GPU, else cpu]",
    )  # fmt: skip
    framework: Framework | None = option(
        type=OneOf("framework", ("tensorflow", "jax")),
        help="What runs the kernels.  [default: TensorFlow, else JAX]",
    )
    shared: bool = flag(help="Sweep a card although others compute on it.")
    share: Path | None = option(
        type=NewFile(), metavar="FILE",
        help="Write a copy without names of machine or user, for others to add.",
    )  # fmt: skip
    python: str | None = PYTHON
    told: Telling = group(Telling)


@command(_Options)
def calibrate(options: _Options) -> Answer:
    """Sweep the card of this machine, for narrower estimates on it.

    No model is needed: kernels of every kind are timed one by one. From then on estimate, advise,
    diagnose and tune use what was found for every model on that card. It ends with a verdict on the
    card itself.
    """
    from tfdyno.core.base.codec import to_json
    from tfdyno.jobs.bench.calibrate import CalibrateRequest, shared_copy
    from tfdyno.jobs.bench.calibrate import calibrate as answer_of
    from tfdyno.view.lookup.calibrate_text import calibrate_document, calibrate_text

    check_writable(options.share)
    request = CalibrateRequest(
        seconds_s=options.seconds,
        card=options.card.strip().lower(),
        framework=options.framework or "",
        python=options.python or "",
        shared=options.shared,
    )
    with progress_line(quiet=options.told.quiet, verbose=options.told.verbose) as progress:
        found = answer_of(request, progress=progress)
    return Answer(
        files=((options.share, lambda: to_json(shared_copy(found.card))),),
        document=lambda: calibrate_document(
            found.card, found.verdict, path=str(found.path), notes=found.notes,
            takes_effect=found.takes_effect,
        ),
        indent=0,
        text=partial(
            calibrate_text, found.card, found.verdict, notes=found.notes,
            takes_effect=found.takes_effect,
        ),
        tail=f"\n\nWritten for others: {options.share}" if options.share else "",
    )  # fmt: skip
