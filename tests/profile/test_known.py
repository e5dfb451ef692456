"""Which events of a profile are operations, and what is known of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.runtime.planted_profiles import Made, Planes, space

from tfdyno.profile.device import cpu_events, gpu_events
from tfdyno.profile.operation_classes import Operation
from tfdyno.profile.planes import read_planes

if TYPE_CHECKING:
    from tfdyno.profile.known import Known


def one(name: str, at_us: float, us: float, **facts: int | str) -> Made:
    return Made(name=name, at_us=at_us, us=us, facts=facts)


def on_the_host(*made: Made) -> list[Known]:
    events = cpu_events(read_planes(space({"/host:CPU": {"python": list(made)}})))
    return [events.known[at] for at in events.known_index]


def on_the_card(*made: Made) -> list[Known]:
    planes: Planes = {"/device:GPU:0": {"Stream #16(Compute)": list(made)}}
    events = gpu_events(read_planes(space(planes)))[0]
    return [events.known[at] for at in events.known_index]


def test_kernels_are_named_by_the_operations_that_started_them() -> None:
    (found,) = on_the_card(one("ampere_sgemm_128x64_nn", 0, 4, tf_op="m/dense/MatMul:MatMul"))
    assert found.operation == Operation(
        type="MatMul", scope="m/dense/MatMul", kernel="ampere_sgemm_128x64_nn"
    )
    assert (found.operation.title, found.operation_class) == ("m/dense/MatMul", "gemm")


def test_a_path_without_a_type_is_that_of_jax() -> None:
    first, second = on_the_card(
        one("loop_add_fusion", 0, 4, tf_op="jit(step)/add", hlo_op="add.3"),
        one("loop_mul_fusion", 4, 4, tf_op="jit(step)/mul:", hlo_op="mul.3"),
    )
    assert (first.operation.scope, first.operation.type) == ("jit(step)/add", "")
    assert (second.operation.scope, second.operation.type) == ("jit(step)/mul", "")
    assert first.is_compiled


def test_kernels_of_one_name_are_told_apart_by_their_scope() -> None:
    name = "Mul_GPU_DT_FLOAT_DT_FLOAT_kernel"
    found = on_the_card(
        one(name, 0, 4), one(name, 4, 4, tf_op="adam/Mul:Mul"), one(name, 8, 4),
        one(name, 12, 4, tf_op="m/batch_normalization/mul:Mul"),
    )  # fmt: skip
    assert [each.operation_class for each in found] == [
        "elementwise", "optimizer", "elementwise", "normalisation"
    ]  # fmt: skip


def test_a_kernel_of_doubles_is_known_by_its_name() -> None:
    found = on_the_card(one("void EigenMetaKernel<double>", 0, 4), one("ampere_sgemm", 4, 4))
    assert [each.is_float64 for each in found] == [True, False]


def test_calls_of_functions_are_no_operations() -> None:
    found = on_the_host(
        one("__inference_f_3:__inference_f_3", 0, 99),
        one("m/dense/MatMul:MatMul", 1, 2),
        one("ThreadpoolListener::Record", 2, 0),
        one("Iterator::Root::Prefetch::BatchV2", 3, 5),
        one("end: fusion", 8, 1),
    )
    assert [each.operation for each in found] == [Operation(type="MatMul", scope="m/dense/MatMul")]


def test_what_python_starts_by_itself_counts_while_it_runs_and_functions_do_not() -> None:
    events = cpu_events(read_planes(space({"/host:CPU": {"python": [
        one("EagerLocalExecute: MatMul", 0, 10),
        one("KernelAndDeviceFunc::Run", 2, 7),
        one("EagerLocalExecute: __inference_step_12", 20, 30),
        one("KernelAndDeviceFunc::Run", 21, 28),
        one("KernelAndDeviceOp::Run", 60, 5),
    ]}})))  # fmt: skip
    (found,) = events.known
    assert found.operation == Operation(type="MatMul", scope="MatMul")
    assert ((events.end_s - events.begin_s) * 1e6).round(3).tolist() == [7]


def test_an_instruction_whose_program_is_not_there_is_known_by_its_name() -> None:
    found = on_the_host(
        one("dot.12", 0, 9, hlo_op="dot.12", hlo_module="jit_f"),
        one("loop_add_fusion", 9, 5, hlo_op="loop_add_fusion", hlo_module="jit_f"),
    )
    assert [each.operation_class for each in found] == ["gemm", "elementwise"]
    assert all(each.is_compiled for each in found)


def test_what_packs_gradients_for_an_exchange_belongs_to_it() -> None:
    found = on_the_host(
        one("sgd/concat:ConcatV2", 0, 4), one("sgd/CollectiveReduceV2:CollectiveReduceV2", 4, 4),
        one("sgd/split:Split", 8, 4), one("sgd/Mul:Mul", 12, 4),
        one("m/concatenate/concat:ConcatV2", 16, 4),
    )  # fmt: skip
    assert [each.operation_class for each in found] == [
        "packing", "collective", "packing", "optimizer", "data_movement"
    ]  # fmt: skip
    (alone,) = on_the_host(one("sgd/concat:ConcatV2", 0, 4))
    assert alone.operation_class == "optimizer"
