"""Where a step's time goes, in profiles with a known answer, worked by hand or told before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.runtime.planted_profiles import Made, Planes, space

from tfdyno.profile.files import load_profile
from tfdyno.profile.operations import operation_facts
from tfdyno.profile.planes import read_planes

if TYPE_CHECKING:
    from tfdyno.core.measure.step_facts import OperationFacts

RECORDED = Path(__file__).parents[1] / "data" / "profiles" / "steps"
TOLD: dict[str, dict[str, Any]] = json.loads((RECORDED / "facts.json").read_text())
US = 1e-6


def one(name: str, at_us: float, us: float, **facts: int | str) -> Made:
    return Made(name=name, at_us=at_us, us=us, facts=facts)


GPU: Planes = {
    "/host:CPU": {"python": [
        one("train", 0, 100, step_num=0),
        one("m/dense/MatMul:MatMul", 1, 2),
        one("m/look/Unique:Unique", 10, 20),
        one("IteratorGetNext:IteratorGetNext", 5, 90),
        one("__inference_f_3:__inference_f_3", 0, 99),
        one("train", 100, 100, step_num=1),
    ]},
    "/device:GPU:0": {
        "Stream #16(Compute)": [
            one("ampere_sgemm_128x64_nn", 20, 40, tf_op="m/dense/MatMul:MatMul"),
            one("void EigenMetaKernel<double>", 60, 10, tf_op="m/Mul:Mul"),
            one("ampere_sgemm_128x64_nn", 120, 40, tf_op="m/dense/MatMul:MatMul"),
        ],
        "Stream #18(MemcpyH2D)": [
            one("MemcpyH2D", 50, 20, memcpy_details="kind_src:pageable size:4096 dest:0"),
            one("MemcpyD2D", 80, 10, memcpy_details="kind_src:device size:64 dest:0"),
        ],
        "XLA Ops": [one("the same again", 20, 40)],
    },
    "/device:GPU:1": {"Stream #16(Compute)": [one("small", 20, 1)]},
}  # fmt: skip


def told(*threads: list[Made]) -> OperationFacts | None:
    """Of two steps without a marker on a CPU."""
    planes = {"/host:CPU": {f"tf_Compute/{n}": made for n, made in enumerate(threads)}}
    return operation_facts(read_planes(space(planes)), 2)


def known(*threads: list[Made]) -> OperationFacts:
    found = told(*threads)
    assert found is not None
    return found


def test_an_instant_is_shared_by_all_that_run_in_it() -> None:
    # By hand, two steps: MatMul alone 0-4, both 4-8, Mul alone 8-10: 4 + 2 and 2 + 2.
    found = known([one("a:MatMul", 0, 8)], [one("b:Mul", 4, 6)])
    assert found.class_s == pytest.approx({"gemm": 3 * US, "elementwise": 2 * US})
    assert found.busy_s == pytest.approx(5 * US)
    assert found.count_per_step == 1
    assert found.collective_exposed_s == pytest.approx(0)


def test_time_inside_of_another_operation_is_the_inner_ones() -> None:
    found = known([one("a:Relu", 0, 10), one("b:MatMul", 2, 3)])
    assert found.class_s == pytest.approx({"elementwise": 3.5 * US, "gemm": 1.5 * US})


def test_exchange_is_hidden_behind_work_or_exposed() -> None:
    # By hand, two steps: of the exchange from 6 to 16, 6-10 lies behind the product.
    found = known([one("a:MatMul", 0, 10)], [one("b:NcclAllReduce", 6, 10)])
    assert found.collective_exposed_s == pytest.approx(3 * US)
    assert found.collective_hidden_s == pytest.approx(2 * US)


def test_an_exchange_of_a_cpu_goes_on_until_what_follows_it() -> None:
    # By hand, two steps: the exchange notes 4-5, and nothing runs until 15; then 16-18 is no wait
    # for it, because the product ran after it.
    found = known([one("a:MatMul", 0, 4), one("b:CollectiveReduceV2", 4, 1), one("c:MatMul", 15, 1),
                   one("d:MatMul", 18, 2)])  # fmt: skip
    assert found.collective_exposed_s == pytest.approx(5.5 * US)
    assert found.class_s == pytest.approx({"gemm": 3.5 * US, "collective": 5.5 * US})
    assert found.busy_s == pytest.approx(9 * US)
    assert found.collectives_per_step == 0.5


def test_nothing_at_work_is_nothing_told() -> None:
    assert told() is None
    assert told([one("train", 0, 9), one("__inference_f_3:__inference_f_3", 0, 9)]) is None


def test_64_bits_are_told_by_the_names_of_the_graph() -> None:
    planes = {"/host:CPU": {"tf_Compute/1": [one("a/b:MatMul", 0, 6), one("c:MatMul", 6, 4)]}}
    found = operation_facts(read_planes(space(planes)), 2, frozenset({"a/b"}))
    assert found is not None
    assert found.float64_s == pytest.approx(3 * US)


def test_what_the_input_pipeline_works_on_is_no_work_of_the_step() -> None:
    planes = {"/host:CPU": {
        "tf_Compute/1": [one("a:MatMul", 0, 6)],
        "tf_data_private_threadpool/1": [one("mul:Mul", 0, 50), one("Iterator::Map", 0, 60)],
    }}  # fmt: skip
    found = operation_facts(read_planes(space(planes)), 1)
    assert found is not None
    assert found.class_s == pytest.approx({"gemm": 6 * US})


def test_the_busiest_card_is_told_with_copies_and_what_ran_beside_it() -> None:
    # By hand, two steps: kernels 20-60, 60-70, 120-160 us and copies 50-70, 80-90 us. Busy 20-70,
    # 80-90, 120-160. The copy to the card shares 50-70 with the kernels.
    found = operation_facts(read_planes(space(GPU)), 2)
    assert found is not None
    assert found.busy_s == pytest.approx(50 * US)
    assert found.class_s["gemm"] == pytest.approx((30 + 5 + 40) / 2 * US)
    assert found.class_s["elementwise"] == pytest.approx(2.5 * US)
    assert found.class_s["data_movement"] == pytest.approx((10 + 10) / 2 * US)
    assert found.float64_s == pytest.approx(2.5 * US)
    assert (found.copied_bytes, found.count_per_step) == (2048, 2.5)
    assert found.copy_s == found.fed_s == pytest.approx(10 * US)
    assert found.fed_bytes == 2048
    # Of the 20 us of Unique on the CPU the card rests for 10, of 200; MatMul has a kernel.
    assert found.host_only == ("Unique (m/look/Unique): 5% of the step",)


def test_of_a_long_path_the_end_is_told_and_of_a_kernel_the_begin() -> None:
    path, kernel = "while/body/" * 20 + "dense/MatMul", "void cutlass::Kernel<" + "float, " * 40
    planes: Planes = {"/device:GPU:0": {"Stream #16": [
        one("sgemm", 0, 9, tf_op=f"{path}:MatMul"), one(kernel, 9, 5)
    ]}}  # fmt: skip
    found = operation_facts(read_planes(space(planes)), 1)
    assert found is not None
    (first, _), (second, _) = found.largest
    assert (len(first), first[0], first[-12:]) == (120, "…", "dense/MatMul")
    assert second == kernel[:120]


def test_a_program_of_xla_works_where_none_of_its_instructions_is_noted() -> None:
    # By hand, two steps: of 30 us the convolution notes the first 10, another thread the last 5;
    # on the 15 between them it goes on.
    found = known(
        [one("CpuExecutable::ExecuteAsyncOnStream", 0, 30),
         one("convolution.1", 0, 10, hlo_op="convolution.1")],
        [one("add_fusion", 25, 5, hlo_op="add_fusion")],
    )  # fmt: skip
    assert found.class_s == pytest.approx({"conv": 12.5 * US, "elementwise": 2.5 * US})
    assert found.busy_s == pytest.approx(15 * US)
    assert found.count_per_step == 1
    alone = known([one("ThunkExecutor::Execute (wait for completion)", 0, 30)])
    assert alone.class_s == pytest.approx({"other": 15 * US})
    assert alone.count_per_step == 0


@pytest.mark.parametrize("name", TOLD)
def test_recorded_steps_are_told_as_by_the_classes_of_tensorflow(name: str) -> None:
    before = TOLD[name]
    profile = load_profile(RECORDED / f"{name}.xplane.pb.gz")
    found = operation_facts(profile, before["steps"], frozenset(before["float64_names"]))
    assert found is not None
    # That reader did not know of products, convolutions and exchanges that go on where they note
    # nothing.
    unnoted_s = found.busy_s - before["busy_s"]
    largest = max(before["class_s"], key=before["class_s"].__getitem__)
    assert (unnoted_s > 1e-6) is (name.endswith("_xla") or name == "all_reduce")
    expected = {**before["class_s"], largest: before["class_s"][largest] + unnoted_s}
    assert found.class_s == pytest.approx(expected, rel=1e-4, abs=1e-9)
    wide_s = unnoted_s if before["float64_s"] else 0.0
    assert found.float64_s == pytest.approx(before["float64_s"] + wide_s, rel=1e-4, abs=1e-9)
    assert found.count_per_step == pytest.approx(before["count_per_step"], rel=1e-4)
    exchange_s = before["collective_exposed_s"] + (unnoted_s if largest == "collective" else 0.0)
    assert found.collective_exposed_s == pytest.approx(exchange_s, rel=1e-4, abs=1e-9)


def test_classes_add_up_to_the_busy_time() -> None:
    random = np.random.default_rng(0)
    kinds = ["MatMul", "Mul", "Sum", "Conv2D", "NcclAllReduce", "MyOwn"]
    threads = [
        [one(f"n{k}:{random.choice(kinds)}", 10.0 * k, float(random.integers(1, 10)))
         for k in range(30)]
        for _ in range(5)
    ]  # fmt: skip
    found = known(*threads)
    assert sum(found.class_s.values()) == pytest.approx(found.busy_s)


def test_each_card_has_its_own_work_without_the_exchange_in_which_it_waits() -> None:
    def card(*made: Made) -> dict[str, list[Made]]:
        return {"Stream #16(Compute)": list(made)}

    gemm, nccl = "ampere_sgemm_128x64_nn", "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
    planes: Planes = {
        "/host:CPU": {"python": [one("train", 0, 100, step_num=0)]},
        "/device:GPU:10": card(one(gemm, 10, 20), one(nccl, 30, 60)),
        "/device:GPU:2": card(one(gemm, 10, 70), one(nccl, 80, 10)),
    }
    found = operation_facts(read_planes(space(planes)), 2)
    assert found is not None
    # By hand, two steps: card 2 computes for 70 us, card 10 for 20 and waits in the exchange.
    assert found.device_own_s == pytest.approx((35 * US, 10 * US))
    single = operation_facts(read_planes(space({**planes, "/device:GPU:10": {}})), 2)
    assert single is not None
    assert single.device_own_s == ()


def test_kernels_that_turn_the_order_of_channels_are_counted_among_those_that_move_data() -> None:
    turned = "NHWCToNCHW"
    stream = [
        one("void cudnn::ops::nchwToNhwcKernel<float>", 0, 30, tf_op="m/conv2d/Conv2D:Conv2D"),
        one("sm80_xmma_fprop_implicit_gemm_f16f16", 30, 40, tf_op="m/conv2d/Conv2D:Conv2D"),
        one("transpose", 70, 10, tf_op=f"m/c/Conv2D-0-Transpose{turned}-LayoutOptimizer:Transpose"),
        one("transpose", 80, 20, tf_op="m/permute/transpose:Transpose"),
    ]  # fmt: skip
    planes = {"/device:GPU:0": {"Stream #16(Compute)": stream}}
    found = operation_facts(read_planes(space(planes)), 2)
    assert found
    assert found.layout_s == pytest.approx(20 * US)
    assert found.class_s == pytest.approx({"data_movement": 30 * US, "conv": 20 * US})
