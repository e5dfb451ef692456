"""Why each line of a chosen recipe is there, in sentences with the numbers behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.units import GIB, format_bytes, significant
from tfdyno.core.recipe.recipe import Recipe, diff
from tfdyno.words.base.amounts import about_step, capital, dashed, gib, of_gib
from tfdyno.words.base.language import ENGLISH, answering, say, say_later
from tfdyno.words.base.names import named

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tfdyno.catalog.assumptions import RecipeRules
    from tfdyno.core.base.interval import Interval
    from tfdyno.core.choose.auto_recipe import Option
    from tfdyno.core.choose.hardware import Gpu
    from tfdyno.core.choose.workload import Trace
    from tfdyno.jobs.holders.found_cards import FoundCard

NOTES_ON_CPU = (
    say_later(
        "No NVIDIA GPU was found: nothing was estimated. Plan for a card with --gpu, and see "
        "'tfdyno doctor' where there should be one."
    ),
    say_later("Threads are left to TensorFlow, which takes all cores of a CPU."),
)
UNKNOWN = say_later(
    "Input, seed and determinism stay as the script has them: an estimate says nothing of them."
)
_BY = {
    "xla": say_later("compiled by XLA||instead"),
    "graph": say_later("run operation by operation||instead"),
}
_UNFIT = {
    "xla": say_later("Compiled by XLA a step needs more memory than there is."),
    "graph": say_later("Run operation by operation a step needs more memory than there is."),
}


def cards_words(gpu: Gpu, count: int) -> str:
    """Write ``NVIDIA L4``, ``2 x NVIDIA L4``."""
    return f"{count} x {gpu.name}" if count > 1 else gpu.name


def left_out(card: FoundCard) -> str:
    """Return why a card of the machine takes no part."""
    why = say("only equal cards share a batch well") if card.has_room else _held(card)
    return say(
        "GPU {index} ({card}) is left out: {why}.",
        index=card.index,
        card=card.gpu.name,
        why=why,
    )


def does_not_fit(title: str, gpu: Gpu, kept_bytes: float, usable_bytes: float) -> UsageError:
    """Return what to say where no recipe helps."""
    with answering(ENGLISH):  # as every error
        held = of_gib(kept_bytes, usable_bytes)
    return UsageError(
        f"{title} does not fit {gpu.name} at any batch",
        why=f"weights, gradients and optimizer alone hold {held}",
        remedy="'tfdyno advise' names larger cards",
    )


def no_recipe_on_jax(title: str, gpu: Gpu) -> UsageError:
    """Return what to say where not even one sample at a time fits, on JAX."""
    return UsageError(
        f"{title} fits {gpu.name} on the JAX backend at no batch that was weighed",
        why="how much has to be computed again is planned for TensorFlow's steps alone",
        remedy="try --set remat=blocks; tfdyno memory --plan says what else there is",
    )


def reasons_on_cpu(rules: RecipeRules) -> dict[str, str]:
    """Return why a CPU is given what it is given."""
    low, high = rules.xla_on_cpu_low_ratio, rules.xla_on_cpu_high_ratio
    return {
        "precision": say(
            "This machine has no GPU, and 16-bit numbers are made for the tensor cores of one."
        ),
        "execution": say(
            "On a CPU a step took {low:g} to {high:g} times as long with XLA, measured with two "
            "small networks under TensorFlow 2.21.",
            low=low,
            high=high,
        ),
    }


def reasons(
    recipe: Recipe,
    chosen: Option,
    options: Sequence[Option],
    *,
    gpu: Gpu,
    trace: Trace,
    batch_source: str,
    found: Sequence[FoundCard],
) -> dict[str, str]:
    """Return a sentence for every setting of the recipe.

    Args:
        recipe: What was chosen, as settings.
        chosen: The same as an option.
        options: All that was weighed.
        gpu: The card.
        trace: The workload as the script has it.
        batch_source: Who named the batch, in words.
        found: The cards of this machine, the chosen first; empty: planned for another.
    """
    total = chosen.batch_size * chosen.accumulation * chosen.replicas
    own = say("{samples} ({source})", samples=_samples(total), source=_source(batch_source))
    used = found[: chosen.replicas]
    said: dict[str, Callable[[], str]] = {
        "precision": lambda: _precision(chosen, options, trace, gpu),
        "execution": lambda: _execution(chosen, options),
        "batch_size": lambda: _batch_size(chosen, own),
        "accumulation": lambda: _accumulation(chosen, own, options),
        "remat": lambda: _remat(chosen, recipe),
        "strategy": lambda: _strategy(chosen, options, gpu),
        "memory_growth": lambda: say(
            "{held}. TensorFlow takes what it needs as it needs it, and leaves the rest to them.",
            held=capital(say("; ").join(_held(one) for one in used if one.held_bytes)),
        ),
        "visible_devices": lambda: say(
            "The recipe is for {cards}; the others stay free.",
            cards=cards_words(gpu, chosen.replicas),
        ),
    }
    return {name: said[name]() for name in diff(Recipe(), recipe)}


def notes(
    chosen: Option, options: Sequence[Option], trace: Trace, batch_source: str
) -> tuple[str, ...]:
    """Return what was not chosen and why, and what nobody knows."""
    said = [_kept_precision(chosen, options, trace), _kept_single(chosen, options)]
    if batch_source.startswith("assumed"):
        source = _source(batch_source)
        said.append(say("The batch is {source}: the workload names none.", source=source))
    if not chosen.fits_surely and chosen.fits:
        said.append(
            say(
                "It takes about {memory}, which was computed and not compiled: "
                "'tfdyno estimate --route exact' proves it.",
                memory=_memory(chosen),
            )
        )
    said += [one for one in chosen.warnings if not one.startswith("Whether it fits")]
    return tuple(one for one in (*said, say(UNKNOWN)) if one)


def _precision(chosen: Option, options: Sequence[Option], trace: Trace, gpu: Gpu) -> str:
    other = _like(chosen, options, precision=trace.policy)
    made = say(
        "{card} has no tensor cores for 16-bit numbers"
        if chosen.precision == "float32"
        else "the tensor cores of {card} are made for it",
        card=gpu.name,
    )
    if other is None:
        return say("{precision}: {why}.", precision=chosen.precision, why=made)
    if not other.fits:
        return say(
            "In the script's own {policy} not even one sample fits; {why}.",
            policy=trace.policy,
            why=made,
        )
    return say(
        "{instead}, and {ours} GiB instead of {others} GiB; {why}.",
        instead=_instead(chosen, other, say("in the script's own {policy}", policy=trace.policy)),
        ours=gib(chosen.device_memory_bytes.best),
        others=gib(other.device_memory_bytes.best),
        why=made,
    )


def _execution(chosen: Option, options: Sequence[Option]) -> str:
    name = "graph" if chosen.execution == "xla" else "xla"
    other = _like(chosen, options, execution=name)
    if other is None:
        return say("The script, or a layer of it, keeps XLA off.")
    if chosen.fits and not other.fits:
        return say(_UNFIT[name])
    said = _instead(chosen, other, say(_BY[name]))
    if chosen.execution == "xla":
        seconds = significant(chosen.compile_s.best, 2)
        said += say("; the first step compiles for about {seconds} s", seconds=seconds)
    return said + say(".")


def _batch_size(chosen: Option, own: str) -> str:
    if chosen.replicas > 1:
        return say(
            "On each of {count} cards: an update keeps its {samples}.",
            count=chosen.replicas,
            samples=own,
        )
    return say("With accumulation an update keeps its {samples}.", samples=own)


def _accumulation(chosen: Option, own: str, options: Sequence[Option]) -> str:
    each = say(" on each of {count} cards", count=chosen.replicas) if chosen.replicas > 1 else ""
    return say(
        "{count} batches of {batch:,}{each} make an update of {samples}: at once they need more "
        "than the {most} GiB that are usable. A layer that looks at its whole batch, like "
        "BatchNormalization, sees {seen}.",
        count=chosen.accumulation,
        batch=chosen.batch_size,
        each=each,
        samples=own,
        most=gib(max(one.usable_memory_bytes for one in options)),
        seen=_samples(chosen.batch_size),
    )


def _remat(chosen: Option, recipe: Recipe) -> str:
    return say(
        "A step of {samples} needs {memory}: layers are computed again until activations take "
        "{budget}, which is what the rest of the step leaves, and takes longer. Only the run shows "
        "by how much, and whether it is enough.",
        samples=_samples(chosen.batch_size),
        memory=_memory(chosen),
        budget=format_bytes(recipe.remat_budget_bytes),
    )


def _strategy(chosen: Option, options: Sequence[Option], gpu: Gpu) -> str:
    if chosen.replicas == 1:
        alone = say("One {card} trains alone.", card=gpu.name)
        return _kept_single(chosen, options) or alone
    other = _like(chosen, options, replicas=1)
    cards = cards_words(gpu, chosen.replicas)
    if other is None or not other.fits:
        return say("{cards} share the batch; on one it does not fit.", cards=cards)
    return say(
        "{cards} share the batch: {instead}.",
        cards=cards,
        instead=_instead(chosen, other, say("on one")),
    )


def _kept_precision(chosen: Option, options: Sequence[Option], trace: Trace) -> str:
    names = {one.precision for one in options} - {chosen.precision}
    others = [_like(chosen, options, precision=name) for name in names]
    if chosen.precision != trace.policy or not others or others[0] is None:
        return ""
    other = others[0]
    if not other.fits:
        return say(
            "Precision stays {policy}: in {other} it does not fit.",
            policy=trace.policy,
            other=other.precision,
        )
    return say(
        "Precision stays {policy}: an update takes {theirs} in {other} and {ours} as it is.",
        policy=trace.policy,
        theirs=_time(other.update_s),
        other=other.precision,
        ours=_time(chosen.update_s),
    )


def _kept_single(chosen: Option, options: Sequence[Option]) -> str:
    most = max(one.replicas for one in options)
    if chosen.replicas > 1 or most == 1:
        return ""
    other = _like(chosen, options, replicas=most)
    if other is None or not other.fits:
        return ""
    return say(
        "One card trains alone: an update takes {theirs} on {count} cards and {ours} on one.",
        theirs=_time(other.update_s),
        count=most,
        ours=_time(chosen.update_s),
    )


def _like(chosen: Option, options: Sequence[Option], **change: object) -> Option | None:
    """Return the option that differs from the chosen one in nothing but ``change``."""
    wanted = {
        "precision": chosen.precision, "execution": chosen.execution, "replicas": chosen.replicas,
        **change,
    }  # fmt: skip
    alike = (one for one in options if all(getattr(one, name) == v for name, v in wanted.items()))
    return next(alike, None)


def _instead(one: Option, other: Option, how: str) -> str:
    return say(
        "{ours} an update instead of {theirs} {how}",
        ours=_time(one.update_s),
        theirs=_time(other.update_s),
        how=how,
    )


def _time(update_s: Interval) -> str:
    best, spread = about_step(update_s)
    return say("{best} ({spread})", best=best, spread=spread)


def _memory(one: Option) -> str:
    held = one.device_memory_bytes
    spread = dashed(held.low / GIB, held.high / GIB)
    return say("{best} ({spread})", best=of_gib(held.best, one.usable_memory_bytes), spread=spread)


def _held(card: FoundCard) -> str:
    pids = ", ".join(map(str, card.processes))
    return say(
        "{who} hold {held} of the {total} of GPU {index}",
        who=say("other processes ({pids})", pids=pids) if pids else say("other processes"),
        held=format_bytes(card.held_bytes),
        total=format_bytes(card.total_bytes),
        index=card.index,
    )


def _samples(count: int) -> str:
    return say("one sample") if count == 1 else say("{count:,} samples", count=count)


def _source(batch_source: str) -> str:
    """Return who named the batch, without the word that it is assumed."""
    return named(batch_source.removeprefix("assumed: "))
