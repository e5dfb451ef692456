"""The sweep itself runs on the CPUs of this machine, for a few seconds."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from tests.anchors import anchor
from tests.probe.fake_nvml import FakeNvml, NoNvml, on
from tests.swept import card_file, loop, product

from tfdyno.catalog.gpus import find
from tfdyno.catalog.sweeps import reference_sweep
from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.core.choose.card_file import CardFile, Condition, Pace
from tfdyno.core.choose.workload import Workload
from tfdyno.core.measure.measurement import CardTelemetry, Telemetry
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.jobs.bench._card_condition import CardState
from tfdyno.jobs.bench.calibrate import Calibrated, CalibrateRequest, calibrate, shared_copy
from tfdyno.jobs.child.worker import silent
from tfdyno.jobs.choose._anchors import subject_of
from tfdyno.jobs.choose.estimate import EstimateRequest, check, estimate
from tfdyno.jobs.holders.card_rates import best_rates, sweep_words
from tfdyno.jobs.machine.card_files import cards_named, processors_as_card, stored_sweeps
from tfdyno.jobs.tune._expect import CardEstimates
from tfdyno.store.card_files import CardFiles
from tfdyno.store.recalibration import Anchors

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.base.untyped import Value

SECONDS = 14.0
ON_CPU = CalibrateRequest(seconds_s=SECONDS, card="cpu", framework="tensorflow")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture
def data(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TFDYNO_DATA", str(folder))
    return folder


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TFDYNO_DATA", str(tmp_path))
    return tmp_path


@pytest.fixture(scope="module")
def done(folder: Path) -> Calibrated:
    """A sweep; a busy machine may need more than the time of a quiet one to import TensorFlow."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TFDYNO_DATA", str(folder))
        with contextlib.suppress(ToolError):  # nothing at all was measured
            found = calibrate(ON_CPU)
            if found.takes_effect:
                return found
        return calibrate(replace(ON_CPU, seconds_s=120.0))


def test_a_sweep_keeps_its_time_and_measures_what_tells_most_first(done: Calibrated) -> None:
    assert done.takes_effect
    assert done.card.sweep_s < SECONDS + 120
    first = done.card.kernels[0].kernel
    assert (first.kind, first.name, first.flops.fixed) == ("loop", "multiply", 1.0)
    kinds = {one.kernel.kind for one in done.card.kernels}
    assert kinds >= {"loop", "gemm"}
    assert done.card.software.startswith("TensorFlow 2.")


def test_its_figures_are_those_of_a_computer(done: Calibrated) -> None:
    rates = [one.kernel.flops.fixed / one.kernel_s for one in done.card.kernels
             if one.kernel.kind == "gemm"]  # fmt: skip
    assert all(1e8 < rate < 1e13 for rate in rates)
    assert 1e-6 < done.card.pace.call_s < 1e-1
    large = max(done.card.kernels, key=lambda one: one.kernel.read_bytes.fixed)
    small = min(done.card.kernels, key=lambda one: one.kernel.read_bytes.fixed)
    assert large.kernel_s > small.kernel_s


def test_what_there_was_no_time_for_is_named(done: Calibrated) -> None:
    swept = len(done.card.kernels)
    assert all(name.startswith("graph ") for name in done.card.left_out)
    assert swept + len(done.card.left_out) <= 160


def test_processors_are_not_judged(done: Calibrated) -> None:
    assert done.verdict.grade == "unknown"


def test_from_then_on_an_estimate_uses_it_and_says_so(
    done: Calibrated, data: Path, tmp_path: Path
) -> None:
    workload = dense(tmp_path)
    request = EstimateRequest(workload=workload, gpus=cards_named("cpu"), batch_size=32)
    answer = estimate(request)
    (one,) = answer.estimates
    assert (one.execution, one.gpu) == ("graph", "cpu")
    assert one.swept_by == done.card.words()
    assert any(note == f"Times use {done.card.words()}." for note in answer.notes)
    kernels_s = sum(one.terms_s.values()) - one.terms_s["communication"]
    assert one.step_s.best == pytest.approx(kernels_s)
    assert one.step_s.best > done.card.pace.call_s


@pytest.mark.parametrize(
    "asked",
    [
        {"explain": True},
        {"route": "exact"},
        {"execution": "xla"},
        {"replicas": (2,)},
        {"precision": "mixed_float16"},
    ],
)
def test_what_processors_do_not_do_is_refused(
    done: Calibrated, data: Path, asked: dict[str, Any]
) -> None:
    workload = Workload(reference="x.py:build", kind="function", mode="train")
    with pytest.raises(UsageError, match="not for cpu"):
        check(EstimateRequest(workload=workload, gpus=cards_named("cpu"), **asked))


def test_without_a_sweep_processors_are_not_known(empty: Path) -> None:
    with pytest.raises(UsageError, match="tfdyno calibrate --card cpu"):
        cards_named("t4,cpu")


def test_the_sweep_of_other_processors_is_told_and_left_out(empty: Path) -> None:
    CardFiles(folder=empty).write(card_file(loop(4096, 1e-6), name="Another CPU", processors=99))
    found = stored_sweeps()
    assert found.cards == ()
    assert "Another CPU (99 processors) is left out" in found.problems[0]
    with pytest.raises(UsageError, match="Another CPU"):
        processors_as_card()


def test_a_child_that_dies_leaves_what_it_measured_and_no_card_file(empty: Path) -> None:
    """As when a card falls off the bus: the process that used it is gone."""

    def end(stage: str) -> None:
        if stage.startswith("10 of"):
            for child in psutil.Process().children():
                if any("tfdyno.runtime.calibrate" in word for word in child.cmdline()):
                    child.kill()  # other tests have children of their own here

    found = calibrate(replace(ON_CPU, seconds_s=40.0), progress=end)
    assert not found.takes_effect
    assert found.card.kernels
    assert "no estimate uses them" in found.notes[0]
    assert found.path.name == "cpu.tensorflow.unfinished.json"
    assert stored_sweeps().cards == ()


def test_a_card_that_the_framework_does_not_see_is_a_failure_that_names_the_doctor(
    empty: Path,
) -> None:
    request = replace(ON_CPU, card="")
    with pytest.raises(ToolError, match=r"sees no GPU.*tfdyno doctor"):
        on(Idle(), calibrate, request)
    assert not list(empty.rglob("*.json"))


class Idle(FakeNvml):
    """A card that nobody uses, with what a sweep asks beside."""

    width = 16

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> Value:  # noqa: N802
        return type("Load", (), {"gpu": 0, "memory": 0})

    def nvmlDeviceGetPowerManagementDefaultLimit(self, handle: int) -> int:  # noqa: N802
        return 700_000

    def nvmlDeviceGetCurrPcieLinkGeneration(self, handle: int) -> int:  # noqa: N802
        return 5

    def nvmlDeviceGetCurrPcieLinkWidth(self, handle: int) -> int:  # noqa: N802
        return self.width

    def nvmlDeviceGetMaxPcieLinkWidth(self, handle: int) -> int:  # noqa: N802
        return 16


def test_a_card_in_use_is_refused_before_any_work(empty: Path) -> None:
    busy = FakeNvml()
    busy.processes = [(4711, 1 << 30)]
    with pytest.raises(UsageError, match=r"GPU 0 is in use: .*4711.*--shared"):
        on(busy, calibrate, replace(ON_CPU, card="0"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seconds_s": 2.0}, "a sweep of 2 s is not possible"),
        ({"seconds_s": 1e6}, "is not possible"),
        ({"card": "7"}, "there is no GPU 7"),
        ({"card": "gpu"}, "there is no card 'gpu'"),
        ({"python": "/no/such/python"}, "cannot be run"),
    ],
)
def test_wrong_use_is_one_sentence(empty: Path, change: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        on(NoNvml(), calibrate, replace(ON_CPU, **change))


def test_the_state_of_a_card_is_read_under_load() -> None:
    card = Idle()
    card.width = 8
    state = on(card, CardState, 0)
    on(card, state.look_at_link)
    seen = CardTelemetry(
        index=0, graphics_clock_hz=(1e9, 1.2e9, 1.1e9), power_w=(300.0, 310.0, 305.0),
        throttle=(("software power cap",), (), ("software power cap",)),
    )  # fmt: skip
    told = Telemetry(interval_s=0.5, at_s=(0.0, 0.5, 1.0), cards=(seen,))
    assert state.condition(told, "3g.40gb") == Condition(
        memory_bytes=85520809984, clock_hz=1.1e9, clock_limit_hz=1.98e9, power_w=305.0,
        power_limit_w=700.0, default_power_limit_w=700.0, throttle=("software power cap",),
        pcie_generation=5, pcie_width=8, pcie_width_limit=16, ecc=True, uncorrected_errors=0,
        slice_name="3g.40gb", other_processes=0,
    )  # fmt: skip


def test_without_nvml_a_state_is_unknown() -> None:
    state = on(NoNvml(), CardState, 0)
    assert state.card is None
    assert state.condition(None, "") == Condition()


def test_what_is_shared_names_no_machine(done: Calibrated) -> None:
    named = replace(done.card, left_out=("graph x (/home/somebody/file)",), ended_by="/home/x")
    told = repr(shared_copy(named))
    assert "/home" not in told
    assert "hostname" not in told


def test_the_best_product_and_the_largest_traffic_are_what_a_card_can_do() -> None:
    card = card_file(
        loop(2**25, 1e-3), loop(1024, 1e-9), product(512, 1e-3), product(1024, 1e-3),
        product(1024, 1e-4, tf32=True),
    )  # fmt: skip
    assert best_rates(card, tf32=False) == {
        "bytes_per_s": 2**28 / 1e-3, "f32": pytest.approx(2 * 1024**3 / 1e-3)
    }  # fmt: skip
    assert best_rates(card, tf32=True)["f32"] == pytest.approx(2 * 1024**3 / 1e-4)


def dense(folder: Path) -> Workload:
    """A small model in a file."""
    path = folder / "dense.py"
    path.write_text(
        "import keras\n"
        "def build():\n"
        "    model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(32), "
        "keras.layers.Dense(4)])\n"
        "    model.compile('sgd', 'mse')\n"
        "    return model\n"
    )
    return Workload(reference=f"{path}:build", kind="function", mode="train")


def on_h100(factor: float) -> CardFile:
    """A sweep of an H100 that takes so many times as long as the reference does, all of it."""
    known = reference_sweep()
    rows = [replace(one, kernel_s=one.kernel_s * factor) for one in known.kernels]
    return card_file(*rows, card="h100-sxm5-80gb", name="NVIDIA H100 80GB HBM3",
                     pace=Pace(call_s=known.pace.call_s * factor))  # fmt: skip


def test_on_a_swept_gpu_estimates_move_and_narrow_and_can_do_without(empty: Path) -> None:
    workload, gpus = dense(empty), (find("h100-sxm5-80gb"), find("t4"))
    request = EstimateRequest(workload=workload, gpus=gpus, batch_size=32, execution="xla")
    before = estimate(request)
    CardFiles(folder=empty).write(on_h100(1.5))
    swept, other = estimate(request).estimates
    assert before.estimates[1] == other
    assert swept.swept_by == "the sweep of this card of 2026-11-26 (TensorFlow 2.21.0)"
    # A step of small kernels: half of it is the call, which takes 1.5 times as long.
    assert 1.2 < swept.step_s.best / before.estimates[0].step_s.best < 1.5
    plain = before.estimates[0].step_s
    assert swept.step_s.high / swept.step_s.low < plain.high / plain.low
    assert estimate(replace(request, card_files=False)).estimates == before.estimates


def test_a_damaged_card_file_is_told_beside_the_estimate(empty: Path) -> None:
    path = CardFiles(folder=empty).write(on_h100(1.5))
    path.write_text(path.read_text()[:100])
    request = EstimateRequest(workload=dense(empty), gpus=(find("h100-sxm5-80gb"),), batch_size=32)
    answer = estimate(request)
    assert answer.estimates[0].swept_by == ""
    assert any("is left out" in note for note in answer.notes)


def test_what_a_diagnosis_takes_a_card_to_be_able_to_do_is_told_with_its_sweep(empty: Path) -> None:
    class Hopper(FakeNvml):
        def nvmlDeviceGetName(self, handle: int) -> bytes:  # noqa: N802
            return b"NVIDIA H100 80GB HBM3"

    assert on(Hopper(), sweep_words, None) == ""
    CardFiles(folder=empty).write(on_h100(1.5))
    told = on(Hopper(), sweep_words, None)
    assert told == f"What the card can do is told by {on_h100(1.5).words()}."


def test_what_a_tuning_expects_says_that_it_uses_the_sweep(empty: Path) -> None:
    CardFiles(folder=empty).write(on_h100(1.5))
    expected = CardEstimates(
        workload=dense(empty), gpu=find("h100-sxm5-80gb"), batch_size=32, progress=silent
    )
    assert expected.of(Recipe(), 32) is not None
    assert expected.notes == [f"What is expected uses {on_h100(1.5).words()}."]


def test_an_own_measurement_of_the_model_on_the_card_comes_before_its_sweep(empty: Path) -> None:
    CardFiles(folder=empty).write(on_h100(1.5))
    request = EstimateRequest(
        workload=dense(empty), gpus=(find("h100-sxm5-80gb"),), batch_size=32, execution="xla"
    )
    subject = subject_of(estimate(request).trace, precision="", execution="xla")
    assert subject
    Anchors(folder=empty).add(replace(anchor(1.0, card="h100-sxm5-80gb"), subject=subject))
    answer = estimate(request)
    assert answer.estimates[0].swept_by == ""
    assert any("own measurement" in note for note in answer.notes)
