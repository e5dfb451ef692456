"""Where trials are measured: looked at once, before minutes of runs that would not compare."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.errors import TfdynoError, UsageError
from tfdyno.core.messages.bench import PLACE, PLACE_ON_JAX
from tfdyno.core.messages.child import Nothing
from tfdyno.core.messages.tune import LookHere
from tfdyno.core.train.jax_plan import JaxPlan
from tfdyno.jobs.bench.sides import SAME_PLACE
from tfdyno.jobs.child.recipe_env import environment_of, recipe_environment
from tfdyno.jobs.child.worker import run_child
from tfdyno.jobs.choose.trace import interpreter
from tfdyno.jobs.train.jax_run import jax_environment
from tfdyno.probe.base.host import this_host
from tfdyno.probe.machine.fingerprint import memory_bytes
from tfdyno.words.base.language import say
from tfdyno.words.train.tune_notes import note_words

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tfdyno.core.measure.measurement import Environment
    from tfdyno.jobs.tune.request import Node, TuneRequest

LOOK_LIMIT_S = 600.0
"""The time for an import of TensorFlow or JAX, on a cold disk."""
HOST_RATIO = 0.9
"""The share of the machine's memory that a run on CPUs may take before it is ended."""
_OF_ONE = ("host", "container_image")
"""What may differ between two places that measure alike."""


def look_here(asked: LookHere, progress: Callable[[str], None]) -> Environment:
    """Return where a run would be made on this machine; raises ``TfdynoError``."""
    variables = recipe_environment(asked.recipe)
    is_jax = asked.backend == "jax"
    if is_jax:
        variables |= jax_environment(JaxPlan(), asked.recipe)
    found = run_child(
        PLACE_ON_JAX if is_jax else PLACE,
        Nothing(),
        progress=progress,
        timeout_s=LOOK_LIMIT_S,
        python=interpreter(asked.workload),
        env=variables,
        doing="looking at this machine",
        hide_gpu=False,
    )
    return environment_of(found, variables)


def difference(before: Environment, now: Environment, *, is_one: bool = False) -> str:
    """Return what decides the speed and is not as it was, in words; empty: nothing.

    Args:
        before: Where something was measured.
        now: Where something would be.
        is_one: Whether it has to be the same host too, as for runs of one measurement.
    """
    for name in SAME_PLACE:
        old, new = getattr(before, name), getattr(now, name)
        if old != new and (is_one or name not in _OF_ONE):
            return f"{name} was {_shown(old)} and is {_shown(new)}"
    return ""


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return " + ".join(getattr(one, "name", str(one)) for one in value) or "none"
    return str(value) if value not in ("", None) else "none"


def limit_here(limit_bytes: int, *, on_cpu: bool) -> int:
    """Return resident memory that a run may take here: as asked, else most of what there is.

    0 on a card, whose own memory the framework limits.
    """
    if not on_cpu:
        return 0
    return limit_bytes or int(HOST_RATIO * memory_bytes(this_host()))


class Places:
    """Where each node is; every one is looked at once, when that is first asked."""

    def __init__(self, request: TuneRequest, progress: Callable[[str], None]) -> None:
        """Know nothing yet."""
        self._request, self._progress = request, progress
        self._known: dict[str, Environment] = {}

    def of(self, node: Node) -> Environment:
        """Return the place of a node; raises ``TfdynoError`` where it cannot be looked at."""
        if node.name not in self._known:
            self._progress(
                say("looking at node {node}", node=node.name)
                if node.name
                else say("looking at this machine")
            )
            asked = LookHere(
                workload=self._request.workload, recipe=self._request.recipe,
                backend=self._request.backend,
            )  # fmt: skip
            self._known[node.name] = node.look(asked, self._progress)
        return self._known[node.name]

    def told(self, node: Node, place: Environment) -> None:
        """Take what the runs of the start told, where nobody looked: they were made just now."""
        self._known.setdefault(node.name, place)

    def refuse_other(self, node: Node, place: Environment) -> None:
        """Refuse to go on with a study that was measured elsewhere; raises ``UsageError``."""
        if other := difference(place, self.of(node)):
            raise _elsewhere(self._request, other)

    def alike(
        self, nodes: Sequence[Node], place: Environment
    ) -> tuple[tuple[Node, ...], tuple[str, ...]]:
        """Return the nodes that are as a place is, and a sentence for each of the others."""
        found, left_out = [], []
        for node in nodes:
            try:
                why = difference(place, self.of(node))
            except TfdynoError as error:
                why = str(error).rstrip(".")
            if why:
                left_out.append(f"Node {node.name} is left out: {why}.")
                self._progress(note_words(left_out[-1], ()))
            else:
                found.append(node)
        return tuple(found), tuple(left_out)

    def those_of(self, nodes: Sequence[Node], place: Environment) -> tuple[Node, ...]:
        """Return nodes that can go on with a study; raises ``UsageError`` where there is none."""
        if len(nodes) == 1:
            self.refuse_other(nodes[0], place)
            return tuple(nodes)
        found, left_out = self.alike(nodes, place)
        if not found:
            raise _elsewhere(self._request, left_out[0].partition(": ")[2])
        return found


def _elsewhere(request: TuneRequest, why: str) -> UsageError:
    return UsageError(
        f"the study in {request.folder} cannot go on here", why=why,
        remedy="go on where it began, or give another --output",
    )  # fmt: skip
