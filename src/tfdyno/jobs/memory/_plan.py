"""Weigh the ways in which one workload can be made to fit one card."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.catalog.assumptions import recipe_rules
from tfdyno.core.base.errors import ToolError
from tfdyno.core.choose.memory_plan import OPTIMIZERS, Learning, MemoryPlan, PlannedOption
from tfdyno.core.recipe.recipe import Recipe, diff
from tfdyno.jobs.choose.exact import add_cached, add_compiled
from tfdyno.jobs.choose.options import in_both_precisions
from tfdyno.jobs.choose.reference import fine_tune_words
from tfdyno.jobs.choose.scale_out import shardings
from tfdyno.jobs.choose.verify import proved
from tfdyno.jobs.memory._fine_tunes import fine_tunes, tokens_of
from tfdyno.jobs.memory._weighing import Weighing, Wish
from tfdyno.model.memory.memory_plan import (
    chosen_of,
    closest_of,
    departure,
    safe_of,
    time_ratio,
    undominated,
)
from tfdyno.words.base.amounts import of_gib
from tfdyno.words.base.language import say, say_later
from tfdyno.words.memory.basis import slower
from tfdyno.words.memory.plan import fine_tune_code

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tfdyno.core.choose.auto_recipe import Option
    from tfdyno.core.choose.hardware import Gpu
    from tfdyno.core.choose.sharding import Sharding
    from tfdyno.core.choose.workload import Trace
    from tfdyno.jobs.choose.predict import Predictor

_MOST_PROOFS = 4
"""Options that are compiled, best first, until one fits."""
_FEW_RATIO, _TWO_RATIO = 0.5, 1.5
"""Bytes that an optimizer keeps over those of the weights: below, nothing worth; above, two."""
COMPUTED = say_later(
    "Memory and times are computed from the traced step; no device was "
    "measured. Ratios are to the script as it is on a card that had the room."
)


def memory_plan(
    own: Predictor, gpu: Gpu, wish: Wish, *, progress: Callable[[str], None]
) -> MemoryPlan:
    """Weigh precision, batch and accumulation, recomputing and, where it may help, the optimizer.

    Where the script fits for certain as it is, nothing more is traced than the other precision.

    Args:
        own: The workload as it is.
        gpu: The card.
        wish: What may be changed.
        progress: Called with a line at every stage.

    Raises:
        ToolError: A trace of the workload itself failed.
    """
    own = replace(own, execution=own.execution_on(gpu))
    notes: list[str] = []
    plain = {own.traced.trace.policy: add_cached(own, (gpu,))}
    if not wish.fixed_precision:
        plain = in_both_precisions(own, gpu, notes, progress)
    if wish.route == "quick":
        plain = {name: replace(one, exact={}) for name, one in plain.items()}
    elif wish.route == "exact" and own.execution == "xla":
        plain = {name: _compiled(one, gpu, notes, progress) for name, one in plain.items()}
    weighing = Weighing(own=own, gpu=gpu, wish=wish, progress=progress, plain=plain, notes=notes)
    for policy in plain:
        weighing.add(policy)
    base = weighing.options[0]
    for policy in () if base.fits_surely else plain:
        weighing.add(policy, remat=True)
    _add_fine_tunes(weighing)
    _add_optimizers(weighing, base)
    gain = recipe_rules().least_gain_ratio
    chosen = chosen_of(weighing.options, gain)
    if wish.route == "exact" and chosen:
        chosen = _proven(weighing, chosen, gain)
    return _plan(weighing, chosen)


def _compiled(
    plain: Predictor, gpu: Gpu, notes: list[str], progress: Callable[[str], None]
) -> Predictor:
    """Use the program of the card's family, which serves every batch."""
    found, told = add_compiled(plain, (gpu,), progress=progress)
    notes += told
    return found


def _add_fine_tunes(weighing: Weighing) -> None:
    """Add other ways to train a preset, the mildest first, until one is certain to fit.

    Its adapters alone, then with the rest of its weights in 8 bits and in 4, each also with blocks
    that compute again; then shorter samples, unless their length was named. What was asked stays: a
    rank, a mode of quantizing.
    """
    base, trace = weighing.options[0], weighing.own.traced.trace
    if trace.workload.hub is None or base.fits_surely:
        return
    leader = chosen_of(weighing.options, recipe_rules().least_gain_ratio)
    policy = (leader or closest_of(weighing.options)).precision
    asked = trace.workload.hub.fine_tune.sequence_length
    for way in fine_tunes(trace.workload.hub, tokens_of(trace)):
        found = weighing.add(policy, fine_tune=way)
        if not any(one.fits_surely for one in found) and way.sequence_length == asked:
            found = weighing.add(policy, remat=True, fine_tune=way)
        if any(one.fits_surely for one in found):
            return


def _add_optimizers(weighing: Weighing, base: Option) -> None:
    """Add what other optimizers make of the precision that leads, recomputing too in need."""
    options, rules = weighing.options, recipe_rules()
    needed = not any(one.fits for one in options)
    names = weighing.wish.optimizers
    if names is None and base.fine_tune:
        names = ()  # of adapters alone no optimizer keeps much
    if names is None:
        trace = weighing.own.traced.trace
        state_ratio = _state_bytes(trace) / base.usable_memory_bytes
        wanted = needed or (not base.fits_surely and state_ratio >= rules.optimizer_state_ratio)
        names = _smaller_optimizers(trace) if wanted else ()
    leader = chosen_of(options, rules.least_gain_ratio) or closest_of(options)
    for name in names:
        for remat in (False, True) if needed else (bool(leader.remat),):
            weighing.add(leader.precision, remat=remat, optimizer=name)


def _smaller_optimizers(trace: Trace) -> tuple[str, ...]:
    """List those that may keep less than the script's own, by how much they keep per weight."""
    weights = sum(one.bytes for one in trace.tensors if one.role == "weight")
    kept = _state_bytes(trace) / max(1, weights)
    if kept < _FEW_RATIO:
        return ()
    return OPTIMIZERS if kept >= _TWO_RATIO else ("sgd",)


def _state_bytes(trace: Trace) -> int:
    return sum(one.bytes for one in trace.tensors if one.role == "optimizer")


def _proven(weighing: Weighing, chosen: Option, gain: float) -> Option | None:
    """Return the best of a few options that a compile at its batch finds to fit; else the last."""
    best: Option | None = chosen
    for _ in range(_MOST_PROOFS):
        if best is None or best.verified or best.execution != "xla":
            break
        way = next(way for option, way in weighing.found if option == best)
        try:
            predictor = proved(way.predictor, weighing.gpu, best.batch_size, weighing.progress)
        except ToolError as error:
            weighing.notes.append(say("Nothing was compiled: {error}", error=error))
            break
        later = replace(way, predictor=predictor)
        settled = later.option(best.batch_size, best.accumulation)
        weighing.found = [
            (settled, later) if option == best else (option, later if other is way else other)
            for option, other in weighing.found
        ]
        seen = predictor.estimate(weighing.gpu, batch_size=best.batch_size)
        weighing.notes += [slower(seen)] if seen.rematerialisation and settled.fits else []
        best = chosen_of(weighing.options, gain)
    return best


def _plan(weighing: Weighing, chosen: Option | None) -> MemoryPlan:
    options = weighing.options
    base = options[0]
    front = {*undominated(options), *([chosen] if chosen else [])}
    safe = safe_of(options, chosen) if chosen else None
    recipe = plan_recipe(weighing.own, chosen) if chosen else None

    def planned(option: Option) -> PlannedOption:
        return _planned(weighing, option, base)

    return MemoryPlan(
        gpu=weighing.gpu.slug,
        samples=weighing.own.batch_size,
        base=planned(base),
        options=tuple(map(planned, sorted(front, key=lambda one: one.update_s.best))),
        chosen=planned(chosen) if chosen else None,
        safe=planned(safe) if safe else None,
        closest=None if chosen else planned(closest_of(options)),
        recipe=recipe,
        reasons=plan_reasons(recipe, planned(chosen), base) if recipe and chosen else {},
        notes=tuple(dict.fromkeys((*weighing.notes, *plan_notes(options, chosen)))),
        weighed=len(options),
        sharding=tuple(_sharded(weighing, None if chosen else closest_of(options))),
    )


def _sharded(weighing: Weighing, closest: Option | None) -> Iterator[Sharding]:
    """Yield how several cards hold the whole batch: of the script as it is, and of the closest."""
    ways = [weighing.own]
    if closest and departure(closest, weighing.options[0]):
        ways += [way.predictor for option, way in weighing.found if option == closest]
    for one in ways:
        found = one.estimate(weighing.gpu, batch_size=weighing.own.batch_size)
        yield from shardings((weighing.gpu,), (found,), one.cluster)


def _planned(weighing: Weighing, option: Option, base: Option) -> PlannedOption:
    rules = recipe_rules()
    measured = []
    if option.precision != base.precision:
        measured.append(rules.precision_ratio_log_width)
    if option.batch_size != base.batch_size:
        measured.append(rules.batch_ratio_log_width)
    return PlannedOption(
        option=option,
        time_ratio=time_ratio(
            option,
            base,
            measured_log_widths=measured,
            computed_ratios=(
                option.recompute_ratio,
                _learning_ratio(weighing.options, option, base),
            ),
        ),
        learns_differently=tuple(_learns_differently(weighing.own.traced.trace, option, base)),
    )


def _learning_ratio(options: Sequence[Option], option: Option, base: Option) -> float:
    """Time of what learns differently over that of the same option that learns as the script."""
    if not departure(option, base):
        return 1.0
    own = (one for one in options if not departure(one, base) and _rest(one) == _rest(option))
    return option.update_s.best / next(own, option).update_s.best


def _rest(one: Option) -> tuple[object, ...]:
    """Return what an option is but for what it learns."""
    return one.precision, one.remat, one.batch_size, one.accumulation


def _learns_differently(trace: Trace, option: Option, base: Option) -> Iterator[Learning]:
    if option.optimizer:
        yield "optimizer"
    own, one = base.fine_tune, option.fine_tune
    if own and one and own != one:
        if one.lora_rank != own.lora_rank:
            yield "adapters alone"
        if one.quantize != own.quantize:
            yield "rounded weights"
        if one.sequence_length != own.sequence_length:
            yield "shorter samples"
    normalises = any(one.name.endswith("moving_mean") for one in trace.tensors)
    if normalises and option.batch_size != base.batch_size:
        yield "batch statistics"


def plan_recipe(own: Predictor, chosen: Option) -> Recipe:
    """Return the settings of an option; what is the script's own already is left out.

    Args:
        own: The workload as it is, with the settings that were asked for.
        chosen: The option.
    """
    kept = chosen.precision == own.traced.trace.policy
    asked = own.batch_source == "as asked"
    return Recipe(
        precision=own.precision if kept else chosen.precision,
        execution=chosen.execution,
        batch_size=chosen.batch_size if asked or chosen.accumulation > 1 else 0,
        accumulation=chosen.accumulation,
        remat=chosen.remat,
    )


def plan_reasons(recipe: Recipe, chosen: PlannedOption, base: Option) -> dict[str, str]:
    """Return a sentence for every setting of the recipe."""
    one = chosen.option
    total = one.batch_size * one.accumulation
    whole = of_gib(base.device_memory_bytes.best, base.usable_memory_bytes)
    said = {
        "precision": say(
            "Activations take half in {precision}; the weights stay float32.",
            precision=one.precision,
        )
        if one.precision.startswith("mixed_")
        else say("As asked: {precision}.", precision=recipe.precision),
        "execution": say("The step was weighed as {executed}.", executed=_executed(one)),
        "batch_size": say(
            "{total:,} samples at once are too many: as the script is they take {whole}.",
            total=total,
            whole=whole,
        )
        if one.accumulation > 1
        else say("The batch that was asked about."),
        "accumulation": say("An update keeps its {total:,} samples.", total=total)
        + (
            say(
                " BatchNormalization sees {batch:,} of them at a time.",
                batch=one.batch_size,
            )
            if "batch statistics" in chosen.learns_differently
            else ""
        ),
        "remat": say(
            "Blocks compute their insides again in the backward pass: a step takes "
            "{ratio:.2f} times as long, computed from the traced step.",
            ratio=one.recompute_ratio,
        ),
    }
    return {name: said[name] for name in diff(Recipe(), recipe)}


def plan_notes(options: Sequence[Option], chosen: Option | None) -> tuple[str, ...]:
    """Return what nobody knows, and what is no setting of a recipe."""
    notes = [say(COMPUTED)]
    best, own = chosen or closest_of(options), options[0].fine_tune
    if best.fine_tune and best.fine_tune != own:
        notes.append(
            say(
                "In Keras, before compile: {code}. With tfdyno train: {options}.",
                code=fine_tune_code(best.fine_tune),
                options=" ".join(fine_tune_words(best.fine_tune)),
            )
        )
        if best.fine_tune.lora_rank and not (own and own.lora_rank):
            notes.append(
                say(
                    "LoRA trains adapters of rank {rank} in place of the backbone's own "
                    "weights, which stay as they are. --lora names another rank.",
                    rank=best.fine_tune.lora_rank,
                )
            )
    if chosen and chosen.optimizer:
        notes.append(
            say(
                "The optimizer is no setting of a recipe: compile the model with "
                "{optimizer}, which learns differently; find its learning rate anew.",
                optimizer=chosen.optimizer,
            )
        )
    if (chosen is None or chosen.optimizer) and (near := _may_fit(options)):
        notes.append(
            say(
                "Without another optimizer, {precision} at batch {batch:,} may fit "
                "too: its range reaches below the limit. --route exact compiles it.",
                precision=near.precision,
                batch=near.batch_size,
            )
        )
    if any(one.optimizer for one in options):
        notes.append(
            say(
                "Another optimizer learns differently: its memory and time were computed "
                "by putting it in place of the script's own."
            )
        )
    if chosen and chosen.memory_made_by == "quick" and chosen.execution == "xla":
        notes.append(say("Memory was not compiled: --route exact proves the chosen option."))
    return tuple(notes)


def _may_fit(options: Sequence[Option]) -> Option | None:
    """Return the fastest that learns as the script does and whose range reaches below the limit."""
    near = (
        one
        for one in options
        if not departure(one, options[0])
        and one.memory_made_by == "quick"
        and one.device_memory_bytes.low <= one.usable_memory_bytes
    )
    return min(near, key=lambda one: one.update_s.best, default=None)


def _executed(one: Option) -> str:
    return (
        say("XLA compiles it") if one.execution == "xla" else say("TensorFlow runs it without XLA")
    )
