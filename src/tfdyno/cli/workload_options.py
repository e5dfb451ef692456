"""Options that say what is run: the workload, its code, the software."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tfdyno.cli.command import TEXT, argument, flag, group, many, option
from tfdyno.cli.options import (
    JSON,
    PYTHON,
    QUIET,
    UNSAFE,
    Filled,
    OneOf,
    Read,
    Whole,
    shape,
)
from tfdyno.core.base import settings
from tfdyno.core.base.dataclass import dataclass
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.settings import Route
from tfdyno.core.choose.workload import HUB_TASKS, QUANTIZE_MODES, quantize_mode

if TYPE_CHECKING:
    from tfdyno.core.choose.workload import FineTune, Workload

INPUT_SHAPES = many(
    "--input-shape", type=Read("SIZES", shape),
    help="Sizes of an input without the batch, 224,224,3; one per input.",
)  # fmt: skip
FIT = option(
    "--fit", type=Whole("call of fit"), default=1, show_default=True,
    help="Which call of fit in the script is meant.",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadOptions:
    """What is run, and what its script is given."""

    workload: str = argument(type=TEXT)
    script_arguments: tuple[str, ...] = argument(nargs=-1, type=click.UNPROCESSED)


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeOptions:
    """How the code of a workload is run, where a step function is one as well."""

    input_shapes: tuple[tuple[int, ...], ...] = INPUT_SHAPES
    input_spec: tuple[str, ...] = many(
        type=TEXT, metavar="DTYPE[SIZES]",
        help="Arguments of a step function, in order: float32[batch,224,224,3].",
    )  # fmt: skip
    fit_number: int = FIT
    python: str | None = PYTHON
    unsafe: bool = UNSAFE


@dataclass(frozen=True, slots=True, kw_only=True)
class FineTuneOptions:
    """How a preset of KerasHub is trained."""

    task: str | None = option(
        type=OneOf("task", HUB_TASKS),
        help="Train a preset for this.  [default: the first of these that KerasHub has]",
    )
    sequence_length: int | None = option(
        "--seq", type=Whole("sequence length"),
        help="Tokens of a sample of a preset.  [default: KerasHub's own]",
    )  # fmt: skip
    lora_rank: int | None = option(
        "--lora", type=Whole("LoRA rank"), metavar="RANK",
        help="Train a preset by adapters of this rank alone.",
    )  # fmt: skip
    quantize: str | None = option(
        type=OneOf("quantize mode", QUANTIZE_MODES, quantize_mode),
        help="Hold a preset's weights so.",
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftwareOptions:
    """What the step is run by."""

    tensorflow: str | None = option(
        "--tf", "--tensorflow", type=Filled(), metavar="X.Y",
        help="Release of TensorFlow to answer for, which has to run on the card that is advised."
        "  [default: the one installed, else the newest]",
    )  # fmt: skip
    backend: str | None = option(
        type=OneOf("backend", ("tensorflow", "jax")),
        help="Backend of Keras to answer for.  [default: tensorflow]",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictOptions(WorkloadOptions):
    """What is run and how, for ``estimate`` and ``advise``."""

    batch_size: int | None = option(type=Whole("batch size"), help="Samples per replica.")
    global_batch: int | None = option(
        type=Whole("global batch"),
        help="Hold the sum over all replicas instead of the batch of each.",
    )
    precision: str | None = option(
        type=OneOf("precision", settings.PRECISIONS),
        help="Without it: the script's own; its float32 means TF32 where the card has it.",
    )
    execution: str | None = option(
        type=OneOf("execution", settings.EXECUTIONS),
        help="Without it: what Keras does (xla on one device, graph on several).",
    )
    route: Route = option(
        type=OneOf("route", settings.ROUTES), default="auto", show_default=True,
        help="quick: seconds. exact: compile for the GPUs. auto: the best that is at hand.",
    )  # fmt: skip
    link: str | None = option(type=Filled(), metavar="SLUG", help="Interconnect between replicas.")
    code: CodeOptions = group(CodeOptions)
    fine_tune: FineTuneOptions = group(FineTuneOptions)
    software: SoftwareOptions = group(SoftwareOptions)
    fresh: bool = flag(help="Trace again, whatever the cache has.")
    no_card_file: bool = flag(help="Leave out what tfdyno calibrate found.")
    as_json: bool = JSON
    quiet: bool = QUIET
    verbose: bool = flag(
        "-v", "--verbose", help="Show every stage, and the largest tensors of one estimate."
    )


def workload_from(
    named: WorkloadOptions,
    code: CodeOptions,
    *,
    mode: str = "train",
    precision: str | None = None,
    software: SoftwareOptions | None = None,
    fine_tune: FineTuneOptions | None = None,
) -> Workload:
    """Return the workload that the shared options describe; raises ``UsageError``."""
    from tfdyno.jobs.choose.reference import parse_reference

    arguments, reference = named.script_arguments, named.workload
    if arguments and not reference.endswith(".py"):
        raise UsageError(
            f"{reference} takes no arguments, but got '{' '.join(arguments)}'",
            remedy="only a script does, after --",
        )
    return parse_reference(
        reference,
        mode="infer" if mode == "infer" else "train",
        precision=precision or "",
        input_shapes=code.input_shapes,
        input_spec=code.input_spec,
        script_arguments=arguments,
        fit_number=code.fit_number,
        python=code.python or "",
        allow_unsafe=code.unsafe,
        software=_asked(software) if software else "",
        fine_tune=fine_tune_from(fine_tune) if fine_tune else None,
    )


def fine_tune_from(options: FineTuneOptions) -> FineTune:
    """Return how a preset is trained."""
    from tfdyno.core.choose.workload import FineTune

    return FineTune(
        task=options.task or "",
        sequence_length=options.sequence_length or 0,
        lora_rank=options.lora_rank or 0,
        quantize=options.quantize or "",
    )


def _asked(software: SoftwareOptions) -> str:
    """Return what ``--tf`` and ``--backend`` ask for; empty where neither is given."""
    release, backend = software.tensorflow, software.backend
    if release and backend == "jax":
        raise UsageError("--tf and --backend jax contradict each other", remedy="give one of them")
    return f"tensorflow {release}" if release else backend or ""
