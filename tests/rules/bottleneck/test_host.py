"""Python in the loop and too few CPUs, each by what was measured."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.rules.bottleneck.steps import GOOD_INPUT, HOST, OPERATIONS, drafts, facts, only, primary

from tfdyno.core.measure.step_facts import CallbackFacts
from tfdyno.rules.bottleneck.draft import bottleneck
from tfdyno.rules.bottleneck.host import (
    bound_to_few,
    busy_cpus,
    busy_interpreter,
    container_limit,
    few_threads,
    loss_each_step,
    numpy_in_step,
    python_loop,
    python_thread,
    run_eagerly,
)

IDLE = replace(OPERATIONS, busy_s=0.006)


def test_an_eager_step_becomes_a_graph_of_the_same_operations() -> None:
    # 19.5 - 6 = 13.5 ms are Python in the step and 0.3 around it; 8 of 18 parts of the 6 ms are
    # small operations, of which half stays, and 100 starts take 0.35 ms: 20 - 13.8 - 1.333 + 0.35
    found = only(run_eagerly, facts(execution="eager", operations=IDLE))
    assert found.gain is not None
    assert found.gain.best == pytest.approx(20 / (20 - 13.8 - 6 * 8 / 18 / 2 + 0.35))
    assert found.gain.high == pytest.approx(20 / (20 - 13.8 - 6 * 8 / 18 + 0.2))
    assert found.gain.low == pytest.approx(20 / (20 - 0.4 * 13.5))
    assert primary(facts(execution="eager", operations=IDLE)).settings == {"execution": "graph"}


def test_an_eager_loop_without_a_profile_is_still_host() -> None:
    # nothing says how much is Python: half, of which four fifths go
    seen = facts(execution="eager", operations=None, held_s=(), source="loop", input=None)
    found = only(run_eagerly, seen)
    assert found.gain is not None
    assert found.gain.best == pytest.approx(1 / (1 - 0.5 * 0.8))
    assert found.settings == {}


def test_what_an_eager_loop_does_between_its_steps_stays() -> None:
    seen = facts(execution="eager", operations=IDLE, source="loop", input=None, python_s=0.0004)
    found = only(run_eagerly, seen)
    assert found.gain is not None
    assert found.gain.best == pytest.approx(20 / (20 - 13.6 - 6 * 8 / 18 / 2 + 0.35))


def test_an_eager_step_that_computes_all_the_time_is_left_alone() -> None:
    assert not drafts(run_eagerly, facts(execution="eager", operations=replace(OPERATIONS,
                      busy_s=0.019)))  # fmt: skip


def test_an_eager_step_that_is_slow_only_beside_its_data_is_still_host() -> None:
    # on a loaded machine the held batch took 18.5 ms, of which 0.5 ms are Python, and a whole step
    # 40 ms: what nobody can name is the host's, 21.5 + 0.5 ms less 0.2 in which the pipeline works
    seen = facts(execution="eager", step_s=(0.040,) * 40, held_s=(0.0185,) * 40)
    found = only(run_eagerly, seen)
    assert found.gain is not None
    assert found.gain.low == pytest.approx(40 / (40 - 0.4 * 0.5))
    assert found.gain.best == pytest.approx(40 / (40 - 21.8 - 18 * 8 / 18 / 2 + 0.35))


def test_python_that_the_graph_calls_is_named_with_its_line() -> None:
    calls = ("numpy_function in train.py:20",)
    found = only(numpy_in_step, facts(python_steps=calls, operations=IDLE))
    assert found.place == "train.py:20"
    operations = replace(OPERATIONS, class_s={"gemm": 0.006, "other": 0.012},
                         largest=(("model/EagerPyFunc", 0.011),))  # fmt: skip
    found = only(numpy_in_step, facts(python_steps=calls, operations=operations))
    assert found.gain is not None
    # 11 in the call and 1.5 around it: 20 - 0.85 x 12.5
    assert found.gain.best == pytest.approx(20 / (20 - 0.85 * 12.5))


def test_python_between_the_steps_of_a_loop_is_host() -> None:
    # 10 of 30 ms, four fifths go
    seen = facts(source="loop", step_s=(0.030,) * 40, held_s=(0.020,) * 40, python_s=0.010,
                 input=None, python_lines=(("train.py:31", 0.009),))  # fmt: skip
    found = only(python_loop, seen)
    assert found.cause == "host.python_loop"
    assert found.place == "train.py:31"
    assert found.gain is not None
    assert found.gain.best == pytest.approx(30 / 22)
    assert primary(seen).bottleneck_class == "host"


def test_results_that_python_waits_for_are_named() -> None:
    lines = (("train.py:33", 0.008), ("train.py:31", 0.002))
    texts = {"train.py:33": "value = float(loss)", "train.py:31": "rows = draw()"}
    seen = facts(source="loop", step_s=(0.030,) * 40, python_s=0.010, input=None, device="gpu",
                 python_lines=lines, python_texts=texts)  # fmt: skip
    found = only(python_loop, seen)
    assert (found.cause, found.place) == ("host.sync_each_step", "train.py:33")
    assert "`value = float(loss)`" in bottleneck(found).summary
    # a CPU is done when the call of the step returns
    assert only(python_loop, replace(seen, device="cpu")).cause == "host.python_loop"


@pytest.mark.parametrize("text", ["mean = float(np.mean(row))", "size = int(len(rows))", "", "f()"])
def test_python_that_reads_no_result_waits_for_none(text: str) -> None:
    seen = facts(source="loop", step_s=(0.030,) * 40, python_s=0.010, input=None, device="gpu",
                 python_lines=(("train.py:31", 0.009), ("train.py:33", 0.001)),
                 python_texts={"train.py:31": text, "train.py:33": "float(loss)"})  # fmt: skip
    found = bottleneck(only(python_loop, seen))
    assert (found.cause, found.place) == ("host.python_loop", "train.py:31")
    assert any("tf.data" in one.text for one in found.fix)


def test_python_between_steps_of_fit_is_keras_own() -> None:
    assert not drafts(python_loop, facts(step_s=(0.030,) * 40, python_s=0.010))


def test_one_thread_of_four_cpus_leaves_three_idle() -> None:
    # 16 of 18 ms in operations long enough to share, 3 of 4 CPUs idle, six tenths of that parallel
    host = replace(HOST, threads_intra=1, threads_inter=1, cpu_ratio=0.3)
    found = only(few_threads, facts(host=host))
    assert found.gain is not None
    assert found.gain.best == pytest.approx(20 / (20 - 16 * 0.75 * 0.6))
    assert found.settings == {"threads_intra": "4", "threads_inter": "4"}
    assert primary(facts(host=host)).cause == "host.few_threads"


def test_a_thread_limit_is_not_felt_by_tiny_operations_or_busy_cpus() -> None:
    host = replace(HOST, threads_intra=1, cpu_ratio=0.3)
    tiny = replace(OPERATIONS, largest=(("relu", 0.00001),))
    assert not drafts(few_threads, facts(host=host, operations=tiny))
    assert not drafts(few_threads, facts(host=replace(host, cpu_ratio=0.95)))
    assert not drafts(few_threads, facts(host=replace(host, threads_intra=4)))


def test_a_script_that_binds_itself_is_told_from_a_small_machine() -> None:
    bound = replace(HOST, usable_cpus=1, offered_cpus=4, threads_intra=1)
    assert only(bound_to_few, facts(host=bound)).cause == "host.affinity"
    assert not drafts(bound_to_few, facts(host=replace(bound, offered_cpus=0)))


def test_a_container_that_holds_back_a_third_is_named() -> None:
    # half of 30 % goes
    host = replace(HOST, usable_cpus=2, throttled_ratio=0.3)
    found = only(container_limit, facts(host=host))
    assert found.gain is not None
    assert found.gain.best == pytest.approx(1 / 0.85)
    assert not drafts(container_limit, facts(host=replace(host, throttled_ratio=0.05)))


def test_a_device_that_waits_for_another_thread_is_host() -> None:
    # 11.5 of 20 ms that neither operations nor their start explain; seven tenths go
    seen = facts(operations=replace(OPERATIONS, busy_s=0.002))
    found = only(busy_interpreter, seen)
    assert found.gain is not None
    assert found.gain.best == pytest.approx(20 / (20 - 0.7 * 11.5))
    assert primary(seen).bottleneck_class == "host"


def test_other_peoples_processes_are_told_but_do_not_lead() -> None:
    seen = facts(host=replace(HOST, cpu_ratio=0.5, other_cpu_ratio=0.5))
    assert set(drafts(busy_cpus, seen)) == {"host.other_processes"}
    assert primary(seen).bottleneck_class == "healthy"


def test_processes_of_the_script_itself_lead() -> None:
    host = replace(HOST, cpu_ratio=0.5, other_cpu_ratio=0.5, children_cpu_ratio=0.5)
    assert primary(facts(host=host)).cause == "host.own_processes"


def test_processes_of_a_script_that_are_its_other_workers_take_nothing_away() -> None:
    host = replace(HOST, cpu_ratio=0.5, other_cpu_ratio=0.5, children_cpu_ratio=0.5)
    assert not drafts(busy_cpus, facts(host=host, worker_count=2))


def test_others_on_idle_cpus_take_nothing_away() -> None:
    assert not drafts(busy_cpus, facts(host=replace(HOST, cpu_ratio=0.3, other_cpu_ratio=0.4)))


def test_a_thread_that_holds_the_interpreter_explains_slow_starts() -> None:
    # 20 ms: 6 in operations, 0.2 of data, the rest in starting and waiting; 0.7 of that goes
    thread = ("train.py:31", 0.6)
    found = only(python_thread, facts(operations=IDLE, python_threads=(thread,)))
    assert found.place == "train.py:31"
    assert found.gain is not None
    assert found.gain.best == pytest.approx(20 / (20 - 0.7 * 13.8))
    assert primary(facts(operations=IDLE, python_threads=(thread,))).cause == found.cause


def test_a_thread_that_mostly_waits_or_makes_batches_is_none() -> None:
    assert not drafts(python_thread, facts(operations=IDLE, python_threads=(("a.py:1", 0.1),)))
    own = replace(GOOD_INPUT, kind="pydataset")
    seen = facts(operations=IDLE, input=own, python_threads=(("a.py:1", 0.9),))
    assert not drafts(python_thread, seen)


def test_a_layer_that_jax_cannot_compile_is_named_whatever_it_costs() -> None:
    layers = ("crop (RandomCrop)", "turn (RandomRotation)")
    seen = facts(backend="jax", execution="eager", uncompiled_layers=layers, operations=IDLE)
    found = primary(seen)
    assert found.cause == "host.uncompiled_layer"
    assert "crop (RandomCrop)" in found.summary
    assert [each.text for each in found.evidence] == [
        "crop (RandomCrop) says supports_jit = False",
        "turn (RandomRotation) says supports_jit = False",
    ]
    assert found.settings == {}
    assert not drafts(run_eagerly, seen)
    noisy = replace(seen, step_s=(0.020, 0.120) * 20, held_s=(0.0195, 0.110) * 20)
    assert primary(noisy).cause == "host.uncompiled_layer"


WAITED = {"backend": "jax", "execution": "xla", "read_each_step": ("Report in train.py:31",)}


def test_a_callback_that_keras_waits_for_is_named_with_its_line() -> None:
    # 4 of 20 ms are the host's alone, of which 60 % go, 25 % at least and 95 % at best
    seen = facts(**WAITED, held_s=(0.016,) * 40, python_s=0.004)
    found = only(loss_each_step, seen)
    assert found.gain is not None
    assert found.gain.best == pytest.approx(20 / (20 - 0.6 * 4))
    assert found.gain.low == pytest.approx(20 / (20 - 0.25 * 4))
    assert found.gain.high == pytest.approx(20 / (20 - 0.95 * 4))
    told = primary(seen)
    assert (told.cause, told.place) == ("host.loss_each_step", "train.py:31")
    assert "because Report asks for the loss of each batch" in told.summary


def test_a_callback_that_costs_nothing_is_left_alone() -> None:
    assert not drafts(loss_each_step, facts(**WAITED))  # half a ms of 20
    assert not drafts(loss_each_step, facts(held_s=(0.016,) * 40, python_s=0.004))


def test_a_callback_that_is_slow_itself_is_told_as_such() -> None:
    slow = CallbackFacts(name="Report", per_step_s=0.010, place="train.py:31")
    seen = facts(**WAITED, held_s=(0.008,) * 40, callbacks=(slow,), callback_s=0.010)
    assert primary(seen).cause == "callback.slow_callback"


def test_an_eager_step_of_jax_becomes_a_program() -> None:
    # the profile has 6 ms of operations, 10 of 18 parts of them products: 3.333 ms, which a
    # program takes too, a twentieth of that at best, and 0.3 ms to start
    found = only(run_eagerly, facts(backend="jax", execution="eager", operations=IDLE))
    assert found.gain is not None
    assert found.gain.best == pytest.approx(20 / (10 / 3 + 0.3))
    assert found.gain.high == pytest.approx(20 / (10 / 3 / 20 + 0.3))
    assert found.gain.low == pytest.approx(20 / (20 - 0.2 * 13.5))
    heavy = replace(OPERATIONS, class_s={"conv": 0.018}, largest=())
    full = facts(backend="jax", execution="eager", operations=heavy)  # products stay as they are
    assert primary(full).cause == "healthy.no_lever"
