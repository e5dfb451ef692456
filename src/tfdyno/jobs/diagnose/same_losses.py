"""Whether two recipes learn the same: a few steps under each, with the same seed."""

from __future__ import annotations

import math
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.messages.bench import LOSSES, TellLosses
from tfdyno.core.recipe.recipe import diff
from tfdyno.core.train.jax_plan import JaxPlan
from tfdyno.core.train.training import NAN_LOSS, NAN_WEIGHTS, RunSettings
from tfdyno.jobs.child.recipe_env import recipe_environment
from tfdyno.jobs.child.worker import run_child, silent
from tfdyno.jobs.choose.trace import interpreter
from tfdyno.jobs.holders.guard import Asked, guarded, visible_to
from tfdyno.jobs.train.train import TrainRequest, train
from tfdyno.rules.agreement import agreement, tolerance
from tfdyno.words.base.language import say
from tfdyno.words.diagnose.told import stage_words

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.choose.workload import Workload
    from tfdyno.core.measure.fix_proof import Agreement
    from tfdyno.core.measure.software import Backend
    from tfdyno.core.recipe.recipe import Recipe

EPOCHS = 2
"""What a cache keeps is read from the second on."""
STEPS = 8
"""The steps of an epoch: small errors of a wrong step grow large in a few updates."""
LEAST_STEPS = 4
SEED = 7
"""Where neither the recipe nor the script sets one."""
LOSS = "loss"
FIRST_WEIGHTS = "first.npz"
"""The weights of the first training; all others begin with them."""
LOOP_LIMIT_S = 3600.0
"""The time for imports, the user's code up to its loop and the few steps; it ends what hangs for
ever."""


class SameLosses:
    """Trains each recipe once, and the unchanged one twice where it does not repeat itself.

    A loop of the script's own is run as it is for as many steps, each of which tells its loss; like
    those of an epoch they are compared by their mean.
    """

    def __init__(
        self,
        workload: Workload,
        *,
        folder: Path,
        batch_size: int,
        steps_per_epoch: int,
        is_loop: bool = False,
        backend: Backend = "tensorflow",
    ) -> None:
        """Train nothing yet.

        Args:
            workload: What is trained.
            folder: Exists; for the weights that all begin with, and for their runs.
            batch_size: Of it without a recipe; 0: not known.
            steps_per_epoch: Of its data; 0: not known.
            is_loop: Whether it is trained by a loop of its own.
            backend: Of Keras. On JAX it trains on one device, as a bench measures there.
        """
        self._workload, self._is_loop = workload, is_loop
        self._jax = JaxPlan(host_devices=1) if backend == "jax" else None
        self._ran = 0
        """Steps of a loop that ended before."""
        self._batch_size, self._steps_per_epoch = batch_size, steps_per_epoch
        self._known: dict[tuple[Recipe, int, int], list[float]] = {}
        self._folder = folder

    def of(self, base: Recipe, changed: Recipe, progress: Callable[[str], None]) -> Agreement:
        """Compare the losses under two recipes after as many samples.

        Raises:
            TfdynoError: The workload cannot be trained under one of them.
            KeyboardInterrupt: The training was ended from outside.
        """
        allowed = tolerance(diff(base, changed))
        before_steps, after_steps = self.steps(base, changed)
        before = self._losses(base, before_steps, progress)
        after = self._losses(changed, after_steps, progress)
        ran = self._ran or EPOCHS * before_steps
        found = agreement(before, after, allowed, steps=ran)
        if found.agrees or not before:
            return found
        again = self._losses(base, before_steps, progress, number=1)
        return agreement(before, after, allowed, again=again, steps=ran)

    def steps(self, base: Recipe, changed: Recipe) -> tuple[int, int]:
        """Count steps of an epoch under each, so that both see as many samples."""
        if self._is_loop:  # it makes its own batches, and knows of no epochs
            return STEPS, STEPS
        sizes = [one.batch_size or self._batch_size or 1 for one in (base, changed)]
        several = math.lcm(base.steps_per_execution, changed.steps_per_execution)
        if sizes[0] == sizes[1]:
            most = min(STEPS, self._steps_per_epoch or STEPS)
            return (several * math.ceil(most / several),) * 2
        samples = math.lcm(*sizes) * several
        samples *= math.ceil(LEAST_STEPS * max(sizes) / samples)
        return samples // sizes[0], samples // sizes[1]

    def _losses(
        self, recipe: Recipe, steps: int, progress: Callable[[str], None], *, number: int = 0
    ) -> list[float]:
        key = (recipe, steps, number)
        if key not in self._known:
            self._known[key] = self._trained(recipe, steps, progress)
        return self._known[key]

    def _trained(self, recipe: Recipe, steps: int, progress: Callable[[str], None]) -> list[float]:
        def told(line: str) -> None:
            if not line.startswith("{"):  # an event of the training itself
                progress(say("comparing losses: {stage}", stage=stage_words(line)))

        seeded = replace(recipe, seed=SEED if recipe.seed is None else recipe.seed)
        if self._is_loop:
            return self._of_loop(seeded, steps, told)
        with tempfile.TemporaryDirectory(prefix="run-", dir=self._folder) as folder:
            settings = RunSettings(
                output=str(Path(folder) / "run"), epochs=EPOCHS, steps_per_epoch=steps,
                save_model=False, keep=1, only_losses=True,
                first_weights=str(self._folder / FIRST_WEIGHTS),
            )  # fmt: skip
            request = TrainRequest(
                workload=self._workload, settings=settings, jax=self._jax,
                recipe=_on_one_card(seeded) if self._jax else seeded,
            )  # fmt: skip
            outcome = train(request, progress=told).outcome
        if outcome.stopped not in ("", NAN_LOSS, NAN_WEIGHTS):
            raise KeyboardInterrupt
        losses = [math.nan if one is None else one for one in outcome.history.get(LOSS, ())]
        # A loss of weights that are NaN says nothing of what was learned.
        return [*losses[:-1], math.nan] if outcome.stopped == NAN_WEIGHTS else losses

    def _of_loop(self, recipe: Recipe, steps: int, progress: Callable[[str], None]) -> list[float]:
        """Return the mean loss of as many steps as an epoch has, for each of the epochs."""
        variables = recipe_environment(recipe)
        asked = Asked(visible=visible_to(variables), recipe=recipe)
        with guarded(asked, tell=silent) as room:
            found = run_child(
                LOSSES,
                TellLosses(workload=self._workload, recipe=recipe, steps=EPOCHS * steps),
                progress=progress,
                timeout_s=LOOP_LIMIT_S,
                python=interpreter(self._workload),
                env=variables | room.variables,
                doing=f"comparing losses of {self._workload.reference}",
                hide_gpu=False,
            )
        self._ran = len(found)
        parts = [found[at : at + steps] for at in range(0, len(found), steps)]
        return [math.fsum(part) / len(part) for part in parts]


def _on_one_card(recipe: Recipe) -> Recipe:
    """Show JAX the first of the cards that it would see: it shares a batch among all of them."""
    visible = visible_to(recipe_environment(recipe)) or "0"
    return replace(recipe, visible_devices=visible.split(",")[0])
