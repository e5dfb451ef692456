"""Hand-written loops as users write them: what is found, and what is refused in one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.jobs.choose.trace import trace

if TYPE_CHECKING:
    from tfdyno.core.choose.program import Program
    from tfdyno.core.choose.workload import Trace

LOOPS = Path(__file__).parents[2] / "data" / "scripts" / "loops"
pytestmark = pytest.mark.tf


def of_loop(name: str, *arguments: str) -> tuple[Trace, Program]:
    workload = parse_reference(str(LOOPS / name), script_arguments=arguments)
    made = trace(workload)
    return made.trace, made.program


def library_flops(program: Program) -> float:
    library = [k for k in program.kernels if k.kind in ("convolution", "gemm")]
    return sum(kernel.flops.per_sample for kernel in library)


def test_keyword_arguments_dict_batches_and_python_values_are_kept_apart() -> None:
    found, program = of_loop("keywords.py")
    assert (found.marker, found.script_batch_size, found.execution) == (37, 12, "graph")
    shapes = sorted(t.shape[1:] for t in found.tensors if t.role in ("input", "target"))
    assert shapes == [(), (4,), (8,), (16,)]  # weights, targets, right, left: all of the batch
    assert library_flops(program) == 2 * (2 * 24 * 4)  # forward, and the gradient of the weights
    slots = [t for t in found.tensors if t.role == "optimizer"]
    assert len(slots) == 2 + 2 * 2


def test_a_method_is_a_step_and_its_jit_and_late_optimizer_are_seen() -> None:
    found, program = of_loop("trainer_class.py")
    assert (found.title, found.execution) == ("trainer_class:train_step", "xla")
    assert found.trainable_parameter_count == 16 * 4 + 4
    assert library_flops(program) == 2 * (2 * 16 * 4)
    assert {t.role for t in found.tensors} == {"input", "target", "weight", "optimizer"}


@pytest.mark.slow
def test_a_step_may_take_the_iterator_branch_on_tensors_and_run_by_a_strategy() -> None:
    found, program = of_loop("iterator.py")
    assert (found.marker, found.script_batch_size) == (37, 20)
    assert library_flops(program) == 2 * (2 * 16 * 4)


@pytest.mark.slow
def test_a_strategy_over_two_devices_is_named_with_the_way_to_ask_for_it() -> None:
    with pytest.raises(UsageError, match=r"runs on 2 devices.*one device.*--replicas 2"):
        of_loop("replicas.py")


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("strings", r"XLA cannot compile this step: it uses AsString.*in the dataset"),
        pytest.param("python", r"it uses PyFunc.*in the dataset", marks=pytest.mark.slow),
        pytest.param("table", r"lookup table.*in the dataset", marks=pytest.mark.slow),
        ("unique", r"size of a tensor in the step depends on the data.*tf\.where"),
        pytest.param("where", r"depends on the data", marks=pytest.mark.slow),
        pytest.param("epoch", r"loop over the dataset is inside", marks=pytest.mark.slow),
    ],
)
def test_what_xla_cannot_compile_is_one_sentence_with_a_way_out(kind: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence) as caught:
        of_loop("unsupported.py", kind)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_script_that_never_reaches_a_step_is_stopped() -> None:
    workload = parse_reference(str(LOOPS / "unsupported.py"), script_arguments=("endless",))
    with pytest.raises(ToolError, match=r"was stopped: no result within 15 s"):
        trace(workload, timeout_s=15)
