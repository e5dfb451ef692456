"""What stands around every child that uses cards: others are told of before, and blamed after."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import TfdynoError, ToolError
from tfdyno.core.base.lasting import Lasting
from tfdyno.core.base.settings import PRECISIONS
from tfdyno.core.choose.workload import Workload
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.jobs.holders import words
from tfdyno.jobs.holders.room import REMEDY, refuse, wait_for_room
from tfdyno.probe.holders.cards import HeldCard, look
from tfdyno.words.base.holders import holders_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tfdyno.core.base.interval import Interval

GROWTH = ("TF_FORCE_GPU_ALLOW_GROWTH", "true")
JAX_GROWTH = ("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
JAX_OWN = ("XLA_PYTHON_CLIENT_PREALLOCATE", "XLA_PYTHON_CLIENT_MEM_FRACTION",
           "XLA_PYTHON_CLIENT_ALLOCATOR", "XLA_CLIENT_MEM_FRACTION")  # fmt: skip
"""The variables by which a user has decided already how JAX takes memory."""
CARD_WORDS = ("cuda", "cudnn", "cublas", "gpu", "device", "internalerror")
MEMORY_CAUSES = ("mem.held_by_other_process", "mem.oom_model", "mem.cudnn_init")
"""The doctor's causes that a child names which did not get the memory it needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A run that is about to start."""

    visible: str | None = None
    """Its ``CUDA_VISIBLE_DEVICES``; None: all cards."""
    recipe: Recipe | None = None
    """None: the child itself sees to how memory is taken."""
    workload: Workload | None = None
    """Whose need is compared, where it is known; None: nothing is compared."""
    on_jax: bool = False
    waits: bool = False
    """Whether it waits until the cards are free for it, instead of sharing them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What was found before the run."""

    asked: Asked
    held: tuple[HeldCard, ...] = ()
    """Cards that others use."""
    variables: dict[str, str] = field(default_factory=dict)
    """The variables to set for the child, so that it can share a card."""
    notes: tuple[str, ...] = ()
    """What its reader has to know: one sentence or none."""

    def blame(self, error: TfdynoError) -> None:
        """Say in an error who held memory, if somebody did: as its reason, if memory ran out."""
        now = tuple(one for one in look(self.asked.visible).cards
                    if one.is_shared)  # fmt: skip
        # Who came later and is still there is seen now; who has gone since was seen before.
        still = {one.place for one in now}
        held = (*now, *(one for one in self.held if one.place not in still))
        if not held:
            return
        told = words.blame(held)
        if is_of_memory(error):
            error.remedy = error.remedy or REMEDY
            error.add_reason(told)
        elif is_of_card(error):
            error.add_note(words.told([told]))


@contextlib.contextmanager
def guarded(
    asked: Asked,
    *,
    tell: Callable[[str], None],
    progress: Callable[[str], None] | None = None,
) -> Iterator[Room]:
    """Tell who holds the cards before a child starts, and blame them if it fails for memory.

    Args:
        asked: The run.
        tell: Called with one sentence, where others hold memory or that is not known.
        progress: Called while it waits; ``tell`` when None.

    Raises:
        ToolError: A card is full or takes no other process.
    """
    room = announced(asked, tell=tell, progress=progress)
    try:
        yield room
    except TfdynoError as error:
        room.blame(error)
        raise


def announced(
    asked: Asked,
    *,
    tell: Callable[[str], None],
    progress: Callable[[str], None] | None = None,
) -> Room:
    """Look at the cards, wait where that is asked for, and tell who else is there.

    For a job of many children, each of which has a guard of its own.

    Args, Raises:
        As ``guarded``.
    """
    room = _room_for(asked, progress or tell)
    for note in room.notes:
        tell(Lasting(holders_words(note)))
    return room


def _room_for(asked: Asked, progress: Callable[[str], None]) -> Room:
    def need() -> Interval | None:
        if not (asked.workload and asked.recipe):
            return None
        return known_need(asked.workload, asked.recipe, asked.visible)

    if asked.waits:
        found = wait_for_room(asked.visible, need=need, progress=progress)
    else:
        found = look(asked.visible)
        refuse(found.cards)
    held = tuple(one for one in found.cards if one.is_shared)
    if not held:
        trouble = (words.trouble_words(found.trouble),) if found.trouble else ()
        return Room(asked=asked, notes=trouble)
    variables = growth(asked)
    setting = " ".join(f"{name}={value}" for name, value in variables.items())
    wanted = need()
    parts = [
        *(words.sentence(one) for one in held),
        words.need_words(wanted, held) if wanted else "",
        words.growth_words(setting) if variables else "",
    ]
    return Room(asked=asked, held=held, variables=variables, notes=(words.told(parts),))


def growth(asked: Asked, environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Let a child take memory step by step, where neither recipe nor user has said how.

    Args:
        asked: The run.
        environment: The variables that the child inherits; those of this process when None.
    """
    given, recipe = os.environ if environment is None else environment, asked.recipe
    if (
        recipe is None
        or recipe.memory_growth
        or recipe.memory_limit_bytes
        or recipe.memory_fraction
    ):
        return {}
    name, value = JAX_GROWTH if asked.on_jax else GROWTH
    own = JAX_OWN if asked.on_jax else (name,)
    return {} if any(one in given for one in own) else {name: value}


def is_of_memory(error: TfdynoError) -> bool:
    """Return whether a child says that it got less memory than it needs, by the doctor's rules."""
    from tfdyno.rules.causes import cause
    from tfdyno.rules.log.explained import scan

    return bool(scan([str(error)], map(cause, MEMORY_CAUSES), ()).hits)


def is_of_card(error: TfdynoError) -> bool:
    """Return whether it may be a card's: it names one, or is a crash; no other mistake of code."""
    return isinstance(error, ToolError) or any(word in str(error).lower() for word in CARD_WORDS)


def visible_to(recipe_variables: Mapping[str, str]) -> str | None:
    """Return ``CUDA_VISIBLE_DEVICES`` of a child with these variables over this process's."""
    name = "CUDA_VISIBLE_DEVICES"
    return recipe_variables.get(name, os.environ.get(name))


def known_need(workload: Workload, recipe: Recipe, visible: str | None) -> Interval | None:
    """Return bytes of a card that TensorFlow would take with memory growth; None: nothing is kept.

    Only where one card trains: a batch that is shared among several is another question. What a
    recipe holds back or computes again to a budget (``remat = "8GiB"``, ``ema``, float8) is not in
    the estimate.

    Args:
        workload: What would run.
        recipe: Its settings.
        visible: ``CUDA_VISIBLE_DEVICES`` of the run; None: all cards.
    """
    from tfdyno.jobs.choose import estimate as estimating
    from tfdyno.jobs.choose.trace import kept_trace
    from tfdyno.jobs.holders.found_cards import found_cards

    if recipe.remat_budget_bytes or recipe.ema or recipe.precision == "float8":
        return None
    try:
        found = found_cards(visible=visible)
        traced = kept_trace(replace(workload, remat=recipe.remat)) if found else None
        if traced is None or recipe.replica_count(len(found)) > 1:
            return None
        asked = estimating.EstimateRequest(
            workload=traced,
            gpus=(found[0].gpu,),
            batch_size=recipe.batch_size,
            precision=recipe.precision if recipe.precision in PRECISIONS else "",
            execution="" if recipe.execution == "auto" else recipe.execution,
            route="quick",
            verify=False,
        )
        answer = estimating.estimate(asked).estimates[0]
    except TfdynoError:  # a slice, a card that is not in the catalogue, a batch that cannot be
        return None
    return answer.process_memory_bytes or answer.device_memory_bytes
