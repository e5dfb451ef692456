"""Every private name of TensorFlow that tfdyno uses is there and is what it is used for."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import pytest
from tests.runtime import private_names

from tfdyno.runtime.base import tensorflow_internals as internals

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from tfdyno.core.base.untyped import Function, Instance, Tensor, Value

pytestmark = pytest.mark.tf
PYTHON = "tensorflow.python"
STRATEGIES = f"{PYTHON}.distribute.distribute_lib"
CONTEXT = f"{PYTHON}.eager.context"
ITERATORS = f"{PYTHON}.data.ops.iterator_ops.OwnedIterator"
DISTRIBUTED = f"{PYTHON}.distribute.input_lib.DistributedIteratorBase"
NAMES = {
    f"{PYTHON}.client.device_lib.list_local_devices": "",
    f"{PYTHON}.data.experimental.ops.iterator_model_ops.get_model_proto": "iterator",
    f"{PYTHON}.data.ops.dataset_ops.UnaryDataset": "input_dataset variant_tensor",
    f"{PYTHON}.data.ops.interleave_op._ParallelInterleaveDataset": None,
    f"{PYTHON}.data.ops.map_op._ParallelMapDataset": None,
    ITERATORS: None,
    f"{ITERATORS}.__next__": "self",
    f"{ITERATORS}.get_next": "self",
    f"{ITERATORS}.get_next_as_optional": "self",
    DISTRIBUTED: None,
    f"{DISTRIBUTED}.__next__": "self",
    f"{DISTRIBUTED}.get_next": "self",
    f"{DISTRIBUTED}.get_next_as_optional": "self",
    f"{STRATEGIES}.StrategyBase.scope": "self",
    f"{STRATEGIES}._get_default_replica_mode": "",
    f"{STRATEGIES}._pop_per_thread_mode": "",
    f"{STRATEGIES}._push_per_thread_mode": "context",
    f"{CONTEXT}.context": "",
    f"{CONTEXT}.global_seed": "",
    f"{CONTEXT}.Context.clear_kernel_cache": "self",
    f"{CONTEXT}.Context.config": None,
    f"{PYTHON}.eager.lift_to_graph.UnliftableError": None,
    f"{PYTHON}.eager.record.could_possibly_record": "",
    f"{PYTHON}.eager.record.stop_recording": "",
    f"{PYTHON}.framework.config.is_op_determinism_enabled": "",
    f"{PYTHON}.framework.convert_to_constants.convert_variables_to_constants_v2":
        "func lower_control_flow",
    f"{PYTHON}.framework.op_def_registry.get": "name",
    f"{PYTHON}.framework.ops.get_stats_for_node_def": "graph node statistic_type",
    f"{PYTHON}.ops.control_flow_v2_func_graphs.ControlFlowFuncGraph": None,
    f"{PYTHON}.ops.gen_ctc_ops.ctc_loss": "inputs",
    f"{PYTHON}.ops.gen_ctc_ops.ctc_loss_v2": "inputs",
    f"{PYTHON}.ops.script_ops._py_funcs": None,
    f"{PYTHON}.ops.script_ops._py_funcs.get": "token",
    f"{PYTHON}.ops.stateful_random_ops": None,
    f"{PYTHON}.ops.while_v2._get_graph": "while_op func_attr_name attr_graph_name",
    f"{PYTHON}.profiler.internal.flops_registry": None,
}  # fmt: skip
"""Each name with the parameters that it is called with; None: it is not called."""
NEXTS = [name for name in NAMES if name.startswith((f"{ITERATORS}.", f"{DISTRIBUTED}."))]


def _same(own: Function) -> Function:
    return lambda *args: own(*args)  # noqa: PLW0108


CHANGES: dict[str, tuple[Callable[[], AbstractContextManager[None]], list[str]]] = {
    "scope_changed": (
        lambda: internals.scope_changed(importlib.import_module(internals.STRATEGIES), print),
        [f"{STRATEGIES}.StrategyBase.scope"],
    ),
    "ctc_changed": (
        lambda: internals.ctc_changed(lambda _kind: print),
        [f"{PYTHON}.ops.gen_ctc_ops.{name}" for name in internals.CTC_KERNELS],
    ),
    "nexts_changed": (lambda: internals.nexts_changed(_same), NEXTS),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_there_and_takes_what_it_is_given(name: str) -> None:
    parameters = NAMES[name]
    assert private_names.found(name) is not None
    assert parameters is None or private_names.untaken(name, parameters) == []


def test_the_names_are_all_that_is_imported() -> None:
    left = private_names.imported(internals, PYTHON) - set(NAMES)
    assert left == {f"{PYTHON}.ops.stateful_random_ops.global_generator"}  # None at first


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_undone(name: str) -> None:
    change, names = CHANGES[name]
    private_names.assert_undone(change(), names)


def test_seeds_are_those_of_tensorflow() -> None:
    import tensorflow as tf

    assert internals.is_deterministic() is False
    tf.random.set_seed(7)
    try:
        assert internals.global_seed() == 7
        draws = internals.operation_seeds()
        assert draws is not None
        before = draws.getstate()
        tf.random.uniform(())
        assert draws.getstate() != before
    finally:
        tf.random.set_seed(None)
    made = tf.random.get_global_generator()
    assert internals.global_generator() is made


def test_devices_that_are_open_take_no_other_config() -> None:
    import tensorflow as tf

    assert tf.config.list_logical_devices("CPU")
    config = internals.session_config()
    assert config.gpu_options.per_process_gpu_memory_fraction == 0.0
    assert internals.set_session_config(config) is False
    assert internals.memory_limits_bytes()["CPU:0"] > 0
    internals.forget_kernels()
    assert int(tf.constant(1) + 1) == 2


def test_outside_of_a_scope_variables_belong_to_no_strategy() -> None:
    import tensorflow as tf

    strategy = tf.distribute.OneDeviceStrategy("CPU:0")
    with strategy.scope():
        assert tf.distribute.get_strategy() is strategy
        with internals.outside_scope():
            assert tf.distribute.get_strategy() is not strategy
            assert not hasattr(tf.Variable(0.0), "distribute_strategy")
        assert tf.distribute.get_strategy() is strategy


def test_operations_are_known_and_counted() -> None:
    import tensorflow as tf

    assert internals.operation_definition("RandomUniform").is_stateful
    assert internals.operation_definition("NoSuchOperation") is None
    function = tf.function(tf.matmul)
    graph = function.get_concrete_function(tf.TensorSpec((2, 3)), tf.TensorSpec((3, 5))).graph
    counted = {
        node.op: internals.operation_flops(graph, node) for node in graph.as_graph_def().node
    }
    assert counted["MatMul"] == 2 * 2 * 3 * 5
    assert counted["Placeholder"] is None


def test_loops_and_branches_have_graphs_of_their_own() -> None:
    import tensorflow as tf

    seen: list[Any] = []

    def body(x: Tensor) -> tuple[Tensor]:
        seen.append(tf.compat.v1.get_default_graph())
        return (x + 1.0,)

    def turns(x: Tensor) -> Value:
        return tf.while_loop(lambda x: x < 3.0, body, (x,))

    graph = tf.function(turns).get_concrete_function(tf.TensorSpec(())).graph
    (loop,) = [one for one in graph.get_operations() if one.type in ("While", "StatelessWhile")]
    assert internals.loop_body(loop).outputs[0].op.inputs[0].op.type == "AddV2"
    assert [internals.is_control_flow(one) for one in (seen[0], graph)] == [True, False]


def test_a_tape_records_but_where_nothing_may() -> None:
    import tensorflow as tf

    x = tf.constant(3.0)
    assert not internals.may_record()
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        assert internals.may_record()
        with internals.unrecorded():
            unseen = x * x
        seen = x * x
    assert (tape.gradient(unseen, x), float(tape.gradient(seen, x))) == (None, 6.0)


def test_variables_become_constants() -> None:
    import tensorflow as tf

    variable = tf.Variable(2.0)
    made = tf.function(lambda x: x * variable).get_concrete_function(tf.TensorSpec(()))
    frozen = internals.with_constants(made)
    variable.assign(5.0)
    assert [float(one) for one in tf.nest.flatten(frozen(tf.constant(3.0)))] == [6.0]


def test_a_variable_of_a_computed_value_cannot_be_lifted() -> None:
    import tensorflow as tf

    kept: list[Any] = []

    @tf.function
    def step(x: Tensor) -> Value:
        if not kept:
            kept.append(tf.Variable(x))
        return kept[0] + x

    with pytest.raises(internals.unliftable_error()):
        step.get_concrete_function(tf.TensorSpec(()))


def test_the_function_of_an_operation_in_python_is_found() -> None:
    import tensorflow as tf

    def own(x: Tensor) -> Tensor:
        return x

    for call in (tf.numpy_function, tf.py_function):
        made = tf.function(lambda x, call=call: call(own, [x], tf.float32))
        operations = made.get_concrete_function(tf.TensorSpec(())).graph.get_operations()
        (called,) = [one for one in operations if "PyFunc" in one.type]
        assert internals.python_function_of(called.get_attr("token")) is own
    assert internals.python_function_of(b"none") is None


def test_each_way_to_the_next_element_is_changed() -> None:
    import tensorflow as tf

    strategy = tf.distribute.OneDeviceStrategy("CPU:0")
    data = tf.data.Dataset.range(4).batch(1)
    taken: list[type] = []

    def counted(own: Function) -> Function:
        def take(self: Instance, *args: Any) -> Value:
            taken.append(type(self))
            return own(self, *args)

        return take

    iterators = [iter(data), iter(strategy.experimental_distribute_dataset(data))]
    for iterator in iterators:
        with internals.nexts_changed(counted):
            next(iterator)
            iterator.get_next()
            iterator.get_next_as_optional()
        kinds = set(taken)
        assert type(iterator) in kinds
        taken.clear()
        next(iterator)
        assert taken == []
    assert isinstance(iterators[0], tf.data.Iterator)
    assert isinstance(iterators[1], tf.distribute.DistributedIterator)
    assert not isinstance(iterators[1], tf.data.Iterator)


def test_a_running_iterator_tells_of_its_stages() -> None:
    import tensorflow as tf

    data = tf.data.Dataset.range(100).map(lambda x: x + 1, num_parallel_calls=2).prefetch(2)
    iterator = iter(data)
    for _ in range(10):
        next(iterator)
    nodes = internals.iterator_model(iterator).nodes.values()
    (stage,) = [node for node in nodes if node.name == "ParallelMapV2"]
    assert stage.num_elements >= 10
    assert min(stage.processing_time, stage.bytes_produced, len(stage.inputs)) > 0


def test_a_stage_is_made_again_over_another() -> None:
    import tensorflow as tf

    data = tf.data.Dataset.range(4)
    stage = data.map(lambda x: x + 1, num_parallel_calls=2)
    read = data.interleave(tf.data.Dataset.from_tensors, num_parallel_calls=2)
    for one, kind in ((stage, "map"), (read, "interleave")):
        made = internals.stage_over(data, data, one._variant_tensor, kind)
        assert type(made) is type(one)
    made = internals.stage_over(stage, data.take(2), data.take(2)._variant_tensor)
    assert type(made) is type(stage)
    assert made._inputs()[0].cardinality() == 2
    assert [int(x) for x in made] == [0, 1]
