"""Attention as Keras runs it on JAX on a card that has cuDNN's: one call that keeps no scores.

Keras and KerasHub ask for the card, its compute capability and the version of cuDNN, and call
``jax.nn.dot_product_attention`` by that. Here they are told of a card that is not there; the call
stands in the traced step under a name of our own, forward and backward.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from tfdyno.core.messages.trace import FUSED_STEPS, FUSES, FUSES_WIDE, NARROW
from tfdyno.kernels.flops import ATTENTION, BACKWARD, CAUSAL
from tfdyno.runtime.base.jax_internals import cudnn_checks
from tfdyno.runtime.base.replaced import replaced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tfdyno.core.base.untyped import Tensor, Value
    from tfdyno.runtime.trace.step_jax import Lowered

WITHOUT = 7.5
"""Compute capability of the last cards without cuDNN's attention."""
CARD = SimpleNamespace(platform="gpu", device_kind="told", id=0)


@dataclass(slots=True)
class Seen:
    """What was asked for while a step was traced."""

    fused: int = 0
    """Calls that cuDNN takes on the card that was told."""
    possible: int = 0
    """Calls in 16 bits, which other cards may fuse."""
    widest: int = 0
    """Of the heads of what was fused."""


@contextlib.contextmanager
def attention_on(capability: float) -> Iterator[Seen]:
    """Let Keras choose its attention as on a card of this compute capability, and count the calls.

    A JAX that asks for cuDNN in another way is left alone.
    """
    seen, whole = Seen(), jax.nn.dot_product_attention

    def attention(query: Tensor, key: Tensor, value: Tensor, **options: Any) -> Tensor:
        seen.possible += jnp.dtype(query.dtype).itemsize == 2
        as_keras = query.ndim == 4 and not options.get("return_residual")
        if options.get("implementation") != "cudnn" or not as_keras:
            return whole(query, key, value, **options)
        seen.fused += 1
        seen.widest = max(seen.widest, query.shape[-1])
        return _fused(query, key, value, **options)

    with contextlib.ExitStack() as told:
        with contextlib.suppress(ImportError, AttributeError):
            told.enter_context(cudnn_checks(capability))
            told.enter_context(
                replaced(
                    (jax, "devices", lambda *_: [CARD]),
                    (jax.nn, "dot_product_attention", attention),
                )
            )
        yield seen


def lower_fused(lower: Callable[[], Lowered], folder: Path) -> None:
    """Write the step of cards with cuDNN's attention, once for each width of heads if they differ.

    Args:
        lower: Lowers the step; called once or twice.
        folder: Gets ``FUSED_STEPS``, those that there are.
    """
    fused, wide = (folder / f"{name}.mlirbc" for name in FUSED_STEPS)
    with attention_on(FUSES_WIDE) as seen:
        step = lower()
    if seen.fused and seen.widest > NARROW:
        wide.write_bytes(step.bytecode)
        with attention_on(FUSES) as seen:
            step = lower()
    if seen.fused:
        fused.write_bytes(step.bytecode)


def _fused(
    query: Tensor, key: Tensor, value: Tensor, *, bias: Tensor | None = None,
    mask: Tensor | None = None, is_causal: bool = False, **_: Any,
) -> Tensor:  # fmt: skip
    """Return the result of a call that stands for cuDNN's, which takes a mask as a bias."""
    if mask is not None:
        least = jnp.finfo(query.dtype).min
        masked = jnp.where(mask, jnp.asarray(0, query.dtype), jnp.asarray(least, query.dtype))
        bias = masked if bias is None else bias + masked
    more = () if bias is None else (jax.lax.stop_gradient(bias),)
    return _attention(CAUSAL if is_causal else "", query, key, value, *more)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _attention(how: str, query: Tensor, key: Tensor, value: Tensor, *bias: Tensor) -> Tensor:
    return _forward(how, query, key, value, *bias)[0]


def _forward(how: str, query: Tensor, key: Tensor, value: Tensor, *bias: Tensor) -> Value:
    """Return the result, and what the backward pass keeps of the softmax of each query."""
    batch, tokens, heads, _ = query.shape
    kept = jax.ShapeDtypeStruct((batch, heads, tokens), jnp.float32)
    call = jax.ffi.ffi_call(f"{ATTENTION}.forward{how}", (_like(query), kept))
    return call(query, key, value, *bias)


def _forward_kept(how: str, *arguments: Tensor) -> Value:
    result, kept = _forward(how, *arguments)
    return result, (*arguments, result, kept)


def _backward(how: str, kept: Value, gradient: Tensor) -> Value:
    """Return the gradients of queries, keys and values; cuDNN adds those of queries in float32."""
    query, key, value, *bias = kept[:-2]
    scratch = jax.ShapeDtypeStruct(query.shape, jnp.float32)
    results = (_like(query), _like(key), _like(value), scratch)
    call = jax.ffi.ffi_call(f"{ATTENTION}{BACKWARD}{how}", results)
    return (*call(*kept, gradient)[:3], *(jnp.zeros_like(one) for one in bias))


_attention.defvjp(_forward_kept, _backward)


def _like(tensor: Tensor) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(tensor.shape, tensor.dtype)
