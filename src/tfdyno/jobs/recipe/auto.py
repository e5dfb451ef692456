"""Choose a recipe for a workload: the machine's cards, the estimate's advice, a reason per line."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tfdyno.catalog.assumptions import recipe_rules
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.units import MIB
from tfdyno.core.choose.auto_recipe import AutoRecipe, Option
from tfdyno.core.choose.hardware import Gpu
from tfdyno.core.recipe.recipe import Recipe, diff
from tfdyno.jobs.child.worker import silent
from tfdyno.jobs.choose.foretold import foretold, without_xla
from tfdyno.jobs.choose.options import SUM_BYTES, Way, in_both_precisions
from tfdyno.jobs.choose.predict import Predictor, check_vendor, predictor_for
from tfdyno.jobs.holders.found_cards import FoundCard, equal_cards, found_cards, with_room
from tfdyno.jobs.recipe import _reasons as told
from tfdyno.model.choose.recipe_options import most_sharing, preferred
from tfdyno.words.base.language import say

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tfdyno.core.base.untyped import Strategy
    from tfdyno.core.choose.workload import Trace, Workload

STRATEGY_WARNING = "tf.distribute."
"""How a trace begins to say that the script trains under a strategy of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """What is chosen for: equal cards, and the workload traced in each precision."""

    gpu: Gpu
    count: int
    predictors: dict[str, Predictor]
    """The predictors by Keras policy; the script's own is the first."""
    found: tuple[FoundCard, ...] = ()
    """The cards of this machine; empty: planned for another."""
    seen: int = 0
    """How many cards a run of this user sees."""
    on_jax: bool = False
    """Whether Keras trains on JAX: XLA compiles every step, and no recipe shares it out."""
    notes: list[str] = field(default_factory=list)

    @property
    def own(self) -> Predictor:
        """As the script has it."""
        return next(iter(self.predictors.values()))

    @property
    def executions(self) -> tuple[str, ...]:
        """How the step can run, the script's own first."""
        trace = self.own.traced.trace
        if self.on_jax:
            return ("xla",)
        if self.own.xla_fails(self.gpu):
            return ("graph",)
        if trace.execution == "xla":
            return ("xla", "graph")
        return ("graph", "xla") if _under_strategy(trace) else ("graph",)


def auto_recipe(
    workload: Workload,
    *,
    gpu: Gpu | None = None,
    count: int = 1,
    visible: str | None = None,
    on_jax: bool = False,
    progress: Callable[[str], None] = silent,
) -> AutoRecipe:
    """Choose the settings that an estimate calls fastest, with the samples of an update held.

    A batch that does not fit is split and accumulated; where not even that fits, layers are
    computed again. A setting that is not clearly faster stays as the script has it.

    Args:
        workload: What will be trained.
        gpu: Plan for this card; None: for those of this machine, or its CPU.
        count: How many of ``gpu`` there are in one machine.
        visible: ``CUDA_VISIBLE_DEVICES`` of the run; this process' own when None.
        on_jax: Whether Keras trains on JAX: the settings are those that it has there, for one card.
        progress: Called with a line at every stage.

    Raises:
        UsageError: The workload cannot be traced or is not trained by ``fit``, the catalogue has
            no such card, or nothing makes it fit.
        ToolError: A child failed, or others hold all memory of every card.
    """
    if workload.mode != "train" or workload.kind == "step_function":
        what = f"there is no recipe for {workload.reference}"
        raise UsageError(what, why="a recipe is for a training run by fit")
    if on_jax:
        workload, count = replace(workload, software=workload.software or "jax"), 1
    if gpu is not None:
        check_vendor((gpu,))
        cards = told.cards_words(gpu, count)
        notes = [say("Planned for {cards}, not for this machine.", cards=cards)]
        return _for_cards(workload, gpu=gpu, count=count, notes=notes, on_jax=on_jax,
                          progress=progress)  # fmt: skip
    seen = found_cards(visible=visible)
    if not seen:
        return _for_cpu(on_jax=on_jax)
    found = equal_cards(with_room(seen, visible=visible))
    notes = [told.left_out(one) for one in seen if one not in found]
    least = min(found, key=lambda one: one.gpu.usable_memory_bytes)
    return _for_cards(workload, gpu=least.gpu, count=1 if on_jax else len(found), found=found,
                      seen=len(seen), notes=notes, on_jax=on_jax, progress=progress)  # fmt: skip


def _for_cpu(*, on_jax: bool) -> AutoRecipe:
    recipe = Recipe(precision="float32", execution="auto" if on_jax else "graph")
    said = told.reasons_on_cpu(recipe_rules())
    notes = told.NOTES_ON_CPU[:1] if on_jax else told.NOTES_ON_CPU  # the rest is TensorFlow's
    return AutoRecipe(
        recipe=recipe,
        reasons={name: said[name] for name in diff(Recipe(), recipe)},
        notes=tuple(map(say, notes)),
        target=say("the CPU of this machine"),
    )


def _for_cards(
    workload: Workload,
    *,
    gpu: Gpu,
    count: int,
    notes: list[str],
    on_jax: bool,
    progress: Callable[[str], None],
    found: tuple[FoundCard, ...] = (),
    seen: int = 0,
) -> AutoRecipe:
    own = predictor_for(workload, progress=progress)
    predictors = in_both_precisions(own, gpu, notes, progress)
    case = _Case(gpu=gpu, count=count, predictors=predictors, found=found, seen=seen, notes=notes,
                 on_jax=on_jax)  # fmt: skip
    cards = told.cards_words(gpu, count)
    progress(say("weighing the settings for {cards}", cards=cards))
    options = _options(case)
    chosen = preferred(options, recipe_rules().least_gain_ratio)
    budget_bytes = 0
    if chosen is None and on_jax:
        raise told.no_recipe_on_jax(own.traced.trace.title, gpu)
    if chosen is None:
        chosen, budget_bytes = _least(case, options)
        options = (*options, chosen)
    recipe = _recipe(case, chosen, budget_bytes)
    trace = case.own.traced.trace
    return AutoRecipe(
        recipe=recipe,
        reasons=told.reasons(
            recipe,
            chosen,
            options,
            gpu=gpu,
            trace=trace,
            batch_source=case.own.batch_source,
            found=found,
        ),
        notes=(
            *notes,
            *(foretold(own, [gpu]) if chosen.execution == "xla" else without_xla(own, [gpu])),
            *told.notes(chosen, options, trace, case.own.batch_source),
        ),
        target=told.cards_words(gpu, chosen.replicas),
        gpu=gpu.slug,
        replicas=chosen.replicas,
        global_batch_size=case.own.batch_size,
        chosen=chosen,
        options=tuple(sorted(options, key=lambda one: one.update_s.best)),
    )


def _options(case: _Case) -> tuple[Option, ...]:
    sharing = most_sharing(case.own.batch_size, case.count)
    counts = (1,) if sharing == 1 else (1, sharing)
    return tuple(
        _way(case, policy, execution, replicas).largest()
        for policy in case.predictors
        for execution in case.executions
        for replicas in counts
    )


def _way(case: _Case, policy: str, execution: str, replicas: int) -> Way:
    own_policy, own_execution = next(iter(case.predictors)), case.executions[0]
    changes = (policy != own_policy, execution != own_execution, replicas > 1)
    return Way(
        predictor=replace(case.predictors[policy], execution=execution),
        gpu=case.gpu,
        share=case.own.batch_size // replicas,
        replicas=replicas,
        changes=sum(changes),
    )


def _least(case: _Case, options: Sequence[Option]) -> tuple[Option, int]:
    """Return the fastest of those that need the least memory, and bytes activations may take.

    Raises:
        UsageError: What a step cannot do without is more than the card has.
    """
    gain = recipe_rules().least_gain_ratio
    floor_bytes = min(one.device_memory_bytes.best for one in options) * (1.0 + gain)
    small = [one for one in options if one.device_memory_bytes.best <= floor_bytes]
    least = min(small, key=lambda one: one.update_s.best)
    predictor = replace(case.predictors[least.precision], execution=least.execution)
    trace = predictor.traced.trace
    size = 1 if trace.marker else trace.batch_size
    one = predictor.estimate(case.gpu, replicas=least.replicas, batch_size=size)
    parts, usable_bytes = one.memory_parts_bytes, one.usable_memory_bytes
    share = case.own.batch_size // least.replicas if trace.marker else 1
    kept = sum(parts.get(name, 0.0) for name in ("weights", "gradients", "optimizer"))
    kept += SUM_BYTES * trace.trainable_parameter_count if share > 1 else 0.0
    slack_ratio = parts.get("allocator", 0.0) / one.peak_memory_bytes.best
    room_bytes = (usable_bytes - one.context_bytes) / (1.0 + slack_ratio) - kept
    if room_bytes < MIB:
        raise told.does_not_fit(trace.title, case.gpu, kept + one.context_bytes, usable_bytes)
    split = replace(
        least,
        batch_size=one.batch_size,
        accumulation=share,
        update_s=one.step_s.times(share),
        device_memory_bytes=one.device_memory_bytes,
    )
    return split, int(room_bytes) // MIB * MIB


def _recipe(case: _Case, chosen: Option, budget_bytes: int) -> Recipe:
    """Return the settings of the option; what is the script's own already is left out."""
    own_policy = next(iter(case.predictors))
    is_split = chosen.replicas > 1 or chosen.accumulation > 1
    some = case.found and chosen.replicas < case.seen
    names = ",".join(str(one.index) for one in case.found[: chosen.replicas])
    return Recipe(
        precision=chosen.precision if chosen.precision != own_policy else "",
        execution="auto" if case.on_jax else chosen.execution,
        batch_size=chosen.batch_size if is_split else 0,
        accumulation=chosen.accumulation,
        remat=f"{budget_bytes // MIB}MiB" if budget_bytes else "",
        strategy=_strategy(case, chosen),
        memory_growth=any(one.held_bytes for one in case.found[: chosen.replicas]),
        visible_devices=names if some else "",
    )


def _strategy(case: _Case, chosen: Option) -> Strategy:
    if chosen.replicas > 1:
        return "mirrored"
    if case.on_jax:
        return ""
    return "single" if case.count > 1 or _under_strategy(case.own.traced.trace) else ""


def _under_strategy(trace: Trace) -> bool:
    return any(one.startswith(STRATEGY_WARNING) for one in trace.warnings)
