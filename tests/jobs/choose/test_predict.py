from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tfdyno.catalog.generations import software
from tfdyno.catalog.gpus import find
from tfdyno.catalog.sweeps import reference_sweep
from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.program import Program, Rematerialisation
from tfdyno.jobs.child.worker import silent
from tfdyno.jobs.choose.compile import TooLargeError
from tfdyno.jobs.choose.exact import add_compiled, verified_limit
from tfdyno.jobs.choose.predict import Predictor, StepSettings, predictor_for
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.jobs.machine.card_files import Sweeps
from tfdyno.model.time.estimate import StepCase, estimate_step

if TYPE_CHECKING:
    from tfdyno.core.choose.estimate import Estimate
    from tfdyno.core.choose.generation import Framework
    from tfdyno.core.choose.hardware import Gpu
    from tfdyno.jobs.choose.trace import Traced

DATA = Path(__file__).parents[1].parent / "data"
T4, A100 = find("t4"), find("a100-sxm4-40gb")


@cache
def predictor(
    reference: str = f"{DATA / 'models' / 'small.py'}:convnet",
    precision: str = "",
    batch: int = 512,
) -> Predictor:
    workload = parse_reference(reference)
    return predictor_for(
        workload, StepSettings(precision=precision), batch_size=batch, progress=silent
    )


def with_exact(made: Predictor) -> Predictor:
    compiled, notes = add_compiled(made, [T4], progress=silent)
    assert notes == ()
    return replace(compiled, exact_time=True)


def test_bfloat16_is_float32_on_cards_that_lack_it() -> None:
    made = predictor(precision="mixed_bfloat16")
    assert made.program_for(A100) is made.traced.program
    assert made.program_for(T4) is made.traced.widened
    single = predictor(precision="float32").estimate(T4)
    wide, narrow, widened = made.estimate(T4), made.traced.program, made.traced.widened
    assert widened
    assert wide.peak_memory_bytes.best == pytest.approx(single.peak_memory_bytes.best, rel=0.02)
    assert wide.step_s.best == pytest.approx(single.step_s.best, rel=0.05)
    assert narrow.buffers.peak_at(512) < 0.75 * widened.buffers.peak_at(512)


def test_a_step_without_bfloat16_has_one_quick_program() -> None:
    assert predictor(precision="mixed_float16").traced.widened is None


@pytest.mark.parametrize(
    ("reference", "batch"),
    [
        (f"{DATA / 'models' / 'small.py'}:convnet", 512),
        pytest.param("keras:ResNet50", 32, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("precision", ["mixed_bfloat16", "bfloat16"])
def test_quick_bfloat16_on_turing_agrees_with_the_compiler(
    reference: str, batch: int, precision: str
) -> None:
    made = predictor(reference, precision, batch)
    quick, exact = made.estimate(T4), with_exact(made).estimate(T4)
    assert (quick.made_by["memory"], exact.made_by["memory"]) == ("quick", "exact")
    assert quick.peak_memory_bytes.best == pytest.approx(exact.peak_memory_bytes.best, rel=0.25)
    assert quick.step_s.best == pytest.approx(exact.step_s.best, rel=0.20)
    assert quick.max_batch_size == pytest.approx(exact.max_batch_size, rel=0.25)


def test_a_batch_that_is_part_of_the_model_has_no_known_limit() -> None:
    made = predictor(f"{DATA / 'scripts' / 'models.py'}:baked", batch=12)
    one = made.estimate(T4)
    assert one.max_batch_size is None
    sentence = "The largest batch is not known: the batch of 12 is part of the model."
    assert sentence in one.warnings


def test_another_batch_than_the_one_in_the_model_is_refused() -> None:
    message = "cannot be estimated at batch 20: the batch of 12 is part of the model"
    with pytest.raises(UsageError, match=message):
        predictor(f"{DATA / 'scripts' / 'models.py'}:baked", batch=20)


def test_where_only_the_compiled_program_is_of_one_batch_the_quick_one_names_the_limit() -> None:
    made = predictor()
    limit = made.estimate(T4).max_batch_size
    only = replace(made.traced.program, route="exact", family="8.x", marker=0, batch_size=512)
    one = replace(made, exact={"7.x": only}).estimate(T4)
    assert one.made_by["memory"] == "exact"
    assert one.compiled_for == "8.x"  # whose program serves the card, said in the result
    assert made.estimate(T4).compiled_for == ""
    assert one.max_batch_size == limit


def test_the_end_of_the_scale_is_not_compiled() -> None:
    told: list[str] = []
    estimate = replace(predictor().estimate(T4), max_batch_size=1 << 20)
    compiled = replace(predictor(), exact={"7.x": predictor().traced.program})
    assert verified_limit(compiled, estimate, told.append) is estimate
    assert told == []


def test_replicas_that_serve_run_as_one_card_does() -> None:
    workload = parse_reference(f"{DATA / 'models' / 'small.py'}:convnet", mode="infer")
    made = predictor_for(workload, batch_size=64, progress=silent)
    one, four = made.estimate(A100), made.estimate(A100, replicas=4)
    assert (one.execution, four.execution) == ("xla", "xla")
    assert four.step_s == one.step_s
    assert four.samples_per_s.best == pytest.approx(4 * one.samples_per_s.best)
    assert (four.link, four.terms_s["communication"]) == ("", 0.0)


def used(made: Predictor, gpu: Gpu, monkeypatch: pytest.MonkeyPatch, **named: Any) -> set[int]:
    """Identities of the programs that an estimate is made of."""
    seen: set[int] = set()

    def spy(case: StepCase, **given: Any) -> Estimate:
        names = ("time_program", "memory_program", "limit_program")
        seen.update(id(given[name]) for name in names)
        return estimate_step(case, **given)

    with monkeypatch.context() as patch:
        patch.setattr("tfdyno.model.time.estimate.estimate_step", spy)
        made.estimate(gpu, **named)
    return seen


@pytest.mark.parametrize(
    ("execution", "replicas", "name"),
    [
        ("", 1, "program"),
        ("xla", 1, "program"),
        ("xla", 4, "program"),
        ("compiled-torch", 1, "program"),
        ("graph", 1, "per_primitive"),
        ("", 4, "per_primitive"),  # a tf.distribute strategy runs without XLA
    ],
)
def test_a_step_is_priced_by_the_program_that_its_execution_runs(
    execution: str, replicas: int, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = replace(predictor(), execution=execution)
    seen = used(made, A100, monkeypatch, replicas=replicas)
    assert seen == {id(getattr(made.traced, name))}
    assert made.program_for(A100, replicas) is getattr(made.traced, name)


def test_without_bfloat16_what_runs_by_operation_is_widened_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = replace(predictor(precision="mixed_bfloat16"), execution="graph")
    assert used(made, T4, monkeypatch) == {id(made.traced.per_primitive_widened)}
    assert used(made, A100, monkeypatch) == {id(made.traced.per_primitive)}
    wide = made.traced.per_primitive_widened
    assert wide
    assert {kernel.dtype for kernel in wide.kernels}.isdisjoint({"bf16"})


def answered_for(framework: Framework, version: str) -> Predictor:
    made = predictor()
    return replace(
        made, traced=replace(made.traced, software=software(framework, version, "asked"))
    )


@pytest.mark.parametrize("gpu", ["rtx-5090", "rtx-5060", "rtx-pro-6000-blackwell",
                                 "b200-sxm-180gb", "b300-sxm-270gb"])  # fmt: skip
def test_where_xla_of_the_wheel_has_to_fail_the_graph_is_what_runs(gpu: str) -> None:
    card, made = find(gpu), answered_for("tensorflow", "2.21.0")
    assert made.execution_for(1) == "xla"
    assert (made.execution_on(card), made.leaves_xla(card)) == ("graph", True)
    graph = replace(made, execution="graph").estimate(card)
    assert made.estimate(card) == graph
    asked = replace(made, execution="xla")  # of a build of one's own
    assert (asked.execution_on(card), asked.leaves_xla(card)) == ("xla", False)


@pytest.mark.parametrize(
    ("framework", "version", "gpu"),
    [
        ("tensorflow", "2.21.0", "h200-sxm"),
        ("tensorflow", "2.15", "rtx-5090"),  # of Keras 2, and no fault is known
        ("tensorflow", "2.21", "gb200"),  # its host has no wheel: NVIDIA's container has CUDA 12.8
        ("jax", "", "rtx-5090"),
    ],
)
def test_elsewhere_xla_stays(framework: Framework, version: str, gpu: str) -> None:
    made = answered_for(framework, version)
    assert made.execution_on(find(gpu)) == made.execution_for(1) == "xla"


def test_keras_on_jax_runs_by_xla_on_any_number_of_cards() -> None:
    jax = replace(predictor().traced, software=software("jax", "", "asked"))
    made = replace(predictor(), traced=jax)
    assert [made.execution_for(replicas) for replicas in (1, 4)] == ["xla", "xla"]
    assert made.estimate(A100).software == "JAX"


def test_software_before_keras_3_runs_a_kernel_for_each_layer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    old = replace(predictor().traced, software=software("tensorflow", "2.15", "asked"))
    made = replace(predictor(), execution="graph", traced=old)
    assert used(made, A100, monkeypatch) == {id(old.per_op)}
    found = made.estimate(A100)
    assert (found.software, found.generation) == ("TensorFlow 2.15", "2023")


def test_eager_pytorch_is_timed_by_operation_and_holds_a_multiple_of_what_xla_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = replace(predictor(), execution="eager-torch")
    traced = made.traced  # TensorFlow's order of the program by operation is not PyTorch's
    assert used(made, A100, monkeypatch) == {id(traced.per_op), id(traced.program)}
    assert made.program_for(A100) is traced.per_op


@pytest.mark.parametrize(("execution", "replicas"), [("graph", 1), ("", 4)])
def test_what_runs_by_operation_never_takes_a_compiled_program(
    execution: str, replicas: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = replace(predictor().traced.program, route="exact", family="7.x")
    compiled = replace(
        predictor(),
        execution=execution,
        exact={"7.x": exact},
        proven={("7.x", 512, 1): replace(exact, marker=0, batch_size=512)},
        exact_time=True,
    )
    by_operation = compiled.traced.per_primitive
    assert used(compiled, T4, monkeypatch, replicas=replicas) == {id(by_operation)}
    assert compiled.program_for(T4, replicas) is by_operation
    one = compiled.estimate(T4, replicas=replicas)
    assert one.made_by == {"time": "quick", "memory": "quick"}
    assert not one.fits_verified
    told: list[str] = []
    assert verified_limit(compiled, one, told.append) is one
    assert told == []


AGAIN = Rematerialisation(
    need_bytes=9e9, held_bytes=6e9, limit_bytes=7e9, limit_met=True, instruction_count=3
)


@pytest.mark.parametrize(
    ("memory_share", "again", "serves"),
    [
        (1.0, None, True),
        (1.0, AGAIN, True),
        (0.5, None, True),
        (0.5, AGAIN, False),  # with twice the memory XLA may keep everything
        (2.0, None, False),  # with half of it XLA may have to compute again
    ],
)
def test_a_proof_holds_for_the_same_memory_and_for_more_if_nothing_was_computed_again(
    memory_share: float, again: Rematerialisation | None, serves: bool
) -> None:
    exact = replace(
        predictor().traced.program, route="exact", family="7.x", marker=0, batch_size=512,
        rematerialisation=again,
    )  # fmt: skip
    memory_bytes = int(memory_share * T4.usable_memory_bytes)
    proven = replace(predictor(), proven={("7.x", 512, memory_bytes): exact})
    one = proven.estimate(T4)
    assert one.fits_verified == serves
    assert one.rematerialisation == (again if serves else None)
    assert not proven.estimate(T4, batch_size=64).fits_verified


def test_a_verified_limit_is_compiled_for_the_card_and_says_what_is_computed_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Gpu] = []

    def compiles(traced: Traced, **named: Any) -> Program:
        asked.append(named["gpu"])
        size = named["batch_size"]
        return replace(
            traced.program, route="exact", marker=0, batch_size=size, rematerialisation=AGAIN
        )

    monkeypatch.setattr("tfdyno.jobs.choose.exact.compile_exact", compiles)
    made = replace(predictor(), exact={"7.x": predictor().traced.program})
    plain = made.estimate(T4)
    checked = verified_limit(made, plain, silent)
    assert asked == [T4]
    assert checked.max_batch_verified
    assert checked.max_batch_rematerialisation == AGAIN
    assert plain.max_batch_rematerialisation is None
    assert checked.rematerialisation is None  # the batch that was asked for was not compiled so


def test_a_limit_at_which_a_tensor_is_too_large_is_lowered_until_it_compiles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[int] = []

    def compiles(traced: Traced, **named: Any) -> Program:
        tried.append(named["batch_size"])
        if len(tried) < 3:
            raise TooLargeError("cannot be compiled", why="a tensor has more elements")
        return replace(traced.program, route="exact", marker=0, batch_size=tried[-1])

    monkeypatch.setattr("tfdyno.jobs.choose.exact.compile_exact", compiles)
    made = replace(predictor(), exact={"7.x": predictor().traced.program})
    plain = made.estimate(T4)
    assert plain.max_batch_size
    checked = verified_limit(made, plain, silent)
    assert tried == [plain.max_batch_size, int(tried[0] * 0.8), int(tried[1] * 0.8)]
    assert checked.max_batch_verified
    assert checked.max_batch_size == tried[-1]


def test_a_step_by_operation_has_more_kernels_and_the_same_arithmetic() -> None:
    traced = predictor().traced
    counts = [
        sum(kernel.count for kernel in one.kernels) for one in (traced.program, traced.per_op)
    ]
    assert counts[0] < counts[1]
    flops = [
        sum(k.flops.at(512) for k in one.kernels if k.kind in ("convolution", "gemm"))
        for one in (traced.program, traced.per_op)
    ]
    assert flops[0] == pytest.approx(flops[1])


def test_kept_estimates_are_told_apart_by_all_that_was_asked() -> None:
    plain = predictor(batch=64)
    kept = replace(plain, traced=replace(plain.traced, estimates={}))
    asked = [
        (made, gpu, replicas, batch)
        for made in (kept, replace(kept, execution="graph"), replace(kept, precision="float32"))
        for gpu in (T4, A100)
        for replicas in (1, 2)
        for batch in (0, 32)
    ]
    for _ in range(2):
        for made, gpu, replicas, batch in asked:
            alone = replace(made, traced=replace(made.traced, estimates=None))
            found = made.estimate(gpu, replicas=replicas, batch_size=batch)
            assert found == alone.estimate(gpu, replicas=replicas, batch_size=batch)
    assert kept.traced.estimates is not None
    assert len(kept.traced.estimates) == len(asked)


def test_a_sweep_keeps_nothing_of_its_own_card_and_leaves_the_others() -> None:
    plain = predictor(batch=64)
    sweep = replace(reference_sweep(), card=T4.slug)
    kept = replace(plain, traced=replace(plain.traced, estimates={}), sweeps=Sweeps(cards=(sweep,)))
    kept.estimate(T4)
    assert kept.traced.estimates == {}
    assert kept.estimate(A100) == plain.estimate(A100)
    assert len(kept.traced.estimates) == 1


def test_details_and_compiled_programs_are_estimated_anew() -> None:
    plain = predictor(batch=64)
    kept = replace(plain, traced=replace(plain.traced, estimates={}))
    assert kept.estimate(T4, details=True).layers
    with_exact(kept).estimate(T4)
    assert kept.traced.estimates == {}
