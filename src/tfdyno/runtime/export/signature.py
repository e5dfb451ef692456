"""What a model takes when it is served: as it knows it, as was asked for, or as the data has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf
from keras import tree

from tfdyno.core.base.errors import UsageError
from tfdyno.process.failure import first_line, user_code
from tfdyno.runtime.base.keras_internals import input_signature

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfdyno.core.base.untyped import Model, Value

BUILD = "give --data, or --signature such as image=float32[batch,28,28,1]"


def spec_of(text: str) -> tf.TensorSpec:
    """Read ``image=float32[batch,28,28,1]``; raises ``UsageError``."""
    name, equals, rest = text.partition("=")
    dtype, bracket, sizes = rest.strip().rstrip("]").partition("[")
    try:
        if not (equals and bracket and name.strip().isidentifier()):
            raise ValueError(text)
        parts = [part.strip() for part in sizes.split(",") if part.strip()]
        shape = [int(part) if part.isdecimal() else None for part in parts]
        return tf.TensorSpec(shape, tf.as_dtype(dtype.strip()), name=name.strip())
    except (ValueError, TypeError):
        remedy = "write image=float32[batch,28,28,1]"
        raise UsageError(f"the signature '{text}' cannot be read", remedy=remedy) from None


def signature_of(
    model: Model,
    asked: Sequence[tf.TensorSpec],
    example: Mapping[str, Any] | None,
    title: str,
) -> list[Any]:
    """Return the model's positional arguments as structures of ``TensorSpec``.

    Args:
        model: A Keras model.
        asked: With ``--signature``.
        example: The first row of the data; None: there is no data.
        title: Of the model.

    Raises:
        UsageError: Nothing says what it takes, or what was asked for does not fit.
    """
    if not (model.built and _knows_inputs(model)):
        return _built_from(model, asked, example, title)
    try:
        found = input_signature(model)
    except (ValueError, TypeError) as error:
        raise UsageError(f"{title} has no signature", why=first_line(error), remedy=BUILD) from None
    found = tree.map_structure(_tensor_spec, list(found))
    return _with_types(found, asked, title) if asked else found


def _tensor_spec(spec: keras.InputSpec) -> tf.TensorSpec:
    return tf.TensorSpec(spec.shape, spec.dtype, name=spec.name)


def _knows_inputs(model: Model) -> bool:
    known = isinstance(model, keras.Sequential) or hasattr(model, "_inputs_struct")
    return known or bool(getattr(model, "_called", False))


def _built_from(
    model: Model,
    asked: Sequence[tf.TensorSpec],
    example: Mapping[str, Any] | None,
    title: str,
) -> list[Any]:
    """Return what a model takes that was never called: as asked, or as the data has it."""
    if not asked and example is None:
        why = "it was never called, so nothing says what it takes"
        raise UsageError(f"{title} has no signature", why=why, remedy=BUILD)
    specs = tuple(asked) or specs_of_data(example or {})
    single = len(specs) == 1
    signature: Any = specs[0] if single else {spec.name: spec for spec in specs}
    with user_code(title):
        model(tree.map_structure(_zeros, signature), training=False)
    return [signature]


def _zeros(spec: tf.TensorSpec) -> Value:
    shape = [1 if size is None else size for size in spec.shape]
    return tf.fill(shape, "") if spec.dtype == tf.string else tf.zeros(shape, spec.dtype)


def _with_types(found: list[Any], asked: Sequence[tf.TensorSpec], title: str) -> list[Any]:
    """Return the model's own arguments with the sizes and types that were asked for, by name."""
    given = {spec.name: spec for spec in asked}
    named = named_specs(found)
    known = [spec.name for spec in named]
    if unknown := set(given) - set(known):
        what = f"{title} has no input '{sorted(unknown)[0]}'"
        raise UsageError(what, remedy=f"its inputs are {', '.join(known)}")
    for spec in named:
        other = given.get(spec.name, spec)
        if not spec.shape.is_compatible_with(other.shape):
            raise UsageError(f"the signature of {spec.name} does not fit {title}",
                             why=f"it takes {_words(spec)}, not {_words(other)}")  # fmt: skip
    return tree.pack_sequence_as(found, [given.get(spec.name, spec) for spec in named])


def _words(spec: tf.TensorSpec) -> str:
    sizes = ",".join("any" if size is None else str(size) for size in spec.shape)
    return f"{spec.dtype.name}[{sizes}]"


def specs_of_data(example: Mapping[str, Any]) -> tuple[tf.TensorSpec, ...]:
    """Return the inputs that a first row has, with an open batch; float64 goes in as float32."""
    specs = []
    for name, value in example.items():
        dtype = tf.string if value.dtype.kind in "SUO" else tf.as_dtype(value.dtype)
        dtype = tf.float32 if dtype == tf.float64 else dtype
        specs.append(tf.TensorSpec((None, *value.shape[1:]), dtype, name=name or "input"))
    return tuple(specs)


def named_specs(signature: list[Any]) -> list[tf.TensorSpec]:
    """Name all tensors of a signature: by a dictionary's key, or the tensor's name."""
    named, taken = [], set[str]()
    for number, (place, spec) in enumerate(tree.flatten_with_path(signature)):
        key = place[-1] if place and isinstance(place[-1], str) else ""
        name = base = key or spec.name or (f"input_{number}" if number else "input")
        while name in taken:
            name = f"{base}_{number}"
        taken.add(name)
        named.append(tf.TensorSpec(spec.shape, spec.dtype, name=name))
    return named
