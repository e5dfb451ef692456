"""Every private name of Keras that tfdyno uses is there and is what it is used for."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.runtime import private_names

from tfdyno.runtime.base import keras_internals as internals

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from tfdyno.core.base.untyped import DataIterator, Function, Tensor

pytestmark = pytest.mark.tf
SRC = "keras.src"
COMMON = f"{SRC}.backend.common"
ADAPTERS = f"{SRC}.trainers.data_adapters"
NAMES = {
    f"{SRC}.backend.compute_output_spec": "fn",
    f"{SRC}.backend.nn": None,
    f"{SRC}.backend.numpy": None,
    f"{COMMON}.global_state.get_global_attribute": "name",
    f"{COMMON}.global_state.set_global_attribute": "name value",
    f"{COMMON}.masking.get_keras_mask": "x",
    f"{COMMON}.masking.set_keras_mask": "x mask",
    f"{COMMON}.stateless_scope.get_stateless_scope": "",
    f"{COMMON}.variables.AutocastScope": "dtype",
    f"{COMMON}.variables.initialize_all_variables": "",
    f"{SRC}.backend.jax.trainer.JAXEpochIterator": "steps_per_epoch",
    f"{SRC}.backend.jax.trainer.JAXEpochIterator._enumerate_iterator": "self",
    f"{SRC}.backend.jax.trainer.JAXEpochIterator._get_iterator": "self",
    f"{SRC}.backend.tensorflow.trainer.TFEpochIterator": "distribute_strategy",
    f"{SRC}.backend.tensorflow.trainer.TFEpochIterator._enumerate_iterator": "self",
    f"{SRC}.export.export_utils.get_input_signature": "model",
    f"{SRC}.export.tf2onnx_lib.patch_tf2onnx": "",
    f"{SRC}.models.functional.Functional": None,
    f"{SRC}.models.functional.Functional.call": "inputs training mask",
    f"{SRC}.ops.function.Function._run_through_graph": "inputs operation_fn",
    f"{SRC}.quantizers.abs_max_quantize": "to_numpy",
    f"{SRC}.quantizers.abs_max_quantize_grouped_with_zero_point": "to_numpy",
    f"{SRC}.quantizers.pack_int4": "arr axis dtype",
    f"{SRC}.quantizers.quantizers.abs_max_quantize": "to_numpy",
    f"{SRC}.quantizers.quantizers.abs_max_quantize_grouped_with_zero_point": "to_numpy",
    f"{SRC}.quantizers.quantizers.dequantize_with_sz_map":
        "weights_matrix scale zero g_idx group_axis",
    f"{SRC}.quantizers.quantizers.pack_int4": "arr axis dtype",
    f"{SRC}.quantizers.quantizers.unpack_int4": "packed orig_len axis",
    f"{SRC}.random.seed_generator.global_seed_generator": "",
    "keras.Model._resolve_auto_jit_compile": "self",
    f"{SRC}.trainers.trainer.model_supports_jit": "model",
    f"{SRC}.utils.file_utils.get_file": "fname origin",
    f"{ADAPTERS}.array_data_adapter.ArrayDataAdapter": "shuffle",
    f"{ADAPTERS}.array_slicing.train_validation_split": "validation_split",
    f"{ADAPTERS}.get_data_adapter":
        "x y sample_weight batch_size steps_per_epoch shuffle class_weight",
}  # fmt: skip
"""Each name with the parameters that it is called with by name; None: it is not called."""


def _twice(own: Function) -> Function:
    return lambda *args, **options: (own(*args, **options), own(*args, **options))


CHANGES: dict[str, tuple[Callable[[], AbstractContextManager[None]], list[str]]] = {
    "policy_kept": (
        lambda: internals.policy_kept(print), [f"{COMMON}.global_state.set_global_attribute"],
    ),
    "backend_changed": (
        lambda: internals.backend_changed({"nn.relu": _twice, "numpy.transpose": _twice}),
        [f"{SRC}.backend.nn.relu", f"{SRC}.backend.numpy.transpose"],
    ),
    "auto_jit_as_on_a_gpu": (
        internals.auto_jit_as_on_a_gpu,
        ["keras.Model._resolve_auto_jit_compile"],
    ),
    "epoch_iterator_changed": (
        lambda: internals.epoch_iterator_changed(_twice),
        [f"{SRC}.backend.tensorflow.trainer.TFEpochIterator"],
    ),
    "epoch_iterators_seen": (
        lambda: internals.epoch_iterators_seen(print),
        [f"{SRC}.backend.tensorflow.trainer.TFEpochIterator.__init__"],
    ),
    "variables_left_empty": (
        internals.variables_left_empty, [f"{COMMON}.variables.initialize_all_variables"],
    ),
    "numpy_quantizers_changed": (
        lambda: internals.numpy_quantizers_changed(_twice),
        [name for name in NAMES if "abs_max" in name],
    ),
    "int4_packing_changed": (
        lambda: internals.int4_packing_changed(_twice),
        [name for name in NAMES if name.endswith(".pack_int4")],
    ),
    "downloads_changed": (
        lambda: internals.downloads_changed(_twice), [f"{SRC}.utils.file_utils.get_file"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_there_and_takes_what_it_is_given(name: str) -> None:
    if ".jax." in name:
        pytest.importorskip("jax")
    parameters = NAMES[name]
    assert private_names.found(name) is not None
    assert parameters is None or private_names.untaken(name, parameters) == []


def test_the_names_are_all_that_is_imported() -> None:
    assert private_names.imported(internals, SRC) - set(NAMES) == set()


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_undone(name: str) -> None:
    change, names = CHANGES[name]
    private_names.assert_undone(change(), names)


def test_constants_name_where_public_things_are_defined() -> None:
    import keras

    assert keras.applications.ResNet50.__module__.startswith(internals.ARCHITECTURES)
    for layer in (keras.layers.Normalization, keras.layers.RandomFlip, keras.layers.Hashing):
        assert layer.__module__.startswith(internals.PREPROCESSING_LAYERS)
    x = keras.KerasTensor((2, 3))
    for made in (keras.ops.concatenate([x, x]), keras.ops.cast(x, "int32")):
        operation = made._keras_history.operation
        assert type(operation).__module__.startswith(internals.ARRAY_OPERATIONS)
    assert keras.datasets.mnist in internals.modules_of("datasets.mnist")
    assert internals.modules_of("datasets.none") == []


def test_layers_of_all_levels_are_told_the_outer_one_first() -> None:
    import keras

    inner = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, name="a")], name="inner")
    outer = keras.Sequential([inner, keras.layers.Dense(1, name="b")], name="outer")
    assert internals.all_layers(outer)[0] is outer
    assert {each.name for each in internals.inner_layers(outer)} >= {"inner", "a", "b"}
    assert internals.all_layers(None) == internals.inner_layers("no layer") == []


def test_scopes_are_those_that_are_entered() -> None:
    import keras

    assert internals.stateless_scope() is None
    plain = internals.without_autocast()
    with keras.StatelessScope() as scope, plain:
        kept = internals.surroundings()
        assert internals.stateless_scope() is scope
    assert (kept["stateless_scope"], kept["autocast_scope"]) == (scope, plain)
    with internals.surrounded_by(kept):
        assert internals.surroundings() == kept
    assert internals.surroundings()["stateless_scope"] is None


def test_a_layer_knows_within_its_call_who_called_it() -> None:
    import keras

    class Own(keras.layers.Layer):
        def call(self, x: Tensor, training: bool = False) -> Tensor:
            self.of_call = internals.surroundings()["current_call_ctx"]
            return x

    layer = Own()
    layer(np.zeros(2), training=True)
    assert layer.of_call.entry_layer is layer
    assert layer.of_call.training is True


def test_a_kept_policy_stays_and_is_told() -> None:
    import keras

    told: list[Any] = []
    with internals.policy_kept(told.append):
        keras.config.set_dtype_policy("mixed_bfloat16")
        assert keras.config.dtype_policy().name == "float32"
    assert [policy.name for policy in told] == ["mixed_bfloat16"]


def test_variables_left_empty_have_no_value_after_the_scope() -> None:
    import keras

    with internals.variables_left_empty(), keras.StatelessScope(initialize_variables=False):
        variable = keras.Variable("zeros", shape=(2,))
    assert variable._value is None


def test_a_spec_builds_a_model_without_a_call() -> None:
    import keras

    model = keras.Sequential([keras.layers.Dense(3)])
    made = internals.output_spec(model, keras.KerasTensor((2, 5)), training=False)
    assert (made.shape, model.built) == ((2, 3), True)
    assert [one.shape for one in keras.tree.flatten(internals.input_signature(model))] == [
        (None, 5)
    ]


def test_seeds_are_those_that_keras_draws_from() -> None:
    import keras

    made = internals.made_seed_generator()
    assert internals.seed_generator() is made
    before = np.asarray(made.state).tolist()
    keras.random.uniform((1,))
    assert np.asarray(made.state).tolist() != before


def test_a_mask_is_that_of_the_layer() -> None:
    import keras

    made = keras.layers.Masking()(np.array([[[1.0], [0.0]]]))
    assert np.asarray(internals.mask_of(made)).tolist() == [[True, False]]
    internals.set_mask(made, np.array([[False, False]]))
    assert np.asarray(internals.mask_of(made)).tolist() == [[False, False]]


def test_operations_use_the_functions_of_a_changed_backend() -> None:
    import keras

    with internals.backend_changed({"nn.relu": lambda _own: lambda _x: 7}):
        assert keras.ops.relu(np.zeros(1)) == 7
        assert keras.layers.ReLU()(np.zeros(1)) == 7


def test_data_are_read_as_fit_reads_them() -> None:
    x = np.arange(10)
    adapter = internals.data_adapter(x, batch_size=4, shuffle=True)
    assert adapter.num_batches == 3
    assert adapter.get_tf_dataset().element_spec.shape.as_list() == [None]
    assert internals.shuffles_arrays(adapter)
    assert not internals.shuffles_arrays(internals.data_adapter(x, batch_size=4, shuffle=False))
    kept = internals.without_validation((x, x, None), 0.2)
    assert (kept[0].tolist(), kept[2]) == (list(range(8)), None)


def test_fit_reads_its_epochs_by_the_iterator_that_is_changed_and_told() -> None:
    import keras

    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile(loss="mse")
    seen: list[Any] = []
    changed: list[Any] = []

    def made(own: type, **options: Any) -> DataIterator:
        changed.append(own(**options))
        return changed[-1]

    with (
        internals.epoch_iterators_seen(seen.append),
        internals.epoch_iterator_changed(lambda own: functools.partial(made, own)),
    ):
        model.fit(np.zeros((4, 1)), np.zeros((4, 1)), batch_size=2, verbose=0)
    assert seen == changed
    assert isinstance(seen[0], internals.epoch_iterator_type())
    assert (seen[0].num_batches, seen[0].data_adapter.num_batches) == (2, 2)


def test_a_model_compiles_by_itself_as_on_a_gpu() -> None:
    import keras

    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    with internals.auto_jit_as_on_a_gpu():
        model.compile(loss="mse")
        assert model.jit_compile is True


def test_graphs_of_layers_are_known_and_run() -> None:
    import keras

    class Own(keras.Sequential):
        def call(self, inputs: Tensor, training: bool = False, mask: Tensor = None) -> Tensor:
            return inputs

    x = keras.Input((2,))
    model = keras.Model(x, keras.layers.Dropout(0.5)(x))
    assert internals.is_functional(model)
    assert not internals.is_functional(Own())
    assert internals.calls_its_graph(type(model))
    assert internals.calls_its_graph(keras.Sequential)
    assert not internals.calls_its_graph(Own)
    function = keras.Function(x, model.outputs)
    ones = np.ones((1, 2), "float32")
    (plain,) = keras.tree.flatten(internals.run_graph(function, [ones], training=False))
    (dropped,) = keras.tree.flatten(internals.run_graph(function, [np.ones((1, 64))], True))
    assert np.asarray(plain).tolist() == ones.tolist()
    assert 0.0 in np.asarray(dropped)


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize(("mode", "steps"), [("", 0), ("int8", 127), ("int4", 7)])
@pytest.mark.parametrize("kind", ["Dense", "EinsumDense", "Embedding"])
def test_weights_as_floats_have_their_adapters_and_a_step_of_rounding(
    kind: str, mode: str, steps: int
) -> None:
    """Each is rounded to a multiple of its largest over 127, or 7 for 4 bits; half of that at most,
    the whole of it for groups of 4 bits, whose span is of 15 steps from the least to the most."""
    import keras

    keras.utils.set_random_seed(0)
    made = {
        "Dense": lambda: keras.layers.Dense(6),
        "EinsumDense": lambda: keras.layers.EinsumDense("btd,dnh->btnh", (None, 2, 3)),
        "Embedding": lambda: keras.layers.Embedding(8, 6),
    }
    layer: Any = made[kind]()
    layer.build((None, None, 8) if kind == "EinsumDense" else (None, 8))
    name = "embeddings" if kind == "Embedding" else "kernel"
    before = np.asarray(getattr(layer, name))
    if mode:
        layer.quantize(mode)
    layer.enable_lora(2)
    low, high = (getattr(layer, f"lora_{name}_{one}") for one in "ab")
    high.assign(np.random.default_rng(0).normal(size=high.shape))
    merged = before + layer.lora_alpha / layer.lora_rank * np.matmul(
        np.asarray(low), np.asarray(high)
    )
    found = np.asarray(internals.float_weights(layer)[name])
    assert found.shape == before.shape
    assert np.abs(np.asarray(high)).max() > 0.5
    allowed = 1e-6 + (np.abs(before).max() / steps if steps else 0.0)
    assert np.abs(found - merged).max() <= allowed
    assert layer.lora_enabled


def test_variables_of_a_layer_are_its_own() -> None:
    import keras

    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3)])
    assert list(internals.own_variables(model.layers[0])) == ["kernel", "bias"]
    assert internals.own_variables(model) == {}
