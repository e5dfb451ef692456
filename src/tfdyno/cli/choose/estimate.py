"""``tfdyno estimate``: time and memory of one step on the cards that are named."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from tfdyno.cli.answer import Answer
from tfdyno.cli.command import TEXT, command, flag, option
from tfdyno.cli.options import LANG, Filled, OneOf, Whole, Wholes
from tfdyno.cli.progress import progress_line
from tfdyno.cli.workload_options import PredictOptions, workload_from
from tfdyno.core.base import settings
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.language import Language

if TYPE_CHECKING:
    from tfdyno.jobs.choose.estimate import Answer as Estimated
    from tfdyno.jobs.choose.estimate import EstimateRequest

NEW_TOKENS = 128
"""Of an answer whose length was not named."""
DIFFUSION_STEPS = 28
"""Of an image whose steps were not named: KerasHub's own number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options(PredictOptions):
    gpu: str = option(type=TEXT, required=True, metavar="A,B,…", help="GPUs, MIG slices, or all.")
    mode: str = option(
        type=OneOf("mode", settings.MODES), default="train", show_default=True,
        help="The train step, or the forward pass.",
    )  # fmt: skip
    prompt: int | None = option(
        type=Whole("prompt"),
        help="Of --mode infer: tokens from which a preset makes text.",
    )
    new_tokens: int | None = option(
        type=Whole("new tokens"),
        help=f"Of --prompt: tokens that are made.  [default: {NEW_TOKENS}]",
    )
    diffusion_steps: int | None = option(
        type=Whole("diffusion steps"),
        help="Of --mode infer: steps in which a preset makes an image.  "
        f"[default: {DIFFUSION_STEPS}]",
    )
    no_guidance: bool = flag(
        help="Of an image: steps without a second prompt, which halves their work."
    )
    replicas: tuple[int, ...] | None = option(
        type=Wholes("replicas"),
        help="Cards that train together; several numbers give a table.  [default: 1]",
    )
    nodes: tuple[int, ...] | None = option(
        type=Wholes("nodes"), help="Machines that train together, not --replicas."
    )
    gpus_per_node: int | None = option(
        type=Whole("GPUs per node"),
        help="Cards of a machine.  [default: as many as one usually has]",
    )
    network: str | None = option(
        type=Filled(), metavar="[PORTSx]SLUG",
        help="What joins the machines: ib-hdr-200, 8xib-ndr-400, eth-25g.",
    )  # fmt: skip
    verify: bool | None = flag(
        "--verify/--no-verify", default=None,
        help="Prove the largest batch by a compile of it.  "
        "[default: with --route exact on one card]",
    )  # fmt: skip
    explain: bool = flag(
        help="List the kernels behind the time: formula, numbers, constants, sources."
    )
    lang: Language | None = LANG


@command(_Options)
def estimate(options: _Options) -> Answer:
    """Predict time and memory of a step on one GPU or many.

    WORKLOAD is script.py, file.py:function, model.keras, keras:ResNet50, a standard task like
    task:bert-base or a preset like keras_hub:gpt2_base_en. Arguments of a script follow after --.
    """
    from tfdyno.jobs.choose.estimate import EstimateRequest, check
    from tfdyno.jobs.choose.estimate import estimate as answer_of
    from tfdyno.jobs.machine.card_files import cards_named
    from tfdyno.view.base.documents import estimate_document

    if options.replicas and options.nodes:
        raise UsageError("give --replicas or --nodes, not both",
                         why="nodes times GPUs per node are the replicas")  # fmt: skip
    if options.gpus_per_node and not (options.replicas or options.nodes):
        raise UsageError("--gpus-per-node has no use alone",
                         remedy="say with --nodes or --replicas how many train")  # fmt: skip
    request = EstimateRequest(
        workload=workload_from(
            options, options.code, mode=options.mode, precision=options.precision,
            software=options.software, fine_tune=options.fine_tune,
        ),
        gpus=cards_named(options.gpu),
        batch_size=options.batch_size or 0,
        global_batch_size=options.global_batch or 0,
        replicas=options.replicas or (1,),
        nodes=options.nodes or (),
        gpus_per_node=options.gpus_per_node or 0,
        network=options.network or "",
        link=options.link or "",
        precision=options.precision or "",
        execution=options.execution or "",
        route=options.route,
        verify=options.verify,
        fresh=options.fresh,
        card_files=not options.no_card_file,
        explain=options.explain,
    )  # fmt: skip
    check(request)
    if options.prompt:
        return _text(request, options)
    if options.new_tokens:
        raise UsageError("--new-tokens has no use alone", remedy="name the prompt with --prompt")
    if options.diffusion_steps or options.no_guidance or _is_image(request, options):
        return _image(request, options)
    with progress_line(quiet=options.quiet, verbose=options.verbose) as progress:
        found = answer_of(request, progress=progress)
    names = {one.slug: one.name for one in request.gpus}
    return Answer(
        document=lambda: estimate_document(found.estimates, found.trace, found.batch_source,
                                           found.notes, found.scaling, found.sharding),
        indent=0,
        text=partial(_estimates, found, names, options),
    )  # fmt: skip


def _text(request: EstimateRequest, options: _Options) -> Answer:
    """Answer what making text takes."""
    from tfdyno.jobs.choose.generate import text_generation
    from tfdyno.view.choose.generating_text import text_generation_document, text_generation_text

    if options.explain:
        raise UsageError("--explain does not go with --prompt", remedy="leave one of them out")
    with progress_line(quiet=options.quiet, verbose=options.verbose) as progress:
        found, prefill, token = text_generation(
            request, prompt_tokens=options.prompt or 0, new_tokens=options.new_tokens or NEW_TOKENS,
            progress=progress,
        )  # fmt: skip
    names = {one.slug: one.name for one in request.gpus}
    return Answer(
        document=partial(
            text_generation_document, found, prefill.trace, token.trace, prefill.notes
        ),
        indent=0,
        text=partial(text_generation_text, found, prefill.trace, names, notes=prefill.notes),
    )


def _is_image(request: EstimateRequest, options: _Options) -> bool:
    """Return whether the whole making of an image is asked about, not the kernels of a step."""
    from tfdyno.jobs.choose.generate import makes_images

    return makes_images(request) and not (options.explain or options.replicas or options.nodes)


def _image(request: EstimateRequest, options: _Options) -> Answer:
    """Answer what making images takes."""
    from tfdyno.jobs.choose.generate import image_generation
    from tfdyno.view.choose.generating_text import image_generation_document, image_generation_text

    if options.explain:
        raise UsageError("--explain does not go with --diffusion-steps",
                         why="it tells the kernels of one step",
                         remedy="leave one of them out")  # fmt: skip
    with progress_line(quiet=options.quiet, verbose=options.verbose) as progress:
        found, step = image_generation(
            request, steps=options.diffusion_steps or DIFFUSION_STEPS,
            guidance=not options.no_guidance, progress=progress,
        )  # fmt: skip
    names = {one.slug: one.name for one in request.gpus}
    return Answer(
        document=partial(image_generation_document, found, step.trace, step.notes),
        indent=0,
        text=partial(image_generation_text, found, step.trace, names, notes=step.notes),
    )


def _estimates(
    found: Estimated, names: dict[str, str], options: _Options, *, width: int, colour: bool
) -> str:
    from tfdyno.view.choose.estimate_text import estimate_text

    text = estimate_text(
        found.estimates, found.trace, names, batch_source=found.batch_source, notes=found.notes,
        verbose=options.verbose, width=width, colour=colour,
    )  # fmt: skip
    if found.scaling:
        from tfdyno.view.choose.scale_out_text import scale_out_text

        table = scale_out_text(found.scaling, names, width=width, colour=colour)
        text = f"{table}\n\n{text}"
    if found.sharding:
        from tfdyno.view.choose.sharding_text import sharding_text

        text += f"\n\n{sharding_text(found.sharding, names, width=width, colour=colour)}"
    if options.explain:
        from tfdyno.view.choose.explanation_text import explanations_text

        text += f"\n\n\n{explanations_text(found.estimates, names, width=width, colour=colour)}"
    return text
