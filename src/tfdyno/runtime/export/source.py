"""The model that is exported: loaded with its weights, with what it takes and gives by name."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
import tensorflow as tf
from keras import tree

from tfdyno.core.base.errors import UsageError
from tfdyno.process.failure import Declined, first_line, user_code
from tfdyno.runtime.base.keras_internals import all_layers
from tfdyno.runtime.export.signature import named_specs, signature_of, spec_of, specs_of_data
from tfdyno.runtime.workload.kerasfile import has_lambda
from tfdyno.runtime.workload.workloads import application, function_of, model_and_data, title_of

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Model, Value
    from tfdyno.core.messages.export import SourceModel

Named = dict[str, Any]
"""Tensors or arrays by the name of the input or output."""
_LACKING = re.compile(r"Could not locate (class|function) '([^']+)'")


@dataclass(frozen=True, kw_only=True)
class Source:
    """A model with one signature, ``serving_default``."""

    title: str
    model: Any
    """The Keras model; None: a SavedModel."""
    specs: tuple[tf.TensorSpec, ...]
    """What is served takes, each with its name."""
    call: Callable[[Named], Named]
    """The call from inputs by name to outputs by name, pre- and post-processing included."""
    tracked: tuple[Any, ...] = ()
    """What holds the variables and tables of ``call``."""
    bare: bool = True
    """Whether nothing stands in front of or behind the model."""
    notes: tuple[str, ...] = ()
    outputs: dict[str, tf.TensorSpec] = field(default_factory=dict)

    def flat(self, *tensors: Any) -> Named:
        """Call with the inputs in the order of ``specs``."""
        return self.call({s.name: t for s, t in zip(self.specs, tensors, strict=True)})

    def function(self) -> Value:
        """Return ``flat`` as a TensorFlow function that keeps open what the specs leave open."""
        return tf.function(self.flat, input_signature=list(self.specs), autograph=False)


def load(asked: SourceModel, example: Mapping[str, Any] | None) -> Source:
    """Return the model that is asked for.

    Args:
        asked: The model, and what is to stand around it.
        example: Inputs by name, or the one input under the empty name; None: no data was given.

    Raises:
        UsageError: It cannot be loaded, or nothing says what it takes.
    """
    if asked.kind == "savedmodel":
        if asked.preprocess or asked.postprocess:
            raise UsageError("--preprocess and --postprocess need a Keras model",
                             why=f"{asked.reference} is a SavedModel")  # fmt: skip
        return _saved_model(Path(asked.path))
    model, title, notes = _keras_model(asked)
    told = tuple(map(spec_of, asked.signature))
    before, after = _processing(asked.preprocess), _processing(asked.postprocess)
    if before is None or not (told or example is not None):
        signature = signature_of(model, told, example, title)
    else:
        signature = signature_of(model, (), None, title)
    specs, call = _served(model, signature)
    if before is not None:
        specs = told or (specs_of_data(example) if example is not None else specs)
        call = _with_preprocessing(model, before, specs, asked.preprocess)
    call = _with_names(model, call, after, asked.postprocess)
    source = Source(
        title=title,
        model=model,
        specs=specs,
        call=call,
        tracked=(model,),
        bare=before is None and after is None,
        notes=tuple(notes),
    )
    return _traced(source)


def weights_sha256(model: Model) -> str:
    """Digest of all weights in their order."""
    digest = hashlib.sha256()
    for one in model.weights:
        digest.update(np.ascontiguousarray(np.asarray(one)).tobytes())
    return digest.hexdigest()


def weights_bytes(source: Source) -> int:
    """Return the bytes of all variables; those of a SavedModel too."""
    variables = source.function().get_concrete_function().variables
    own = source.model.weights if source.model is not None else variables
    return sum(int(np.prod(one.shape)) * tf.as_dtype(one.dtype).size for one in own)


def compute_dtypes(model: Model) -> tuple[str, ...]:
    """Return types of floats that the layers compute in."""
    found = {str(layer.compute_dtype) for layer in all_layers(model)}
    return tuple(sorted(one for one in found if "float" in one))


def _keras_model(asked: SourceModel) -> tuple[Any, str, list[str]]:
    reference = asked.reference
    if asked.kind == "keras_file":
        path = Path(asked.path)
        model = _keras_file(path)
        return model, title_of(model, path.stem), []
    if asked.kind == "application":
        from tfdyno.core.choose.workload import Workload

        model, title, _ = application(Workload(reference=reference, kind="application"))
        return model, title, [f"{reference} has random weights: nothing was downloaded."]
    model, title, _ = model_and_data(reference)
    return model, title, []


def _keras_file(path: Path) -> Value:
    if has_lambda(path):
        raise UsageError(
            f"{path} holds a lambda",
            why="loading it runs code from the file",
            remedy="name a function that builds the model and loads its weights: file.py:function",
        )
    try:
        return keras.saving.load_model(path, compile=False, safe_mode=True)
    except Exception as error:
        missing = _LACKING.search(str(error))
        if missing:
            why = f"it needs the {missing[1]} '{missing[2]}', which is not part of Keras"
            remedy = "name a function that imports it and returns the model: file.py:function"
        else:
            why, remedy = first_line(error), "save the model again with model.save('name.keras')"
        raise UsageError(f"{path} cannot be loaded", why=why, remedy=remedy) from None


def _processing(reference: str) -> Callable[[Any], Any] | None:
    return function_of(reference) if reference else None


def _served(
    model: Model,
    signature: list[Any],
) -> tuple[tuple[tf.TensorSpec, ...], Callable[[Named], Any]]:
    specs = tuple(named_specs(signature))

    def call(named: Named) -> Value:
        arguments = tree.pack_sequence_as(signature, [named[spec.name] for spec in specs])
        return model(*arguments, training=False)

    return specs, call


def _with_preprocessing(
    model: Model,
    before: Callable[[Any], Any],
    specs: tuple[tf.TensorSpec, ...],
    what: str,
) -> Callable[[Named], Any]:
    """Put a function before the model: it gets the one input, or all by name."""

    def call(named: Named) -> Value:
        given = named[specs[0].name] if len(specs) == 1 else dict(named)
        with user_code(what):
            made = before(given)
        return model(made, training=False)

    return call


def _with_names(
    model: Model,
    call: Callable[[Named], Any],
    after: Callable[[Any], Any] | None,
    what: str,
) -> Callable[[Named], Named]:
    own = () if after else tuple(getattr(model, "output_names", None) or ())

    def named_call(named: Named) -> Named:
        result = call(named)
        if after is not None:
            with user_code(what):
                result = after(result)
        if isinstance(result, Mapping):
            return {str(key): tf.convert_to_tensor(value) for key, value in result.items()}
        flat = [tf.convert_to_tensor(one) for one in tree.flatten(result)]
        names = own if len(own) == len(set(own)) == len(flat) else ()
        return dict(zip(names or [f"output_{i}" for i in range(len(flat))], flat, strict=True))

    return named_call


def _traced(source: Source) -> Source:
    """Return the same with the types and shapes of its outputs; its names then all differ."""
    try:
        concrete = source.function().get_concrete_function()
    except (Declined, UsageError):
        raise
    except Exception as error:
        why = first_line(error)
        raise UsageError(f"{source.title} cannot be traced", why=why) from None
    outputs = {
        name: tf.TensorSpec(one.shape, one.dtype, name=name)
        for name, one in concrete.structured_outputs.items()
    }
    clash = set(outputs) & {spec.name for spec in source.specs}
    if not clash:
        return replace(source, outputs=outputs)
    call = source.call

    def renamed(named: Named) -> Named:
        return {f"{n}_output" if n in clash else n: v for n, v in call(named).items()}

    return _traced(replace(source, call=renamed))


def _saved_model(path: Path) -> Source:
    try:
        loaded = tf.saved_model.load(str(path))
    except Exception as error:
        no_graph = "MetaGraph" in str(error)
        why = "its saved_model.pb holds no graph" if no_graph else first_line(error)
        raise UsageError(f"{path} cannot be loaded", why=why, remedy="export it again") from None
    signatures = dict(loaded.signatures)
    if not signatures:
        remedy = "export it from the Keras model: tfdyno export model.keras --to savedmodel"
        raise UsageError(f"{path} has no signature", remedy=remedy)
    name = "serving_default" if "serving_default" in signatures else next(iter(signatures))
    taken = signatures[name]
    specs = tuple(
        tf.TensorSpec(spec.shape, spec.dtype, name=key)
        for key, spec in taken.structured_input_signature[1].items()
    )
    title = path.parent.name if path.name.isdecimal() else path.name
    return Source(
        title=title,
        model=None,
        specs=specs,
        call=lambda named: dict(taken(**named)),
        tracked=(loaded,),
        outputs={
            key: tf.TensorSpec(spec.shape, spec.dtype, name=key)
            for key, spec in taken.structured_outputs.items()
        },
    )
