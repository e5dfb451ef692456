"""Keras 2 under the names of Keras 3, so that the other modules need to know one Keras only.

Keras 2 is what TensorFlow up to 2.15 brings, and what ``TF_USE_LEGACY_KERAS=1`` or ``import
tf_keras`` choose later on. Its models are traced by the TensorFlow path.
"""

from __future__ import annotations

import os
import sys
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.runtime.base.replaced import replaced

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from tfdyno.core.base.untyped import Model, Tensor, Value

LEGACY = "tf_keras"


def reason_against_jax(reference: str) -> str:
    """Return why this interpreter cannot trace the workload on the JAX backend; empty if it can.

    Answers from the names of packages: nothing heavy is imported.
    """
    if _wants_legacy(reference):
        return f"it asks for Keras 2 ({LEGACY})"
    version = _keras_version()
    if version and version < 3:
        return f"Keras {metadata.version('keras')} has no JAX backend"
    if not version or not find_spec("jax"):
        return f"{'jax' if version else 'keras'} is not installed for {sys.executable}"
    return ""


def adapt(reference: str) -> None:
    """Give Keras 2 the names that the other modules use, if it is what the workload uses."""
    if _wants_legacy(reference):
        import tf_keras

        sys.modules["keras"] = tf_keras
    import keras

    if not keras.__version__.startswith("2"):
        return
    model = keras.Model
    model.compiled = property(lambda self: bool(self._is_compiled))
    model._inputs_struct = property(lambda self: getattr(self, "_nested_inputs", None))
    model._outputs_struct = property(lambda self: getattr(self, "_nested_outputs", None))
    model._build_shapes_dict = property(_build_shapes)


def is_keras2() -> bool:
    """Return whether ``import keras`` means Keras 2."""
    import keras

    return str(keras.__version__).startswith("2")


def output_of(model: Model, x: Tensor) -> Value:
    """Return what the model returns for a structure of ``Leaf``, as tensors without values."""
    import tensorflow as tf

    specs = tf.nest.map_structure(lambda leaf: tf.TensorSpec((2, *leaf.shape), leaf.dtype), x)
    call = tf.function(lambda inputs: model(inputs, training=False), autograph=False)
    return call.get_concrete_function(specs).structured_outputs


def forced_policy(policy: str, notes: list[str], sentence: str) -> AbstractContextManager[None]:
    """Set the dtype policy and ignore what the user's code sets; ``sentence`` takes its name."""
    import keras
    import tensorflow as tf

    keras.mixed_precision.set_global_policy(policy)

    def guarded(asked: Value) -> None:
        name = getattr(asked, "name", asked)
        if name != policy and not notes:
            notes.append(sentence.format(name))

    modules = (keras.mixed_precision, tf.keras.mixed_precision)
    return replaced(*((module, "set_global_policy", guarded) for module in modules))


def _build_shapes(model: Model) -> dict[str, Any] | None:
    shape = getattr(model, "_build_input_shape", None)
    return {"input_shape": tuple(shape)} if shape is not None else None


def _wants_legacy(reference: str) -> bool:
    if not find_spec(LEGACY):
        return False
    if os.environ.get("TF_USE_LEGACY_KERAS", "").lower() in ("1", "true"):
        return True
    path = Path(reference.partition(":")[0])
    return path.suffix == ".py" and path.is_file() and LEGACY.encode() in path.read_bytes()


def _keras_version() -> int:
    try:
        return int(metadata.version("keras").partition(".")[0])
    except (metadata.PackageNotFoundError, ValueError):
        return 0
