"""A training on Keras' JAX backend: its devices and layout, and what it can be told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.core.base import settings
from tfdyno.core.base.errors import UsageError
from tfdyno.core.recipe.recipe import Recipe, diff
from tfdyno.core.train.device_mesh import DeviceMesh, filled
from tfdyno.core.train.layout import Rule, check_rules
from tfdyno.core.train.search_space import typed_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.measure.software import Backend
    from tfdyno.core.train.training import RunSettings

BACKENDS = ("tensorflow", "jax")
MEANINGS = {
    "precision": "Keras' dtype policy, or its quantize for float8; float32 and tf32 set "
    "jax_default_matmul_precision",
    "execution": "JAX compiles every step with XLA: auto and xla are the same",
    "batch_size": "samples of each replica of the mesh",
    "accumulation": "gradient_accumulation_steps of the optimizer",
    "remat": "jax.checkpoint around the blocks or the named layers; no budget of bytes",
    "ema": "use_ema and ema_momentum of the optimizer, moved by updates alone",
    "ema_overwrite": "ema_overwrite_frequency of the optimizer, in updates",
    "clip_norm": "global_clipnorm of the optimizer",
    "loss_scale": "loss_scale_factor of the optimizer, instead of LossScaleOptimizer",
    "steps_per_execution": "that of compile: batches of one call of the compiled step",
    "memory_growth": "XLA_PYTHON_CLIENT_PREALLOCATE=false",
    "memory_fraction": "XLA_PYTHON_CLIENT_MEM_FRACTION",
    "visible_devices": "CUDA_VISIBLE_DEVICES",
    "deterministic": "--xla_gpu_deterministic_ops=true in XLA_FLAGS; on a CPU JAX is so anyway",
    "seed": "keras.utils.set_random_seed",
    "retreat": "the same as on TensorFlow",
    "input.prefetch": "on the tf.data pipeline that fit is given",
    "input.parallel_calls": "on the tf.data pipeline that fit is given",
    "input.cache": "on the tf.data pipeline that fit is given",
    "input.shuffle_buffer": "on the tf.data pipeline that fit is given",
    "input.deterministic": "on the tf.data pipeline that fit is given",
    "input.private_threads": "on the tf.data pipeline that fit is given",
}
"""What each setting of a recipe is on JAX."""
_MESH = "Keras' distribution stands for it there", "use --mesh, as --mesh data=2"
_THREADS = "XLA takes the cores that the process may run on", "limit those, as by taskset"
WITHOUT = {
    "strategy": _MESH,
    "devices": _MESH,
    "memory_limit_bytes": ("JAX takes a part of a card, not so many bytes", "use memory_fraction"),
    "threads_intra": _THREADS,
    "threads_inter": _THREADS,
}
"""Why a setting does not exist on JAX, and what to do."""
MOST_HOST_DEVICES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class JaxPlan:
    """Over what and how a model is split."""

    mesh: DeviceMesh | None = None
    """None: all devices split the batch."""
    rules: tuple[Rule, ...] = ()
    """The rules of the layout; empty: those that tfdyno proposes, where the mesh has an axis for a
    model."""
    host_devices: int = 0
    """Parts of each process' CPU that stand for devices; 0: one, or as XLA_FLAGS says."""
    write_layout: str = ""
    """File that the rules are written to; empty: only to the folder of the run."""

    def __post_init__(self) -> None:
        """Refuse what splits no weight though it is about that; raises ``UsageError``."""
        if self.rules and not self.mesh:
            what = "--layout splits weights along axes, and there is no mesh"
            raise UsageError(what, remedy="name its axes, as --mesh data=2,model=2")
        if self.write_layout and not self.splits_weights:
            what = f"--write-layout {self.write_layout} keeps rules, and no weight is split"
            raise UsageError(what, remedy="name an axis for the model, as --mesh data=2,model=2")
        if not 0 <= self.host_devices <= MOST_HOST_DEVICES:
            what = f"--host-devices {self.host_devices} is not possible"
            raise UsageError(what, remedy=f"give 1 to {MOST_HOST_DEVICES}")

    def whole_mesh(self, devices: int) -> DeviceMesh:
        """Make the mesh over all devices; raises ``UsageError`` where it, or a rule, is wrong."""
        mesh = filled(self.mesh, devices)
        check_rules(self.rules, mesh)
        return mesh

    @property
    def splits_weights(self) -> bool:
        """Whether the mesh has an axis beside that of the data."""
        return bool(self.mesh and (self.rules or self.mesh.model_names))


def backend_named(name: str) -> Backend:
    """Return one of ``BACKENDS``, whose name was checked."""
    return "jax" if name == "jax" else "tensorflow"


def check_backend(backend: str, given: Sequence[str]) -> str:
    """Return the backend that is meant.

    Args:
        backend: As typed.
        given: Options of JAX alone that were given, as they are typed.

    Raises:
        UsageError: There is no such backend, or an option would do nothing.
    """
    found = settings.one_of(backend.lower(), BACKENDS, "backend")
    if found == "tensorflow" and given:
        raise UsageError(
            f"{given[0]} does nothing on the TensorFlow backend",
            why="keras.distribution splits weights on JAX alone, and every device would hold all",
            remedy="add --backend jax",
        )
    return found


def known_backend(name: str, source: str, line: int = 0) -> str:
    """Return a backend that the user's code or variables name; empty: they name none.

    Args:
        name: As it is written there.
        source: The file or the variable.
        line: Of the file; 0: the whole.

    Raises:
        UsageError: Nothing is trained on it here.
    """
    found = name.strip().lower()
    if found and found not in BACKENDS:
        raise UsageError(
            f"Keras would run on {name} here, and tfdyno trains on TensorFlow or JAX",
            why=f"line {line} of {source} names it" if line else f"{source} names it",
            remedy="name one of them with --backend",
        )
    return found


def check_recipe(recipe: Recipe) -> None:
    """Refuse settings that mean nothing on JAX; raises ``UsageError``."""
    for name, (_, value) in diff(Recipe(), recipe).items():
        if name in WITHOUT:
            why, remedy = WITHOUT[name]
            what = f"{name} = {typed_value(value)} means nothing on the JAX backend"
            raise UsageError(what, why=why, remedy=f"leave it out; {remedy}")
    if recipe.execution == "graph":
        why = "JAX compiles every step with XLA"
        raise UsageError("execution = graph means nothing on the JAX backend", why=why,
                         remedy="leave it out")  # fmt: skip
    if recipe.remat_budget_bytes:
        what = f"remat = {recipe.remat} cannot be planned on the JAX backend"
        why = "what activations take is known of TensorFlow's steps alone"
        raise UsageError(what, why=why, remedy="use remat = blocks, or name layers")


def check_settings(settings_of_run: RunSettings) -> None:
    """Refuse what is not written on JAX; raises ``UsageError``."""
    for name, value in (
        ("--norms", settings_of_run.norms_steps), ("--tensorboard", settings_of_run.tensorboard)
    ):  # fmt: skip
        if value:
            what = f"{name} does not go with the JAX backend"
            raise UsageError(what, why="it reads TensorFlow's step",
                             remedy="use keras.callbacks.TensorBoard in the script")  # fmt: skip
