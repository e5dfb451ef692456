"""Why each line of a chosen recipe is there, in sentences with the numbers behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.units import GIB, format_bytes, significant
from tfdyno.core.recipe.recipe import Recipe, diff
from tfdyno.words.base.amounts import about_step, capital, dashed, gib, of_gib

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tfdyno.catalog.assumptions import RecipeRules
    from tfdyno.core.base.interval import Interval
    from tfdyno.core.choose.auto_recipe import Option
    from tfdyno.core.choose.hardware import Gpu
    from tfdyno.core.choose.workload import Trace
    from tfdyno.jobs.holders.found_cards import FoundCard

NOTES_ON_CPU = (
    "No NVIDIA GPU was found: nothing was estimated. Plan for a card with --gpu, and see "
    "'tfdyno doctor' where there should be one.",
    "Threads are left to TensorFlow, which takes all cores of a CPU.",
)
UNKNOWN = (
    "Input, seed and determinism stay as the script has them: an estimate says nothing of them."
)
_BY = {"xla": "compiled by XLA", "graph": "run operation by operation"}
_UNFIT = {"xla": "Compiled by XLA a step", "graph": "Run operation by operation a step"}


def cards_words(gpu: Gpu, count: int) -> str:
    """Write ``NVIDIA L4``, ``2 x NVIDIA L4``."""
    return f"{count} x {gpu.name}" if count > 1 else gpu.name


def left_out(card: FoundCard) -> str:
    """Return why a card of the machine takes no part."""
    name = f"GPU {card.index} ({card.gpu.name}) is left out"
    if not card.has_room:
        return f"{name}: {_held(card)}."
    return f"{name}: only equal cards share a batch well."


def does_not_fit(title: str, gpu: Gpu, kept_bytes: float, usable_bytes: float) -> UsageError:
    """Return what to say where no recipe helps."""
    return UsageError(
        f"{title} does not fit {gpu.name} at any batch",
        why=f"weights, gradients and optimizer alone hold {of_gib(kept_bytes, usable_bytes)}",
        remedy="'tfdyno advise' names larger cards",
    )


def reasons_on_cpu(rules: RecipeRules) -> dict[str, str]:
    """Return why a CPU is given what it is given."""
    low, high = rules.xla_on_cpu_low_ratio, rules.xla_on_cpu_high_ratio
    return {
        "precision": (
            "This machine has no GPU, and 16-bit numbers are made for the tensor cores of one."
        ),
        "execution": (
            f"On a CPU a step took {low:g} to {high:g} times as long with XLA, measured with two "
            "small networks under TensorFlow 2.21."
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
    own = f"{_samples(total)} ({batch_source.removeprefix('assumed: ')})"
    used = found[: chosen.replicas]
    said: dict[str, Callable[[], str]] = {
        "precision": lambda: _precision(chosen, options, trace, gpu),
        "execution": lambda: _execution(chosen, options),
        "batch_size": lambda: _batch_size(chosen, own),
        "accumulation": lambda: _accumulation(chosen, own, options),
        "remat": lambda: _remat(chosen, recipe),
        "strategy": lambda: _strategy(chosen, options, gpu),
        "memory_growth": lambda: (
            f"{capital('; '.join(_held(one) for one in used if one.held_bytes))}. TensorFlow takes "
            "what it needs as it needs it, and leaves the rest to them."
        ),
        "visible_devices": lambda: (
            f"The recipe is for {cards_words(gpu, chosen.replicas)}; the others stay free."
        ),
    }
    return {name: said[name]() for name in diff(Recipe(), recipe)}


def notes(
    chosen: Option, options: Sequence[Option], trace: Trace, batch_source: str
) -> tuple[str, ...]:
    """Return what was not chosen and why, and what nobody knows."""
    said = [_kept_precision(chosen, options, trace), _kept_single(chosen, options)]
    if batch_source.startswith("assumed"):
        size = f"{batch_source.removeprefix('assumed: ')}: the workload names none"
        said.append(f"The batch is {size}.")
    if not chosen.fits_surely and chosen.fits:
        said.append(
            f"It takes about {_memory(chosen)}, which was computed and not compiled: "
            "'tfdyno estimate --route exact' proves it."
        )
    said += [one for one in chosen.warnings if not one.startswith("Whether it fits")]
    return tuple(one for one in (*said, UNKNOWN) if one)


def _precision(chosen: Option, options: Sequence[Option], trace: Trace, gpu: Gpu) -> str:
    other = _like(chosen, options, precision=trace.policy)
    own = f"the script's own {trace.policy}"
    made = (
        f"{gpu.name} has no tensor cores for 16-bit numbers"
        if chosen.precision == "float32"
        else f"the tensor cores of {gpu.name} are made for it"
    )
    if other is None:
        return f"{chosen.precision}: {made}."
    if not other.fits:
        return f"In {own} not even one sample fits; {made}."
    memory = f"{gib(chosen.device_memory_bytes.best)} GiB instead of "
    memory += f"{gib(other.device_memory_bytes.best)} GiB"
    return f"{_instead(chosen, other, f'in {own}')}, and {memory}; {made}."


def _execution(chosen: Option, options: Sequence[Option]) -> str:
    name = "graph" if chosen.execution == "xla" else "xla"
    other = _like(chosen, options, execution=name)
    if other is None:
        return "The script, or a layer of it, keeps XLA off."
    if chosen.fits and not other.fits:
        return f"{_UNFIT[name]} needs more memory than there is."
    said = _instead(chosen, other, _BY[name])
    if chosen.execution == "xla":
        said += f"; the first step compiles for about {significant(chosen.compile_s.best, 2)} s"
    return f"{said}."


def _batch_size(chosen: Option, own: str) -> str:
    if chosen.replicas > 1:
        return f"On each of {chosen.replicas} cards: an update keeps its {own}."
    return f"With accumulation an update keeps its {own}."


def _accumulation(chosen: Option, own: str, options: Sequence[Option]) -> str:
    parts = f"{chosen.accumulation} batches of {chosen.batch_size:,}"
    each = f" on each of {chosen.replicas} cards" if chosen.replicas > 1 else ""
    most = gib(max(one.usable_memory_bytes for one in options))
    return (
        f"{parts}{each} make an update of {own}: at once they need more than the {most} GiB that "
        "are usable. A layer that looks at its whole batch, like BatchNormalization, sees "
        f"{_samples(chosen.batch_size)}."
    )


def _remat(chosen: Option, recipe: Recipe) -> str:
    return (
        f"A step of {_samples(chosen.batch_size)} needs {_memory(chosen)}: layers are computed "
        f"again until activations take {format_bytes(recipe.remat_budget_bytes)}, which is what "
        "the rest of the step leaves, and takes longer. Only the run shows by how much, and "
        "whether it is enough."
    )


def _strategy(chosen: Option, options: Sequence[Option], gpu: Gpu) -> str:
    if chosen.replicas == 1:
        return _kept_single(chosen, options) or f"One {gpu.name} trains alone."
    other = _like(chosen, options, replicas=1)
    if other is None or not other.fits:
        return f"{cards_words(gpu, chosen.replicas)} share the batch; on one it does not fit."
    share = f"{cards_words(gpu, chosen.replicas)} share the batch"
    return f"{share}: {_instead(chosen, other, 'on one')}."


def _kept_precision(chosen: Option, options: Sequence[Option], trace: Trace) -> str:
    names = {one.precision for one in options} - {chosen.precision}
    others = [_like(chosen, options, precision=name) for name in names]
    if chosen.precision != trace.policy or not others or others[0] is None:
        return ""
    other = others[0]
    if not other.fits:
        return f"Precision stays {trace.policy}: in {other.precision} it does not fit."
    times = f"{_time(other.update_s)} in {other.precision} and {_time(chosen.update_s)} as it is"
    return f"Precision stays {trace.policy}: an update takes {times}."


def _kept_single(chosen: Option, options: Sequence[Option]) -> str:
    most = max(one.replicas for one in options)
    if chosen.replicas > 1 or most == 1:
        return ""
    other = _like(chosen, options, replicas=most)
    if other is None or not other.fits:
        return ""
    times = f"{_time(other.update_s)} on {most} cards and {_time(chosen.update_s)} on one"
    return f"One card trains alone: an update takes {times}."


def _like(chosen: Option, options: Sequence[Option], **change: object) -> Option | None:
    """Return the option that differs from the chosen one in nothing but ``change``."""
    wanted = {
        "precision": chosen.precision, "execution": chosen.execution, "replicas": chosen.replicas,
        **change,
    }  # fmt: skip
    alike = (one for one in options if all(getattr(one, name) == v for name, v in wanted.items()))
    return next(alike, None)


def _instead(one: Option, other: Option, how: str) -> str:
    return f"{_time(one.update_s)} an update instead of {_time(other.update_s)} {how}"


def _time(update_s: Interval) -> str:
    best, spread = about_step(update_s)
    return f"{best} ({spread})"


def _memory(one: Option) -> str:
    held = one.device_memory_bytes
    spread = dashed(held.low / GIB, held.high / GIB)
    return f"{of_gib(held.best, one.usable_memory_bytes)} ({spread})"


def _held(card: FoundCard) -> str:
    pids = ", ".join(map(str, card.processes))
    who = f"other processes ({pids})" if pids else "other processes"
    return (
        f"{who} hold {format_bytes(card.held_bytes)} of the {format_bytes(card.total_bytes)} of "
        f"GPU {card.index}"
    )


def _samples(count: int) -> str:
    return "one sample" if count == 1 else f"{count:,} samples"
