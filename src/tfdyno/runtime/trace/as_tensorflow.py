"""Keras' JAX backend made to compute what its TensorFlow backend does, where the two differ.

The step is traced by JAX and stands for TensorFlow's:

- ReLU's gradient reads its result, JAX's what went in. Kept for the backward pass is then what the
  next layer keeps anyway, not one more tensor: with JAX's own gradient a VGG16 step held 1.2 times
  as much.
- The variance's gradient stops at the mean, as that of ``tf.nn.moments`` does; JAX's adds up once
  more what comes to zero, a pass over the activations for every normalisation.
- A variable that is transposed stays in its own type: only JAX's ``transpose`` calls ``convert``,
  where Keras casts to the policy's. The logits of an embedding used in reverse are float32 then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
from jax import lax
from jax import numpy as jnp

from tfdyno.runtime.base.keras_internals import backend_changed, without_autocast

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from tfdyno.core.base.untyped import Function, Tensor, Value
    from tfdyno.core.choose.program import Lowering

SIX = 6.0


@jax.custom_jvp
@jax.jit
def relu(x: jax.Array) -> jax.Array:
    """Return the larger of ``x`` and 0; the gradient is that of TensorFlow's ``ReluGrad``."""
    return lax.max(x, lax.full_like(x, 0))


@jax.custom_jvp
@jax.jit
def relu6(x: jax.Array) -> jax.Array:
    """Clip ``x`` between 0 and 6; the gradient is that of TensorFlow's ``Relu6Grad``."""
    return lax.min(lax.max(x, lax.full_like(x, 0)), lax.full_like(x, SIX))


relu.defjvps(lambda tangent, result, _: _where(result > 0, tangent))
relu6.defjvps(lambda tangent, result, _: _where((result > 0) & (result < SIX), tangent))


def as_tensorflow(lowering: Lowering) -> AbstractContextManager[None]:
    """Let Keras' JAX backend use them, for layers, activations and ``keras.ops`` alike.

    All but ReLU only for ``tensorflow``, the software of today: what is known of older software
    was learnt without.
    """
    import keras

    def converted(function: Function) -> Function:
        return lambda _own: lambda x: function(keras.ops.convert_to_tensor(x))

    changes = {"nn.relu": converted(relu), "nn.relu6": converted(relu6)}
    if lowering == "tensorflow":
        changes |= {"nn.moments": _moments, "numpy.transpose": _transpose}
    return backend_changed(changes)


def _moments(own: Function) -> Function:
    """Compute mean and variance, computed in float32 at least, in the type of ``x``."""

    def moments(
        x: jax.Array, axes: Value, keepdims: bool = False, synchronized: bool = False
    ) -> tuple[jax.Array, jax.Array]:
        if synchronized:
            return own(x, axes, keepdims, synchronized)
        narrow = str(x.dtype) in ("float16", "bfloat16")
        wide = x.astype("float32") if narrow else x
        mean = jnp.mean(wide, axes, keepdims=True)
        variance = jnp.mean(jnp.square(wide - lax.stop_gradient(mean)), axes, keepdims=True)
        found = [each if keepdims else jnp.squeeze(each, axes) for each in (mean, variance)]
        if narrow:
            most = jnp.finfo("float16").max
            found = [jnp.clip(each, -most, most).astype(x.dtype) for each in found]
        return found[0], found[1]

    return moments


def _transpose(own: Function) -> Function:
    """Transpose; a variable in its own type."""

    def transpose(x: Tensor, axes: Value = None) -> Value:
        with without_autocast():
            return own(x, axes)

    return transpose


def _where(chosen: jax.Array, tangent: jax.Array) -> jax.Array:
    return lax.select(chosen, tangent, lax.full_like(tangent, 0))
