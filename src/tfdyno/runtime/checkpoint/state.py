"""The variables that are a training's state: named, copied to the host, and set again.

Values are those of the whole training, not of a replica, so that a run under MirroredStrategy can
be continued on one device and the other way round. What each replica has summed up by itself is
kept beside their sum: on as many replicas each goes on with its own, to the last bit. Under a
strategy over several workers reading and setting are joint operations: every worker has to call
them at the same step.
"""

from __future__ import annotations

import re
from collections.abc import ValuesView
from typing import TYPE_CHECKING, Any

import numpy as np

from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.runtime.checkpoint.files import Array, Entry, read_arrays

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tfdyno.core.base.untyped import Model, Optimizer, Value, Variable
    from tfdyno.runtime.checkpoint.files import Checkpoint

State = list[tuple[str, Any]]
_NUMBER = re.compile(r"_\d+(?=[_/#]|$)")
_COMPONENT = re.compile(r"(.*?)(?:_(\d+))?")
_REPLICAS = "replicas/"
"""What stands before the name of a variable: what each replica has of its sum, one after the other.
"""


def state_of(model: Model, extra: Iterable[Any] = ()) -> State:
    """Return everything that training changes, in a stable order and under unique names.

    The model's variables with the states of its seed generators, then those of its optimizers
    (slots, averages, accumulators, the loss scale; also of optimizers that a model with an own
    ``train_step`` keeps beside ``optimizer``), then those of its metrics, then ``extra``.

    Args:
        model: A built and compiled Keras model.
        extra: More variables of the caller's, tf.Variable or keras.Variable.
    """
    groups = {
        "model": [*model.trainable_variables, *model.non_trainable_variables],
        "optimizer": [v for each in optimizers_of(model) for v in _variables(each)],
        "metrics": list(model.metrics_variables),
        "extra": list(extra),
    }
    state: State = []
    seen: set[int] = set()
    used: set[str] = set()
    for group, variables in groups.items():
        for variable in variables:
            if id(variable) not in seen:
                seen.add(id(variable))
                state.append((_unique(f"{group}/{_path(variable)}", used), variable))
    return state


def optimizers_of(model: Model) -> list[Any]:
    """Return the optimizer of ``compile``, then those that an own ``train_step`` keeps."""
    import keras

    found = [getattr(model, "optimizer", None)]
    for value in vars(model).values():
        items = value.values() if isinstance(value, dict) else value
        found += items if isinstance(items, list | tuple | ValuesView) else [items]
    return [each for each in found if isinstance(each, keras.Optimizer)]


def _variables(optimizer: Optimizer) -> list[Any]:
    inner = getattr(optimizer, "inner_optimizer", None)  # of a LossScaleOptimizer
    own = optimizer.variables
    return [*(own() if callable(own) else own), *(_variables(inner) if inner is not None else ())]


def _path(variable: Variable) -> str:
    import keras

    if isinstance(variable, keras.Variable):  # to ask others for a path would read the value
        return variable.path
    return variable.name.partition(":")[0]


def _unique(name: str, used: set[str]) -> str:
    free, number = name, 1
    while free in used:
        number += 1
        free = f"{name}#{number}"
    used.add(free)
    return free


class Snapshot:
    """Host memory for one copy of a state, used again for the next.

    Fresh memory would cost more time than the copy: the system hands it out page by page.
    """

    def __init__(self) -> None:
        self.values: dict[str, Array] = {}
        self.parts: dict[str, Array] = {}
        """Of sums that are not 0: what each replica has, as more arrays of the data file."""

    def take(self, state: State) -> None:
        """Copy the values now; what is still read from ``values`` changes with it.

        Raises:
            UsageError: A variable holds texts.
            ToolError: The host has no memory for a copy.
        """
        taken: dict[str, Array] = {}
        parts: dict[str, Array] = {}
        for name, variable in state:
            if _is_sum(raw := _raw(variable)):
                stack = _stacked(raw)
                value = stack.sum(axis=0, dtype=stack.dtype)
                if stack.any():
                    parts[_REPLICAS + name] = stack
            else:
                value = _read(raw)
            if value.dtype.hasobject:
                what = f"a checkpoint cannot hold {name}"
                raise UsageError(what, why="it is a variable of texts")
            buffer = self.values.get(name)
            if buffer is None or buffer.shape != value.shape or buffer.dtype != value.dtype:
                buffer = _memory_for(value)
            np.copyto(buffer, value)
            taken[name] = buffer
        self.values, self.parts = taken, parts


def _memory_for(value: Array) -> Array:
    try:
        return np.empty(value.shape, value.dtype)
    except MemoryError as error:
        what = "no memory on the host for a copy of the training's state"
        raise ToolError(what, why=str(error)) from None


def take_part(state: State) -> None:
    """Join the reading of another worker's ``Snapshot.take`` and keep nothing."""
    for _, variable in state:
        raw = _raw(variable)
        if _is_sum(raw):
            _stacked(raw)
        elif _is_on_read(raw) or getattr(raw, "is_joint", False):
            _read(raw)


def _raw(variable: Variable) -> Value:
    """Return TensorFlow's variable inside a Keras one; on JAX what reads and sets all its parts."""
    import keras

    if not isinstance(variable, keras.Variable):
        return variable
    if keras.backend.backend() == "jax":
        from tfdyno.runtime.base.jax_values import Whole

        return Whole(variable)
    return variable.value


def _is_on_read(raw: Value) -> bool:
    """Return whether each replica has a value of its own, as those of metrics do."""
    if not hasattr(raw, "values"):
        return False
    import tensorflow as tf

    on_read = tf.VariableSynchronization.ON_READ
    return bool(getattr(raw, "synchronization", None) == on_read)


def _is_sum(raw: Value) -> bool:
    """Return whether several replicas add to it, each to its own share."""
    if not _is_on_read(raw):
        return False
    import tensorflow as tf

    if raw.aggregation != tf.VariableAggregation.SUM:
        return False
    return bool(raw.distribute_strategy.num_replicas_in_sync > 1)


def _stacked(raw: Value) -> Array:
    """Stack what each replica has of a sum, those of other workers too: ``(replicas, *shape)``."""
    import tensorflow as tf

    strategy, own = raw.distribute_strategy, [part.numpy() for part in raw.values]
    if len(own) == strategy.num_replicas_in_sync:
        return np.stack(own)
    local = strategy.run(lambda: tf.expand_dims(tf.convert_to_tensor(raw), 0))
    return np.asarray(strategy.gather(local, axis=0))


def _read(raw: Value) -> Array:
    """Return the value without a copy where TensorFlow gives it so."""
    import tensorflow as tf

    if _is_on_read(raw) and raw.aggregation == tf.VariableAggregation.NONE:
        raw = raw.values[0]  # nothing says what the value of all would be
    read = getattr(raw, "read_value", None)
    return np.asarray(read() if read else tf.convert_to_tensor(raw))


def set_state(state: State, checkpoint: Checkpoint) -> dict[str, Array]:
    """Set all variables from a checkpoint, or none where one does not fit.

    Returns:
        The arrays that its ``extra`` refers to.

    Raises:
        UsageError: Names, shapes or dtypes differ; the sentence has the first difference.
        ToolError: The file cannot be read.
    """
    here = [_described(name, variable) for name, variable in state]
    difference = first_difference(checkpoint.variables, here)
    if difference:
        raise UsageError(
            f"cannot continue from {checkpoint.marker}",
            why=f"the model has changed since: {difference}",
            remedy="use the model that wrote it, or start anew in another folder",
        )
    variables = dict(state)
    names = {there.name: own.name for there, own in zip(checkpoint.variables, here, strict=True)}
    arrays: dict[str, Array] = {}
    for number, (entry, value) in enumerate(read_arrays(checkpoint)):
        if number < len(checkpoint.variables):
            _set(_raw(variables[names[entry.name]]), value)
        elif entry.name.startswith(_REPLICAS):
            _set_shares(_raw(variables[names[entry.name.removeprefix(_REPLICAS)]]), value)
        else:
            arrays[entry.name] = value
    return arrays


def _described(name: str, variable: Variable) -> Entry:
    raw = _raw(variable)
    shape = tuple(int(size) for size in raw.shape)
    dtype = getattr(raw.dtype, "as_numpy_dtype", raw.dtype)
    return Entry(name=name, shape=shape, dtype=np.dtype(dtype).name)


def first_difference(there: Sequence[Entry], here: Sequence[Entry]) -> str:
    """Say where two lists of variables part, as half a sentence; empty where they do not.

    Keras numbers layers without a name over the whole process: where a model is built a second
    time, ``dense`` and ``dense_1`` are ``dense_2`` and ``dense_3``. So much may differ.
    """
    shifts: dict[str, int] = {}
    for entry, own in zip(there, here, strict=False):
        same = (entry.shape, entry.dtype) == (own.shape, own.dtype)
        if not same or not _same_name(entry.name, own.name, shifts):
            return f"{_words(entry)} in the checkpoint is {_words(own)} here"
    if len(there) > len(here):
        return f"{_words(there[len(here)])} of the checkpoint is missing here"
    if len(there) < len(here):
        return f"{_words(here[len(there)])} is not in the checkpoint"
    return ""


def _same_name(there: str, here: str, shifts: dict[str, int]) -> bool:
    """Return whether the names are equal but for numbers, all moved by one amount for each word."""
    if there.startswith("optimizer/") and here.startswith("optimizer/"):
        # Slots repeat the names of their variables, and lie below what built the optimizer.
        there, here = there.rpartition("/")[2], here.rpartition("/")[2]
        return _NUMBER.sub("", there) == _NUMBER.sub("", here)
    if _NUMBER.sub("", there) != _NUMBER.sub("", here):
        return False
    for parts in zip(there.split("/"), here.split("/"), strict=True):
        (word, number), (_, own) = (_COMPONENT.fullmatch(part).groups("0") for part in parts)  # type: ignore[union-attr]
        if shifts.setdefault(word, int(own) - int(number)) != int(own) - int(number):
            return False
    return True


def _words(entry: Entry) -> str:
    return f"{entry.name} ({entry.dtype} {list(entry.shape)})"


def _set(raw: Value, value: Array) -> None:
    if _is_sum(raw):
        # The whole to the first replica of all: shares would round, whole numbers most.
        whole = np.zeros((raw.distribute_strategy.num_replicas_in_sync, *value.shape), value.dtype)
        whole[0] = value
        _set_shares(raw, whole)
    elif _is_on_read(raw):
        for component in raw.values:
            component.assign(value)
    else:
        raw.assign(value)


def _set_shares(raw: Value, stack: Array) -> None:
    """Give each replica of this process its share, if there are as many as there were."""
    import tensorflow as tf

    if not _is_sum(raw) or len(stack) != raw.distribute_strategy.num_replicas_in_sync:
        return
    strategy = raw.distribute_strategy
    own = strategy.run(lambda: tf.distribute.get_replica_context().replica_id_in_sync_group)
    for number, component in zip(strategy.experimental_local_results(own), raw.values, strict=True):
        component.assign(stack[int(number)])
