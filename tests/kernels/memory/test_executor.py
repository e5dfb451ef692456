"""The executor on graphs of a few operations, worked by hand."""

from __future__ import annotations

import pytest

from tfdyno.core.base.errors import ToolError
from tfdyno.kernels.graph import Graph, TensorType
from tfdyno.kernels.memory.executor import Stay, run
from tfdyno.kernels.unfused.tensorflow_ops import Operation, Operations, operations_of

KIND = TensorType((256,), "f32", 32)
HALF = TensorType((128,), "f32", 32)


class Step:
    """A graph under construction: ``add`` gives the value of a new operation."""

    def __init__(self, arguments: int) -> None:
        self.graph = Graph()
        self.graph.arguments = [self.graph.add("argument", (), [KIND])[0] for _ in range(arguments)]

    def add(self, kind: str, *reads: int, size: TensorType = KIND, at: str = "jit(f)/") -> int:
        return self.graph.add(kind, reads, [size], location=f"{at}{kind}")[0]

    def run(self, *outputs: int, donated: tuple[int, ...] = ()) -> dict[int, tuple[int, int]]:
        """First buffer of every stay -> (start, end)."""
        self.graph.outputs = list(outputs)
        _, stays = run(operations_of(self.graph), frozenset(donated))
        return {stay.buffer: (stay.start, stay.end) for stay in stays}


def test_a_result_is_released_after_its_last_reader() -> None:
    step = Step(1)
    first = step.add("dot_general", 0, 0)
    second = step.add("dot_general", first, 0)
    third = step.add("dot_general", second, 0)
    assert step.run(third) == {0: (0, 2), first: (0, 1), second: (1, 2), third: (2, 2)}


def test_an_elementwise_kernel_writes_over_what_nobody_else_reads() -> None:
    step = Step(1)
    made = step.add("dot_general", 0, 0)
    result = step.add("tanh", made)
    assert step.run(result) == {0: (0, 1), made: (0, 1)}  # one stay for both


@pytest.mark.parametrize("reason", ["argument", "other size", "read later", "moved"])
def test_it_does_not_write_over(reason: str) -> None:
    step = Step(1)
    size = HALF if reason == "other size" else KIND
    source = 0 if reason == "argument" else step.add("dot_general", 0, 0, size=size)
    seen = step.add("transpose", source) if reason == "moved" else source
    result = step.add("tanh", seen)
    last = step.add("dot_general", result, source if reason == "read later" else 0)
    assert result in step.run(last)


def test_a_view_keeps_its_source_alive() -> None:
    step = Step(1)
    made = step.add("dot_general", 0, 0)
    view = step.add("reshape", made)
    middle = step.add("dot_general", 0, 0)
    last = step.add("dot_general", view, middle)
    assert step.run(last)[made] == (0, 2)


def test_what_became_ready_first_runs_first() -> None:
    step = Step(1)
    chain = step.add("dot_general", 0, 0)
    after = step.add("dot_general", chain, 0)
    free = step.add("dot_general", 0, 0)  # later in the program, but ready from the start
    step.graph.outputs = [after, free]
    schedule, _ = run(operations_of(step.graph), frozenset())
    assert [each.writes[0] for each in schedule] == [chain, free, after]


def test_a_variable_keeps_its_old_memory_until_it_is_assigned() -> None:
    step = Step(2)
    scaled = step.add("multiply", 0, 0)  # the last to read the old value
    waiting = step.add("dot_general", 1, 1)
    updated = step.add("dot_general", scaled, waiting)
    lives = step.run(updated, donated=(0,))
    assert lives[0] == (0, 2)
    assert lives[updated] == (2, 2)


def test_a_decayed_weight_takes_the_place_of_the_old_one() -> None:
    # AdamW assigns w - c·w first and changes that: the old weight goes once its readers are done
    step = Step(2)
    product = step.add("dot_general", 0, 1)
    scaled = step.add("multiply", 0, 0)
    decayed = step.add("subtract", 0, scaled)
    gradient = step.add("dot_general", product, 1)
    updated = step.add("subtract", decayed, gradient)
    lives = step.run(updated, donated=(0,))
    assert lives[0] == (0, 3)  # one step before the update
    assert lives[scaled] == (1, 4)  # the decayed and the updated weight lie where it lay


def test_the_gradient_is_handed_on_before_a_weights_own_is_made() -> None:
    step = Step(2)  # a weight and an input
    back = "jit(f)/transpose(jvp(layer))/"
    given = step.add("dot_general", 1, 1, at=back)
    own = step.add("dot_general", given, 1, at=back)
    passed = step.add("dot_general", given, 0, at=back)
    step.graph.outputs = [own, passed]
    schedule, _ = run(operations_of(step.graph), frozenset({0}))
    assert [each.writes[0] for each in schedule] == [given, passed, own]


def test_kernels_that_wait_for_each_other_are_an_error() -> None:
    step = Step(1)
    items = [Operation(0, "tanh", [8], [9]), Operation(0, "tanh", [9], [8])]
    with pytest.raises(ToolError, match="wait for each other"):
        run(Operations(step.graph, items, [False], []), frozenset())


def test_a_wait_that_would_tie_a_knot_is_left_out() -> None:
    step = Step(1)
    items = [
        Operation(0, "tanh", [0], [8], after={9}),
        Operation(0, "tanh", [8], [9]),
    ]
    step.graph.outputs = [0]
    schedule, _ = run(Operations(step.graph, items, [False], [0]), frozenset())
    assert schedule == items


def test_an_empty_step_holds_its_arguments() -> None:
    step = Step(1)
    step.graph.outputs = [0]
    assert run(operations_of(step.graph), frozenset())[1] == [Stay(0, 0, 0, {0})]
