"""What tfdyno needs of Keras that has no public name. Nothing else imports ``keras.src``.

Each function says what it serves and which public name is missing. They import when they are
called: which modules there are depends on the backend, and a child imports what it uses only.
``tests/runtime/base/test_keras_internals.py`` holds every name against the Keras at hand.
"""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import UsageError
from tfdyno.runtime.base.replaced import replaced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager as Change

    from tfdyno.core.base.untyped import Function, Instance, Model, Module, Tensor, Value

ARCHITECTURES = "keras.src.applications"
"""Where the functions of ``keras.applications`` that build a model are defined."""
PREPROCESSING_LAYERS = "keras.src.layers.preprocessing"
"""Where layers are defined that prepare data; they share no public class."""
ARRAY_OPERATIONS = ("keras.src.ops.numpy", "keras.src.ops.core")
"""Where operations of functional models are defined that only move or combine arrays."""
_SURROUNDINGS = ("stateless_scope", "autocast_scope", "current_call_ctx")
_EPOCHS = {"tensorflow": ("TensorFlow", "TFEpochIterator"), "jax": ("JAX", "JAXEpochIterator")}


def modules_of(name: str) -> list[Module]:
    """Modules that are loaded under a public name, as ``datasets.mnist``: Keras has several."""
    packages = ("keras", "keras.src", "keras._tf_keras.keras")
    found = (sys.modules.get(f"{package}.{name}") for package in packages)
    return [module for module in found if module]


def all_layers(layer: Value) -> list[Any]:
    """Return a layer and then all inside it; ``layers`` goes one level deep. No layer: none."""
    flatten = getattr(layer, "_flatten_layers", None)
    return list(flatten()) if flatten else []


def inner_layers(layer: Value) -> list[Any]:
    """Return all layers inside a layer."""
    return all_layers(layer)[1:]


# Scopes, seeds and symbols


def stateless_scope() -> Value:
    """Return the ``keras.StatelessScope`` that is entered, or None: nothing public tells."""
    from keras.src.backend.common.stateless_scope import get_stateless_scope

    return get_stateless_scope()


def without_autocast() -> Change[Any]:
    """Let variables be read in their own type: the scope of mixed precision is not public."""
    from keras.src.backend.common.variables import AutocastScope

    return AutocastScope(None)


def surroundings() -> dict[str, Any]:
    """Return what Keras keeps beside arguments: values of variables, dtype, training of the caller.

    A second run of a layer needs them as they were; there is no public way to ask or to set.
    """
    from keras.src.backend.common.global_state import get_global_attribute

    return {name: get_global_attribute(name) for name in _SURROUNDINGS}


@contextlib.contextmanager
def surrounded_by(kept: Mapping[str, Any]) -> Iterator[None]:
    """Run with what ``surroundings`` gave, perhaps changed, until the block ends."""
    from keras.src.backend.common.global_state import set_global_attribute

    before = surroundings()
    try:
        for name, value in kept.items():
            set_global_attribute(name, value)
        yield
    finally:
        for name, value in before.items():
            set_global_attribute(name, value)


def policy_kept(told: Callable[[Any], None]) -> Change[None]:
    """Keep the dtype policy: ``told`` gets each that code sets (``set_dtype_policy`` is copied)."""
    from keras.src.backend.common import global_state

    own = global_state.set_global_attribute

    def guarded(name: str, value: Value) -> None:
        if name == "dtype_policy":
            told(value)
        else:
            own(name, value)

    return replaced((global_state, "set_global_attribute", guarded))


def output_spec(model: Model, inputs: Value, **options: Any) -> Value:
    """Symbols of what a call of the model gives; it builds the model without adding nodes.

    ``Model.compute_output_spec``, the public one, goes around ``__call__``, which builds.
    """
    from keras.src.backend import compute_output_spec

    return compute_output_spec(model, inputs, **options)


def made_seed_generator() -> Value:
    """Return ``keras.random``'s generator without a seed, made if missing: not public."""
    from keras.src.random.seed_generator import global_seed_generator

    return global_seed_generator()


def seed_generator() -> Value:
    """Return the same, or None where nothing has drawn from it yet."""
    from keras.src.backend.common.global_state import get_global_attribute

    return get_global_attribute("global_seed_generator")


def mask_of(tensor: Tensor) -> Value:
    """Return the mask that Keras hangs on a tensor, or None: layers alone are given it."""
    from keras.src.backend.common.masking import get_keras_mask

    return get_keras_mask(tensor)


def set_mask(tensor: Tensor, mask: Tensor) -> None:
    """Hang a mask on a tensor."""
    from keras.src.backend.common.masking import set_keras_mask

    set_keras_mask(tensor, mask)


def backend_changed(change: Mapping[str, Callable[[Function], Function]]) -> Change[None]:
    """Let layers and ``keras.ops`` compute by other functions than the backend's own.

    Args:
        change: By place and name, as ``nn.relu``: gets Keras' own and gives what stands for it.
    """
    from keras.src import backend

    places = [(getattr(backend, key.partition(".")[0]), key.partition(".")[2]) for key in change]
    new = zip(places, change.values(), strict=True)
    return replaced(*((where, name, made(getattr(where, name))) for (where, name), made in new))


# Training


def auto_jit_as_on_a_gpu() -> Change[None]:
    """Let ``jit_compile="auto"`` mean what it does where there is a GPU; Keras looks for one.

    Raises:
        ImportError: Keras 2, which compiles with XLA only where it is told to.
    """
    import keras
    from keras.src.trainers.trainer import model_supports_jit

    def resolve(self: Instance) -> bool:
        strategy = getattr(self, "_distribute_strategy", None)
        return not strategy and bool(model_supports_jit(self))

    return replaced((keras.Model, "_resolve_auto_jit_compile", resolve))


def data_adapter(*data: Any, **options: Any) -> Value:
    """Return what ``fit`` reads its data by; only ``fit`` makes one in public."""
    from keras.src.trainers.data_adapters import get_data_adapter

    return get_data_adapter(*data, **options)


def without_validation(data: tuple[Any, ...], share: float) -> tuple[Any, ...]:
    """Return a ``fit``'s arrays but for ``validation_split``, which ``fit`` itself takes."""
    from keras.src.trainers.data_adapters.array_slicing import train_validation_split

    return tuple(train_validation_split(data, validation_split=share)[0])


def shuffles_arrays(adapter: Value) -> bool:
    """Return whether a data adapter draws an order of arrays; no public name tells."""
    from keras.src.trainers.data_adapters.array_data_adapter import ArrayDataAdapter

    return isinstance(adapter, ArrayDataAdapter) and bool(adapter._shuffle)


def epoch_iterator_type() -> Value:
    """Return what ``fit`` reads each epoch by on TensorFlow, of a data adapter's arguments."""
    from keras.src.backend.tensorflow.trainer import TFEpochIterator

    return TFEpochIterator


def epoch_iterator_changed(change: Callable[[Any], Any]) -> Change[None]:
    """Let ``fit`` and ``evaluate`` make another iterator over epochs: they take none from outside.

    Args:
        change: Gets Keras' own class, gives what is called in its place.

    Raises:
        UsageError: This Keras has none by the name that is known.
    """
    trainer, name, own = _own_iterator()
    return replaced((trainer, name, change(own)))


def _own_iterator() -> tuple[Module, str, Any]:
    """Return the module, the name and the class of Keras' iterator for the backend at hand."""
    import keras

    title, name = _EPOCHS[keras.backend.backend()]
    if title == "JAX":
        from keras.src.backend.jax import trainer
    else:
        from keras.src.backend.tensorflow import trainer
    own = getattr(trainer, name, None)
    if own is None:
        what = f"Keras {keras.__version__} makes batches for {title} in a way that tfdyno"
        raise UsageError(f"{what} does not know", remedy="install Keras 3.15")
    return trainer, name, own


def epoch_iterators_seen(seen: Callable[[Any], None]) -> Change[None]:
    """Tell of each iterator over epochs as it is made: ``fit`` does not hand it out."""
    _, _, kind = _own_iterator()
    own = kind.__init__

    def made(self: Instance, *arguments: Any, **named: Any) -> None:
        own(self, *arguments, **named)
        seen(self)

    return replaced((kind, "__init__", made))


# Models


def is_functional(model: Model) -> bool:
    """Return whether a model has a graph of layers; of its class only functions are public."""
    from keras.src.models.functional import Functional

    return isinstance(model, Functional)


def calls_its_graph(kind: Value) -> bool:
    """Return whether a class of models has no ``call`` of its own but that of a graph of layers."""
    import keras
    from keras.src.models.functional import Functional

    return kind.call in (Functional.call, keras.Sequential.call)


def run_graph(function: Function, inputs: Sequence[Any], training: Value = None) -> Value:
    """Run a ``keras.Function`` as a model would: its public call passes no ``training`` on."""

    def called(operation: Value) -> Function:
        if training is None or "training" not in getattr(operation, "_call_context_args", ()):
            return operation
        return lambda *args, **options: operation(*args, **{**options, "training": training})

    return function._run_through_graph(inputs, operation_fn=called)


def input_signature(model: Model) -> Value:
    """Return a model's inputs as ``InputSpec``: ``Model.export`` alone knows it in public.

    Raises:
        ValueError: It was never called.
        TypeError: As well, for some kinds of models.
    """
    from keras.src.export.export_utils import get_input_signature

    return get_input_signature(model)


def mend_tf2onnx() -> None:
    """Make tf2onnx work with numpy 2, as Keras does before it exports to ONNX."""
    from keras.src.export.tf2onnx_lib import patch_tf2onnx

    patch_tf2onnx()


def variables_left_empty() -> Change[None]:
    """Leave variables of a stateless scope without values, which Keras fills at its end."""
    from keras.src.backend.common import variables

    return replaced((variables, "initialize_all_variables", lambda: None))


def numpy_quantizers_changed(change: Callable[[Function], Function]) -> Change[None]:
    """Change the functions that quantize in numpy where they are asked to, as layers find them."""
    names = ("abs_max_quantize", "abs_max_quantize_grouped_with_zero_point")
    return replaced(*_quantizers_changed(names, change))


def int4_packing_changed(change: Callable[[Function], Function]) -> Change[None]:
    """Change the function that packs two numbers of 4 bits into a byte, always in numpy."""
    return replaced(*_quantizers_changed(("pack_int4",), change))


def own_variables(layer: Value) -> dict[str, Any]:
    """Return the variables of a layer without those of layers inside it, by name."""
    return {one.name: one for one in (*layer._trainable_variables, *layer._non_trainable_variables)}


def float_weights(layer: Value) -> dict[str, Any]:
    """Return the weights that LoRA and ``quantize`` change as floats, adapters in them, by name.

    Keras merges adapters where it saves a layer, and rounds again what is quantized. Its public
    ``kernel`` adds them to whole numbers.
    """
    from keras import ops

    name = "embeddings" if hasattr(layer, "embeddings_initializer") else "kernel"
    has_adapters, layer.lora_enabled = layer.lora_enabled, False
    try:
        found = {name: _dequantized(layer, name, getattr(layer, name))}
    finally:
        layer.lora_enabled = has_adapters
    if has_adapters:
        low, high = (ops.cast(getattr(layer, f"lora_{name}_{one}"), "float32") for one in "ab")
        found[name] += layer.lora_alpha / layer.lora_rank * ops.matmul(low, high)
    if layer.quantization_mode and getattr(layer, "reverse_embeddings", None) is not None:
        found["reverse_embeddings"] = _dequantized_reverse(layer)
    return found


def _dequantized(layer: Value, name: str, levels: Tensor) -> Tensor:
    """Return a kernel or table as float32; ``levels`` has its final shape."""
    from keras import ops
    from keras.src.quantizers.quantizers import dequantize_with_sz_map

    floats, mode = ops.cast(levels, "float32"), layer.quantization_mode
    if not mode:
        return floats
    scale = ops.cast(getattr(layer, f"{name}_scale"), "float32")
    is_table = name == "embeddings"
    if mode == "int8":
        adjusted = getattr(layer, "_adjust_scale_for_dequant", lambda one: one)(scale)
        return floats / (ops.expand_dims(scale, -1) if is_table else adjusted)
    if getattr(layer, "_int4_block_size", None) in (None, -1):
        rows = ops.reshape(floats, (-1, floats.shape[-1] if is_table else scale.shape[-1]))
        made = rows / (ops.expand_dims(scale, -1) if is_table else scale)
    else:
        rows = floats if is_table else ops.reshape(floats, (-1, scale.shape[-1]))
        zero = getattr(layer, f"{name}_zero")
        axis = -1 if is_table else 0
        made = dequantize_with_sz_map(rows, scale, zero, layer.g_idx, group_axis=axis)
    return ops.reshape(made, floats.shape)


def _dequantized_reverse(layer: Value) -> Tensor:
    """Return the table of an untied head as float32: (width, words)."""
    from keras import ops
    from keras.src.quantizers.quantizers import dequantize_with_sz_map, unpack_int4

    levels, scale = layer.reverse_embeddings, layer.reverse_embeddings_scale
    if layer.quantization_mode == "int8":
        return ops.cast(levels, "float32") / scale
    floats = ops.cast(unpack_int4(levels, layer.output_dim, axis=0), "float32")
    if getattr(layer, "_int4_block_size", None) in (None, -1):
        return floats / scale
    zero = layer.reverse_embeddings_zero
    return dequantize_with_sz_map(floats, scale, zero, layer.g_idx, group_axis=0)


def _quantizers_changed(
    names: Sequence[str], change: Callable[[Function], Function]
) -> list[tuple[Any, str, Any]]:
    """Return the changes of functions where quantizers find them, and where layers do."""
    from keras.src import quantizers as package
    from keras.src.quantizers import quantizers as module

    places = (package, module)
    return [(one, name, change(getattr(one, name))) for one in places for name in names]


def downloads_changed(change: Callable[[Function], Function]) -> Change[None]:
    """Change how files are fetched, as ``keras.applications`` finds it.

    The public ``keras.utils.get_file`` is a copy of the name that is looked up.
    """
    from keras.src.utils import file_utils

    return replaced((file_utils, "get_file", change(file_utils.get_file)))
