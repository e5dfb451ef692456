"""JAX over all processes and devices of a training, before the user's code makes anything."""

from __future__ import annotations

import contextlib
import platform
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.core.train.device_mesh import DeviceMesh
from tfdyno.process.failure import first_line
from tfdyno.runtime.base.replaced import ignored, replaced

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from tfdyno.core.measure.software import Software
    from tfdyno.core.recipe.recipe import Recipe
    from tfdyno.core.train.jax_plan import JaxPlan

MATMUL = {"float32": "highest", "tf32": "tensorfloat32"}
"""What ``jax_default_matmul_precision`` is for a precision; JAX chooses for the others."""
INSTALL_GPU = "pip install 'jax[cuda12]' on every node"


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """All devices of a training, and this process' place."""

    mesh: DeviceMesh
    distribution: Any
    """Keras' own, which is set; None on one device, where plain Keras has none."""
    rank: int = 0
    process_count: int = 1


def begin(
    plan: JaxPlan, recipe: Recipe, *, addresses: Sequence[str], rank: int, gpus: int
) -> World:
    """Meet the other processes in JAX and set Keras' distribution.

    Args:
        plan: Mesh and rules.
        recipe: Its seed and its precision are set.
        addresses: ``host:port`` of every process; empty: there is one.
        rank: Of this one.
        gpus: That each process has to have.

    Raises:
        UsageError: JAX or Keras 3 is missing or has no GPU, or the mesh does not fit the devices.
        ToolError: The processes do not come together.
    """
    _import()
    import jax
    import keras

    _hide_cards_from_tensorflow()
    keras.utils.set_random_seed(recipe.seed or 0)
    if recipe.precision in MATMUL:
        jax.config.update("jax_default_matmul_precision", MATMUL[recipe.precision])
    if len(addresses) > 1:
        _meet(addresses, rank)
    _check_cards(gpus)
    mesh = plan.whole_mesh(jax.device_count())
    count = jax.process_count()
    if count == jax.device_count() == 1 and not plan.splits_weights:
        keras.distribution.set_distribution(None)  # steps over a mesh of one device take longer
        return World(mesh=mesh, distribution=None, rank=rank)
    from tfdyno.runtime.train_jax.layout import distribution_of

    distribution = distribution_of(plan, mesh)
    keras.distribution.set_distribution(distribution)
    return World(mesh=mesh, distribution=distribution, rank=rank, process_count=count)


def begin_alone(precision: str) -> None:
    """Import JAX for one process, which computes on one device as Keras does by itself.

    Args:
        precision: Of the recipe; empty: JAX chooses.

    Raises:
        UsageError: JAX or Keras 3 is missing.
    """
    _import()
    import jax

    _hide_cards_from_tensorflow()
    if precision in MATMUL:
        jax.config.update("jax_default_matmul_precision", MATMUL[precision])


def _import() -> None:
    try:
        import jax  # noqa: F401
        import keras
    except ImportError as error:
        remedy = "pip install 'tfdyno[trace]', or 'jax[cuda12]' and keras, on every node"
        raise UsageError("--backend jax needs JAX and Keras 3", why=first_line(error),
                         remedy=remedy) from None  # fmt: skip
    if keras.backend.backend() != "jax":
        why = f"Keras runs on {keras.backend.backend()}"
        raise UsageError("--backend jax needs Keras 3 on JAX", why=why)


def _hide_cards_from_tensorflow() -> None:
    """Hide the cards from TensorFlow, which only reads data here and would take their memory."""
    with contextlib.suppress(ImportError, RuntimeError):
        import tensorflow as tf

        tf.config.set_visible_devices([], "GPU")


def _meet(addresses: Sequence[str], rank: int) -> None:
    import jax
    import keras

    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    try:
        keras.distribution.initialize(",".join(addresses), len(addresses), rank)
    except Exception as error:
        what = f"JAX on worker {rank} does not reach worker 0 at {addresses[0]}"
        raise ToolError(what, why=first_line(error)) from None


def _check_cards(gpus: int) -> None:
    import jax

    if not gpus:
        return
    if jax.default_backend() != "gpu":
        why = f"it computes on {jax.default_backend()}, though {gpus} GPUs per node are asked for"
        raise UsageError("JAX sees no GPU", why=why, remedy=INSTALL_GPU)
    found = jax.local_device_count()
    if found != gpus:
        what = f"JAX sees {found} GPU{'s' * (found != 1)}, and the plan has {gpus} on each node"
        raise UsageError(what, remedy="look at CUDA_VISIBLE_DEVICES, or run tfdyno doctor there")


def unused_gpus(seen: int) -> list[str]:
    """Say that JAX computes on the CPU beside so many GPUs; nothing where it has one.

    Args:
        seen: NVIDIA GPUs that the machine shows to this process.
    """
    import jax

    if not seen or jax.default_backend() == "gpu":
        return []
    if seen == 1:
        return [f"JAX computes on the CPU, though this machine has a GPU: {INSTALL_GPU}."]
    return [f"JAX computes on the CPU, though this machine has {seen} GPUs: {INSTALL_GPU}."]


def distribution_held(notes: list[str]) -> AbstractContextManager[None]:
    """Let the user's code begin and set a distribution of its own to no effect.

    Args:
        notes: Receives a sentence for each that it does.
    """
    import keras

    place = keras.distribution
    said = {
        name: f"The code calls keras.distribution.{name}; --mesh holds."
        for name in ("initialize", "set_distribution")
    }
    return replaced(*((place, name, ignored(note, notes)) for name, note in said.items()))


def software() -> Software:
    """Return versions, and the devices that JAX has."""
    import jax
    import keras

    is_gpu = jax.default_backend() == "gpu"
    return {
        "tensorflow": getattr(sys.modules.get("tensorflow"), "__version__", ""),
        "keras": keras.__version__,
        "jax": jax.__version__,
        "python": platform.python_version(),
        "cuda": "",
        "cudnn": "",
        "device": "gpu" if is_gpu else "cpu",
        "devices": [str(one.device_kind) for one in jax.local_devices()] if is_gpu else ["CPU"],
    }
