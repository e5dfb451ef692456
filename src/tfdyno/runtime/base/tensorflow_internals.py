"""What tfdyno needs of TensorFlow that has no public name. Nothing else imports its Python inside.

Each function says what it serves and which public name is missing. They import when they are
called: a child imports what it uses only. ``tests/runtime/base/test_tensorflow_internals.py``
holds every name against the TensorFlow at hand.
"""

from __future__ import annotations

import contextlib
import inspect
from typing import TYPE_CHECKING

from tfdyno.runtime.base.replaced import replaced

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager as Change

    from tfdyno.core.base.untyped import Dataset, Function, Graph, Module, Operation, Value

STRATEGIES = "tensorflow.python.distribute.distribute_lib"
"""The module that defines what every strategy is made from, to be told of its import."""
CTC_KERNELS = {"ctc_loss": "CTCLoss", "ctc_loss_v2": "CTCLossV2"}
"""Functions of TensorFlow's generated code, with the operation that each makes."""

# The process: seeds, devices, strategies


def global_seed() -> int | None:
    """Return what ``tf.random.set_seed`` has set, which has no getter; None: nothing."""
    from tensorflow.python.eager import context

    return context.global_seed()


def operation_seeds() -> random.Random | None:
    """Return what draws seeds for operations without one; None: no seed is set."""
    from tensorflow.python.eager import context

    return getattr(context.context(), "_rng", None)


def global_generator() -> Value:
    """Return the generator of ``tf.random`` or None; the public getter would make one."""
    from tensorflow.python.ops import stateful_random_ops

    return stateful_random_ops.global_generator


def is_deterministic() -> bool:
    """Return whether ``enable_op_determinism`` was called, which has no getter."""
    from tensorflow.python.framework.config import is_op_determinism_enabled

    return bool(is_op_determinism_enabled())


def session_config() -> Value:
    """Threads and memory as TensorFlow would open its devices with: a ``ConfigProto``.

    ``tf.config`` gives them one by one, and the memory fraction not at all.
    """
    from tensorflow.python.eager import context

    return context.context().config


def set_session_config(config: Value) -> bool:
    """Open the devices with a ``ConfigProto``; False: they are open already.

    ``tf.config`` has no call for options of the sessions of TensorFlow 1 that 2 still reads.
    """
    from tensorflow.python.eager import context

    found = context.context()
    if found._context_handle is not None:
        return False
    found._config = config
    return True


def memory_limits_bytes() -> dict[str, int]:
    """Return what TensorFlow may take of each device; ``tf.config`` tells what was set.

    Raises:
        RuntimeError: The devices cannot be opened.
    """
    from tensorflow.python.client import device_lib

    found = device_lib.list_local_devices()
    return {one.name.removeprefix("/device:"): int(one.memory_limit) for one in found}


def forget_kernels() -> None:
    """Let graphs be made ready anew: ``tf.config`` does it only together with other things.

    That takes some 10 ms; nothing is traced or compiled again. A profile then tells of cheap
    operations too, until the graphs have learned of them.
    """
    from tensorflow.python.eager import context

    context.context().clear_kernel_cache()


def scope_changed(strategies: Module, scope: Function) -> Change[None]:
    """Give every strategy another ``scope``; those of TensorFlow 1 share no public class with 2.

    Args:
        strategies: The module ``STRATEGIES``, perhaps just imported.
        scope: The method.
    """
    return replaced((strategies.StrategyBase, "scope", scope))


@contextlib.contextmanager
def outside_scope() -> Iterator[None]:
    """Be in no strategy's scope for a while: Keras' loops read the data as on one device then.

    ``tf.distribute`` can enter a scope, and leave only the one that it has entered last.
    """
    import tensorflow as tf
    from tensorflow.python.distribute import distribute_lib

    graph = tf.compat.v1.get_default_graph()
    creators = graph._variable_creator_stack  # of the scope, which refuse to work outside of it
    graph._variable_creator_stack = []
    distribute_lib._push_per_thread_mode(distribute_lib._get_default_replica_mode())
    try:
        yield
    finally:
        distribute_lib._pop_per_thread_mode()
        graph._variable_creator_stack = creators


# Graphs and operations


def operation_definition(kind: str) -> Value:
    """Return whether an operation has a state, and its attributes; None: a function of the user.

    ``tf.Operation.op_def`` is public, but a node of a function in a graph is no ``Operation``.
    """
    from tensorflow.python.framework import op_def_registry

    return op_def_registry.get(kind)


def operation_flops(graph: Graph, node: Value) -> float | None:
    """FLOPs of one node of a graph by TensorFlow's own count; None: it has none.

    The public profiler of TensorFlow 1 gives sums only.
    """
    from tensorflow.python.framework.ops import get_stats_for_node_def
    from tensorflow.python.profiler.internal import flops_registry  # noqa: F401  (it registers)

    return get_stats_for_node_def(graph, node, "flops").value


def loop_body(loop: Operation) -> Graph:
    """Return the graph of a ``While``: its attribute names it, and nothing public gives it."""
    from tensorflow.python.ops import while_v2

    return while_v2._get_graph(loop, "body", "_body_graph")


def is_control_flow(graph: Graph) -> bool:
    """Return whether a graph is that of a loop or a branch; its class is not public."""
    from tensorflow.python.ops.control_flow_v2_func_graphs import ControlFlowFuncGraph

    return isinstance(graph, ControlFlowFuncGraph)


def may_record() -> bool:
    """Return whether any gradient tape is open: a tape knows of itself only."""
    from tensorflow.python.eager import record

    return bool(record.could_possibly_record())


def unrecorded() -> Change[None]:
    """Let no tape see what is computed: ``GradientTape.stop_recording`` stops its own."""
    from tensorflow.python.eager import record

    return record.stop_recording()


def with_constants(function: Function) -> Function:
    """Return a concrete function with its variables as constants; the public one takes sessions."""
    from tensorflow.python.framework.convert_to_constants import (
        convert_variables_to_constants_v2,
    )

    return convert_variables_to_constants_v2(function, lower_control_flow=False)


def unliftable_error() -> type[Exception]:
    """Return what is raised where variables of a ``tf.function`` are made from what it computes."""
    from tensorflow.python.eager.lift_to_graph import UnliftableError

    return UnliftableError


def python_function_of(token: bytes) -> Value:
    """Return the function of a ``PyFunc``'s token; None: not known. The table is inside."""
    from tensorflow.python.ops import script_ops

    called = script_ops._py_funcs.get(token.decode())
    return inspect.unwrap(getattr(called, "_func", called))


def ctc_changed(made: Callable[[str], Function]) -> Change[None]:
    """Let CTC be computed by other functions: public ones end in generated ones that are replaced.

    Args:
        made: Gives the function for an operation.
    """
    from tensorflow.python.ops import gen_ctc_ops

    return replaced(*((gen_ctc_ops, name, made(kind)) for name, kind in CTC_KERNELS.items()))


# Data


def nexts_changed(change: Callable[[Function], Function]) -> Change[None]:
    """Change each way to take the next element, of iterators and of those that strategies make.

    Their public classes, ``tf.data.Iterator`` and ``tf.distribute.DistributedIterator``, have none.
    """
    from tensorflow.python.data.ops.iterator_ops import OwnedIterator
    from tensorflow.python.distribute.input_lib import DistributedIteratorBase

    names = ("__next__", "get_next", "get_next_as_optional")
    own = [(kind, name, vars(kind).get(name))
           for kind in (OwnedIterator, DistributedIteratorBase) for name in names]  # fmt: skip
    return replaced(*((kind, name, change(taken)) for kind, name, taken in own if taken))


def iterator_model(iterator: Value) -> Value:
    """Return what TensorFlow has measured of the stages of a running iterator: a ``ModelProto``.

    Raises:
        ImportError: This TensorFlow does not tell.
        AttributeError: Nor of this kind of iterator.
        tf.errors.OpError: It keeps no model of this one.
    """
    from tensorflow.python.data.experimental.ops.iterator_model_ops import get_model_proto

    return get_model_proto(iterator)


def stage_over(stage: Dataset, below: Dataset, variant: Value, parallel: str = "") -> Dataset:
    """Return the same stage, or a parallel ``map`` or ``interleave`` as it is, over a new variant.

    Public constructors trace functions anew and draw other seeds.
    """
    from tensorflow.python.data.ops import dataset_ops, interleave_op, map_op

    kinds = {
        "": type(stage),
        "map": map_op._ParallelMapDataset,
        "interleave": interleave_op._ParallelInterleaveDataset,
    }
    made = object.__new__(kinds[parallel])
    made.__dict__.update(stage.__dict__)
    dataset_ops.UnaryDataset.__init__(made, below, variant)
    return made
