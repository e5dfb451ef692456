"""One step of a Keras model under JAX."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import jax
import jaxlib
import numpy as np

from gpu_truth.running import NoDeviceError, Running

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Model, Tensor, Value

SIZES = (
    "argument_size_in_bytes", "output_size_in_bytes", "temp_size_in_bytes", "alias_size_in_bytes",
)  # fmt: skip
PRODUCTS = {"float32": "highest", "tf32": "tensorfloat32"}


def prepare(precision: str, device: str) -> None:
    """Set what has to be set before the first array.

    Raises:
        NoDeviceError: JAX sees no card.
    """
    platform = jax.devices()[0].platform
    if device == "gpu" and platform != "gpu":
        raise NoDeviceError(f"JAX {jax.__version__} sees no GPU, it would run on {platform}")
    jax.config.update("jax_default_matmul_precision", PRODUCTS.get(precision, "default"))


def running(model: Model, x: Tensor, y: Tensor, step: dict[str, Any], device: str) -> Running:
    """Compile the step."""
    card = jax.devices()[0]
    x, y = jax.device_put(x, card), jax.device_put(y, card)
    if step["mode"] == "train":
        model.optimizer.build(model.trainable_variables)
        model._symbolic_build(data_batch=(x, y))
        kinds = ("trainable_variables", "non_trainable_variables")
        held = [getattr(model, kind) for kind in kinds]
        held += [model.optimizer.variables, model.metrics_variables]
        state = tuple([variable.value for variable in part] for part in held)
        train = jax.jit(lambda s, a, b: model.train_step(s, (a, b)), donate_argnums=0)
        program = train.lower(state, x, y).compile()
        kept = [state]

        def call() -> Value:
            logs, kept[0] = program(kept[0], x, y)
            return logs["loss"]

    else:
        weights = tuple(
            [variable.value for variable in part]
            for part in (model.trainable_variables, model.non_trainable_variables)
        )
        infer = jax.jit(lambda s, a: model.stateless_call(s[0], s[1], a, training=False)[0])
        program = infer.lower(weights, x).compile()

        def call() -> Value:
            return program(weights, x)

    def wait(result: Value) -> float:
        return float(np.asarray(jax.tree.leaves(result)[0].ravel()[0]))

    def memory() -> tuple[int, int]:
        told = card.memory_stats()
        return told["bytes_in_use"], told["peak_bytes_in_use"]

    plan = program.memory_analysis()
    sizes = {name: int(getattr(plan, name)) for name in SIZES if hasattr(plan, name)}
    return Running(
        call=call,
        wait=wait,
        memory=memory if device == "gpu" else None,
        reset_memory=lambda: None,  # JAX has no such call: its peak is that since the start
        facts={**_versions(), **({"xla_memory": sizes} if sizes else {})},
    )


def _versions() -> dict[str, object]:
    told = {"framework_version": jax.__version__, "jaxlib_version": jaxlib.__version__}
    with contextlib.suppress(Exception):  # no public call tells them, and only CUDA builds know
        from jax._src.lib import cuda_versions

        told["cuda"] = str(cuda_versions.cuda_runtime_get_version())
        told["cudnn"] = str(cuda_versions.cudnn_get_version())
    return dict(told)
