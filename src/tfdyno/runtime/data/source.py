"""The data that a workload trains on, reached without a step being measured, and used in place."""

from __future__ import annotations

import contextlib
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import tensorflow as tf

from tfdyno.core.base.errors import TfdynoError, UsageError
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.process.failure import first_line
from tfdyno.runtime.base.keras_internals import data_adapter, without_validation
from tfdyno.runtime.base.step_failure import measured_code
from tfdyno.runtime.base.written_files import written_aside
from tfdyno.runtime.bench.loop import Loop, LoopDone, watched
from tfdyno.runtime.bench.script_training import of_script
from tfdyno.runtime.diagnose.input import Source, kind_of
from tfdyno.runtime.diagnose.waits import Reading, places_kept, reading_watched
from tfdyno.runtime.workload.dataspec import DEFAULT_BATCH
from tfdyno.runtime.workload.fit_call import as_arguments
from tfdyno.runtime.workload.held_calls import Held, held_calls
from tfdyno.runtime.workload.rebatch import rebatched
from tfdyno.runtime.workload.workloads import function_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.base.untyped import Dataset, Function, Tensor, Value
    from tfdyno.core.choose.workload import Workload
    from tfdyno.runtime.workload.fit_call import Call

NO_DATA = "there is no input pipeline to measure"
NAME_IT = "name the function that returns the data: file.py:function"


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """What was reached."""

    source: Source
    title: str
    workers: int = 0
    """The workers of a PyDataset."""
    uses_processes: bool = False
    batches_per_epoch: int = 0
    """0: not known."""
    notes: tuple[str, ...] = ()


Use = Callable[[Data], Any]


def with_data(workload: Workload, use: Use, *, batch_size: int = 0) -> Value:
    """Run a workload up to its training, and ``use`` the data while everything still stands.

    Args:
        workload: A script, a function that returns a model with data or data alone, or a standard
            task, whose small real data is taken.
        use: Called once; what it returns is returned.
        batch_size: Over all replicas; 0: as the data has it.

    Raises:
        UsageError: The workload brings no data, or the user's code fails.
        ToolError: There is not enough memory.
    """
    with places_kept(), written_aside():
        if workload.task:
            return use(_of_task(workload.task, batch_size))
        if workload.kind == "script":
            return _script(workload, use, batch_size)
        if workload.kind == "function":
            with measured_code(workload.reference, lambda: 0, lambda: batch_size):
                return use(_of_function(workload.reference, batch_size))
    remedy = "give a script, or file.py:function that returns (model, data)"
    raise UsageError(f"{workload.reference} brings no data", why=NO_DATA, remedy=remedy)


def _of_task(name: str, batch_size: int) -> Data:
    from tfdyno.runtime.workload.tasks import build

    task = build(name, batch_size=batch_size, real=True)
    note = f"The data is {task.data_set}: small, and not what task:{name} is known for."
    return Data(
        source=Source(dataset=task.data),
        title=name,
        batches_per_epoch=task.samples_per_epoch // task.batch_size,
        notes=(note,),
    )


def _of_function(reference: str, batch_size: int) -> Data:
    """Read ``file.py:function[:data]``, whether there is a model beside the data or not."""
    import keras

    place, name, *data_name = reference.split(":")
    held = Held()
    with held_calls(held):
        returned = function_of(f"{place}:{data_name[0] if data_name else name}")()
    is_pair = isinstance(returned, tuple) and bool(returned)
    if is_pair and isinstance(returned[0], keras.Model):
        returned = returned[1] if len(returned) == 2 else returned[1:]
    if isinstance(returned, keras.Model) or returned is None:
        raise UsageError(f"{reference} returns no data", why=NO_DATA,
                         remedy="return (model, data), or data alone")  # fmt: skip
    return of_fit(as_arguments(returned), name, batch_size, held.notes)


def of_fit(
    arguments: dict[str, Any], title: str, batch_size: int = 0, notes: tuple[str, ...] = ()
) -> Data:
    """Return the data of a call of ``fit`` as Keras would read it.

    Args:
        arguments: Of the call, by name.
        title: Of what is trained.
        batch_size: As for ``with_data``.
        notes: On how the call was reached.

    Raises:
        UsageError: The call has no data, or data that Keras does not read.
    """
    if arguments.get("x") is None:
        raise UsageError(f"{title} is trained without data", why=NO_DATA)
    given, said = rebatched(arguments, batch_size, whole_only=False)
    x, y, weight = (given.get(name) for name in ("x", "y", "sample_weight"))
    if (share := given.get("validation_split")) and given.get("validation_data") is None:
        x, y, weight = without_validation((x, y, weight), share)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that shuffle=True, its default, means nothing here
            adapter = data_adapter(
                x, y, weight, batch_size=given.get("batch_size") or DEFAULT_BATCH,
                steps_per_epoch=given.get("steps_per_epoch"),
                shuffle=given.get("shuffle", True) if _is_shuffled(x) else False,
                class_weight=given.get("class_weight"),
            )  # fmt: skip
    except ValueError as error:
        what = f"{title} is trained on a {type(x).__name__}, which Keras does not read"
        raise UsageError(what, why=first_line(error)) from None
    return Data(
        source=Source(
            dataset=adapter.get_tf_dataset(),
            kind=kind_of(adapter),
            opening=adapter.on_epoch_begin,
            closing=adapter.on_epoch_end,
        ),
        title=title,
        workers=int(getattr(x, "workers", 0) or 0) if hasattr(x, "num_batches") else 0,
        uses_processes=bool(getattr(x, "use_multiprocessing", False)),
        batches_per_epoch=int(adapter.num_batches or 0),
        notes=(*notes, *said),
    )


def _is_shuffled(x: Tensor) -> bool:
    """Return whether ``shuffle`` of ``fit`` means something for it."""
    return not isinstance(x, tf.data.Dataset | types.GeneratorType)


def _script(workload: Workload, use: Use, batch_size: int) -> Value:
    loop = LoopData(workload, lambda dataset, called: use(_of_loop(dataset, called)), batch_size)

    def trained(call: Call) -> tuple[Any]:
        return (use(of_fit(call.arguments, call.title, batch_size, call.notes)),)

    found = of_script(loop, trained, remedy=NAME_IT)
    if error := loop.failed or loop.error:
        raise error
    return (found or loop.used)[0]


def _of_loop(dataset: Dataset, title: str) -> Data:
    note = "A loop of the script's own: its first step was run to find its data."
    count = max(0, int(dataset.cardinality()))
    return Data(source=Source(dataset=dataset), title=title, batches_per_epoch=count, notes=(note,))


class LoopData(Loop):
    """Finds the step of a loop, and uses what the loop reads in place when it has ended once."""

    def __init__(self, workload: Workload, use: Callable[[Any, str], Any], batch_size: int) -> None:
        """Watch for a step.

        Args:
            workload: The script.
            use: Called with the dataset and a title; ``used`` holds what it returned.
            batch_size: Refused where it is not 0: a loop makes its own batches.
        """
        super().__init__(workload, Recipe(batch_size=batch_size))
        self.reading = Reading(lambda _waited_s: None)
        self.used: tuple[Any, ...] = ()
        self.failed: TfdynoError | None = None
        self._use = use
        self._read: Any = None

    @property
    def is_found(self) -> bool:
        """Whether the data was used, or that it cannot be."""
        return bool(self.used or self.failed or self.error)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Watch around the script."""
        with watched(self), reading_watched(self.reading):
            yield

    def function_called(
        self,
        function: Function,
        call: Callable[..., Any],
        args: tuple[Any, ...],
        named: dict[str, Any],
    ) -> Value:
        """Run one call of a ``tf.function``; keep what an iterator among its arguments reads."""
        for value in (*args, *named.values()):
            if isinstance(value, tf.data.Iterator):
                self._read = self.reading.dataset_of(value)
        return super().function_called(function, call, args, named)

    def _began(self, result: Value, seconds_s: float) -> None:
        """The next step is looked at."""

    def _timed(self, call: Callable[[], Any]) -> NoReturn:
        call()
        self._passed()

    def _passed(self) -> NoReturn:
        """A step has ended: what it read is the training's data."""
        self.unwatch()
        dataset = self.reading.dataset if self._read is None else self._read
        title = self.outcome.title if self.outcome else "the loop"
        try:
            if not isinstance(dataset, tf.data.Dataset):
                what = f"{title} reads no tf.data.Dataset"
                raise UsageError(what, why=NO_DATA, remedy=NAME_IT)
            self.used = (self._use(dataset, title),)
        except TfdynoError as error:
            self.failed = error
        raise LoopDone
