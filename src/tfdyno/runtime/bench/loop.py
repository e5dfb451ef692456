"""Training loops of the user's own, timed in place: each call of the step, while the script runs.

The step is the first ``tf.function`` called from Python that takes gradients of a tape; in a loop
without one, the line that asks a tape for gradients; or ``train_on_batch``.
"""

from __future__ import annotations

import contextlib
import math
import time
from abc import ABC, abstractmethod
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from weakref import WeakSet

import tensorflow as tf

from tfdyno.core.base.errors import UsageError
from tfdyno.core.measure.measurement import Protocol
from tfdyno.core.recipe.recipe import InputOptions
from tfdyno.process.own_lines import own_place
from tfdyno.runtime.base.replaced import replaced
from tfdyno.runtime.base.replicas import replicas, worker_count
from tfdyno.runtime.bench.fit import Outcome, too_short
from tfdyno.runtime.recipe.apply import OWN_LOOP, asked
from tfdyno.runtime.recipe.settle import settle_execution
from tfdyno.runtime.workload.capture_loop import INSIDE
from tfdyno.runtime.workload.dataspec import DataSpec, Leaf, of_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from tfdyno.core.base.untyped import Dataset, Function, Instance, Model, Strategy, Value
    from tfdyno.core.choose.workload import Workload
    from tfdyno.core.measure.measurement import BenchTask
    from tfdyno.core.recipe.recipe import Recipe
    from tfdyno.runtime.bench.fit import Plan


_FEWEST_SAMPLES = 10
"""A loop that ends by itself before the steady state is long enough is still told with these."""
_ALONE_STEPS = 100
_ITS_OWN = Protocol(data="own")
NO_CALL = object()
"""In the place of a step's result, which may be None, before its first call."""


class LoopDone(BaseException):
    """Ends the user's script: enough was measured, or it cannot be; no script catches it."""


class Loop(ABC):
    """What is known of the loop; ``outcome`` stands when its step was found."""

    def __init__(
        self,
        workload: Workload,
        recipe: Recipe,
        progress: Callable[[str], None] = lambda _said: None,
        protocol: Protocol = _ITS_OWN,
    ) -> None:
        """Watch for a step; nothing is found yet.

        Args:
            workload: What is run.
            recipe: Of which only that is left to apply which belongs to the step.
            progress: Called with a line at every stage.
            protocol: Which data the step gets; its own unless that says otherwise.
        """
        self.workload, self.recipe = workload, recipe
        self.progress, self.protocol = progress, protocol
        self.outcome: Outcome | None = None
        self.execution: BenchTask | Any = "graph"
        self.step_count = self.parameter_count = 0
        self.error: UsageError | None = None
        self.unwatch: Callable[[], None] = lambda: None
        """Stops watching: what Keras trains by itself is no loop of the user's own."""
        self._active: list[int] = []
        self._with_dataset: set[int] = set()
        self._with_gradient: set[int] = set()
        self._step: Any = None
        self._code: Any = None
        """Of the step's function; the script may make that function anew for each call."""
        self._made: WeakSet[Any] = WeakSet()
        """Functions of this code that were called."""
        self._replica_count = self.worker_count = 1
        self._compiled: Any = None
        self._fixed = {**OWN_LOOP, "input": InputOptions()}

    # What a loop is watched for

    @abstractmethod
    def _timed(self, call: Callable[[], Any]) -> Value:
        """Run one call of the step; raises ``LoopDone`` when it is enough."""

    @abstractmethod
    def _began(self, result: Value, seconds_s: float) -> None:
        """The step was found.

        Args:
            result: Of its first call; ``NO_CALL``: that comes next.
            seconds_s: What that took; 0.0: the first that counts comes next.
        """

    @abstractmethod
    def _passed(self) -> None:
        """The mark of a step was passed again; raises ``LoopDone`` when it is enough."""

    # What all have in common

    @property
    def is_found(self) -> bool:
        """Whether a step was found, or that it cannot be measured."""
        return bool(self.outcome or self.error)

    def watching(self) -> AbstractContextManager[None]:
        """Watch around the script."""
        return watched(self)

    def take(self, function: Function) -> None:
        """Let a ``tf.function`` be the step, whether it takes gradients or not, at any batch."""
        self._with_gradient.add(id(function.python_function))
        del self._fixed["batch_size"]

    def function_called(
        self,
        function: Function,
        call: Callable[..., Any],
        args: tuple[Any, ...],
        named: dict[str, Any],
    ) -> Value:
        """Run one call of a ``tf.function``, and time it if it is the step."""
        key, outer = id(function.python_function), not self._active
        if outer and key != self._step and self._is_made_anew(function):
            self._step = key
        if outer and key == self._step:
            return self._run(lambda: call(self._compiled or function, *args, **named))
        if any(isinstance(value, tf.data.Dataset) for value in (*args, *named.values())):
            self._with_dataset.add(key)
        began = time.perf_counter()
        self._active.append(key)
        try:
            result = call(function, *args, **named)
        finally:
            self._active.pop()
        if outer and key in self._with_gradient and self._step is None:
            seconds_s = time.perf_counter() - began
            self._found(key, function, (*args, *named.values()), result, seconds_s)
            if self.protocol.data != "own":
                self._repeat(lambda: call(self._compiled or function, *args, **named))
        return result

    def _is_made_anew(self, function: Function) -> bool:
        """Return whether it is the step again, as another function that was not called before.

        Two functions of one code that are called in turns, as those of two models, stay two.
        """
        code = getattr(function.python_function, "__code__", None)
        if code is None or code is not self._code or function.python_function in self._made:
            return False
        self._made.add(function.python_function)
        return True

    def gradient_asked(self, sources: Dataset, _target: Value) -> None:
        """Note that a tape was asked for gradients of a target."""
        if self._with_dataset.intersection(self._active):
            self._stop(INSIDE)
        if not self.parameter_count:
            variables = [v for v in tf.nest.flatten(sources) if hasattr(v, "shape")]
            self.parameter_count = sum(
                math.prod(int(size or 1) for size in variable.shape) for variable in variables
            )
        if self._active:
            self._with_gradient.update(self._active)
        elif tf.executing_eagerly():
            self._eager_step()

    def strategy_ran(self, strategy: Strategy) -> None:
        """Note on how many devices and in how many processes a strategy runs the step."""
        self._replica_count = strategy.num_replicas_in_sync
        self.worker_count = worker_count(strategy)

    def batch_trained(self, model: Model, call: Callable[[], Any], bound: dict[str, Any]) -> Value:
        """Run one ``train_on_batch``, and time it if it is of the model that was first."""
        if self._step is None:
            self._step = id(model)
            self.unwatch()
            self._prepare()
            notes = self._settled(model)
            spec = of_batch(bound.get("x"), bound.get("y"), bound.get("sample_weight"))
            self.outcome = Outcome(
                model=model,
                title=model.name,
                spec=spec,
                batch_size=spec.batch_size // replicas(model),
                replica_count=replicas(model),
                notes=("A loop of train_on_batch, timed in place.", *notes),
            )
            self._began(NO_CALL, 0.0)
            if self.protocol.data != "own":
                self._repeat(call)
        return self._run(call) if self._step == id(model) else call()

    def _settled(self, model: Model) -> list[str]:
        """Set how the model runs its step; returns notes."""
        try:
            notes = settle_execution(model, self.recipe)
        except UsageError as error:
            self._stop(error)
        if self.recipe.execution != "auto":
            model.train_function = None  # to be made anew
        return notes

    def _run(self, call: Callable[[], Any]) -> Value:
        self._active.append(self._step)  # no function within is the loop's own
        try:
            result = self._timed(call)
        finally:
            self._active.pop()
        self.step_count += 1
        return result

    def _repeat(self, call: Callable[[], Any]) -> None:
        """Repeat the same batch again and again, until there is enough."""
        while True:
            self._run(call)

    def _found(
        self,
        key: int,
        function: Function,
        arguments: tuple[Any, ...],
        result: Value,
        seconds_s: float,
    ) -> None:
        self._step = key
        self._code = getattr(function.python_function, "__code__", None)
        if self._code is not None:
            self._made.add(function.python_function)
        self._prepare()
        name = getattr(function.python_function, "__name__", "step")
        self._describe(name, arguments)
        wanted, own = self.recipe.execution, bool(function._jit_compile)
        if wanted != "auto" and own != (wanted == "xla"):
            self._compiled = tf.function(
                function.python_function, jit_compile=wanted == "xla", reduce_retracing=True
            )
            seconds_s = 0.0  # its first step is the one that compiles
        self.execution = "xla" if (wanted == "xla" or (wanted == "auto" and own)) else "graph"
        self.step_count += bool(seconds_s)
        self._began(result, seconds_s)

    def _eager_step(self) -> None:
        """Take the line that asks for gradients as a step's mark without a ``tf.function``."""
        line = own_place()
        if self._step is None:
            self._step = line
            self._prepare()
            if self.recipe.execution != "auto" or self.protocol.data != "own":
                what = "a loop without tf.function can only be measured as it is"
                self._stop(UsageError(what, remedy="put @tf.function before its step"))
            self._describe(f"line {line.rpartition(':')[2]}", ())
            self.execution = "eager"
            self._began(NO_CALL, 0.0)
        elif self._step == line:
            self.step_count += 1
            self._passed()

    def _describe(self, name: str, arguments: tuple[Any, ...]) -> None:
        leaves, batch = _leaves(arguments)
        spec = DataSpec(x=leaves, batch_size=batch * self._replica_count)
        self.outcome = Outcome(
            model=None,
            title=f"{Path(self.workload.reference.partition(':')[0]).stem}:{name}",
            spec=spec,
            batch_size=batch,
            replica_count=self._replica_count,
            notes=("A loop of the script's own, timed in place: its input is part of it.",),
        )

    def _prepare(self) -> None:
        """Prepare a loop that may end at any step, whose settings cannot be set from outside."""
        for name in asked(self.recipe, self._fixed):
            what = f"{name} cannot be set for a loop of the script's own"
            self._stop(UsageError(what, remedy="set it in the script"))
        if self.protocol.epochs or self.protocol.target_metric:
            what = "the epochs of a loop of the script's own are not known"
            self._stop(UsageError(what, remedy="leave --epochs and --target out"))

    def _stop(self, error: UsageError) -> NoReturn:
        self.error = error
        raise LoopDone


class LoopBench(Loop):
    """Times each call of the step."""

    def __init__(self, plan: Plan) -> None:
        """Watch for a step; nothing is found yet."""
        super().__init__(plan.workload, plan.recipe, plan.progress, plan.protocol)
        self.clock = plan.clock

    def finish(self) -> Outcome:
        """Return what was measured when the script has ended.

        Raises:
            UsageError: It ended before there was enough, or its loop cannot be measured.
        """
        if self.error:
            raise self.error
        assert self.outcome
        if self.clock.done:
            return self.outcome
        if self.clock.sample_count < _FEWEST_SAMPLES:
            raise too_short(self.clock)
        note = f"The script's loop ended after {self.clock.step_count:,} steps."
        return replace(self.outcome, notes=(*self.outcome.notes, note))

    def _began(self, result: Value, seconds_s: float) -> None:
        self.clock.alone = _ALONE_STEPS
        if seconds_s:
            self.clock.first(seconds_s)
        else:
            self.clock.start()

    def _timed(self, call: Callable[[], Any]) -> Value:
        result = call()
        self._passed()
        return result

    def _passed(self) -> None:
        if self.clock.steps(1):
            raise LoopDone


@contextlib.contextmanager
def watched(loop: Loop) -> Iterator[None]:
    """Tell ``loop`` of every function, tape and strategy used, until ``loop.unwatch()``."""
    function_type, tape_type = type(tf.function(lambda: None)), tf.GradientTape
    strategy_type = tf.distribute.Strategy
    call, gradient, run = function_type.__call__, tape_type.gradient, strategy_type.run

    def watched_call(self: Instance, *arguments: Any, **named: Any) -> Value:
        return loop.function_called(self, call, arguments, named)

    def watched_gradient(
        self: Instance, target: Value, sources: Dataset, *rest: Any, **named: Any
    ) -> Value:
        loop.gradient_asked(sources, target)
        return gradient(self, target, sources, *rest, **named)

    def watched_run(self: Instance, *arguments: Any, **named: Any) -> Value:
        loop.strategy_ran(self)
        return run(self, *arguments, **named)

    changes = (
        (function_type, "__call__", watched_call), (tape_type, "gradient", watched_gradient),
        (strategy_type, "run", watched_run),
    )  # fmt: skip
    with contextlib.ExitStack() as stack:
        stack.enter_context(replaced(*changes))
        loop.unwatch = stack.close
        yield


def _leaves(arguments: tuple[Any, ...]) -> tuple[tuple[Leaf, ...], int]:
    """Return a step's tensors, and the first dimension that most of them share."""
    shapes = []
    for value in tf.nest.flatten([_spec(argument) for argument in arguments]):
        one = getattr(value, "values", (value,))[0]  # of the first replica
        if not isinstance(one, tf.Variable) and hasattr(one, "dtype") and hasattr(one, "shape"):
            shapes.append((tuple(one.shape), tf.as_dtype(one.dtype).name))
    leading = [shape[0] or 0 for shape, _ in shapes if shape]
    batch = max(leading, key=leading.count, default=0)
    return tuple(Leaf(shape=s[1:], dtype=d) for s, d in shapes if s and s[0] == batch), batch


def _spec(argument: Value) -> Value:
    """Return an iterator's shapes of its batches: taking one would lose it."""
    return getattr(argument, "element_spec", argument)
