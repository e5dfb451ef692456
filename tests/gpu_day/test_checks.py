"""gpu_day/checks: from documents to checks, by numbers that are worked by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpu_day import checks

if TYPE_CHECKING:
    from gpu_day.verdict import Check

MS = 1e-3
GIB = 1 << 30


def ok(found: list[Check]) -> list[bool]:
    return [one.ok for one in found]


def interval(low: float, best: float, high: float) -> dict[str, float]:
    return {"low": low, "best": best, "high": high}


def test_a_doctor_that_names_an_error_or_no_card_does_not_pass() -> None:
    child: dict[str, Any] = {"gpus": ["GPU:0"], "checks": [["matrix product", 0.1, 0.01]]}
    told: dict[str, Any] = {"findings": [{"cause": "gpu.none", "severity": "note"}],
                            "machine": {"child": child}}  # fmt: skip
    assert ok(checks.of_doctor(told, cpu=False)) == [True, True, True]
    child["gpus"] = []
    assert ok(checks.of_doctor(told, cpu=False)) == [True, True, False]
    assert ok(checks.of_doctor(told, cpu=True)) == [True, True]
    told["findings"].append({"cause": "lib.cuda_missing", "severity": "error"})
    assert checks.of_doctor(told, cpu=True)[0].found == "lib.cuda_missing"
    assert ok(checks.of_doctor({}, cpu=True)) == [True, False]  # nothing was computed


def test_an_estimate_holds_what_is_measured_or_not() -> None:
    one = {"fit_step_s": interval(8 * MS, 9 * MS, 12 * MS),
           "peak_memory_bytes": interval(GIB, 2 * GIB, 3 * GIB)}  # fmt: skip
    measured = {"median_s": 10 * MS, "peak_memory_bytes": 4 * GIB, "memory_kind": "device"}
    step, memory = checks.of_estimate({"estimates": [one]}, measured)
    assert (step.ok, step.found, step.wanted) == (
        True, "10 ms (-10 % by the estimate)", "8 ms to 12 ms",
    )  # fmt: skip
    assert (memory.ok, memory.found) == (False, "4 GiB (-50 % by the estimate)")
    host = {**measured, "memory_kind": "process"}  # of the machine, not of the card
    assert checks.of_estimate({"estimates": [one]}, host)[1].found == "not told"
    assert ok(checks.of_estimate({}, measured)) == [False, False]


def compared(verdict: str, ratio: float, low: float, high: float) -> dict[str, Any]:
    return {"comparison": {"verdict": verdict, "ratio": ratio, "interval": [low, high]}}


@pytest.mark.parametrize(
    ("verdict", "passes"),
    [("no_difference", True), ("faster", False), ("slower", False), ("not_comparable", False)],
)
def test_the_same_against_itself_has_to_be_told_no_difference(verdict: str, passes: bool) -> None:
    (one,) = checks.of_alike(compared(verdict, 1.004, 0.98, 1.03))
    assert one.ok is passes
    assert one.found == f"{verdict.replace('_', ' ')}, 1.004 times as fast (0.980–1.030)"
    assert ok(checks.of_alike({})) == [False]
    none = {"comparison": {"verdict": "not_comparable", "ratio": 0.0, "interval": [0.0, 0.0],
                           "reason": "a comparison needs 3 runs"}}  # fmt: skip
    assert checks.of_alike(none)[0].found == "not comparable: a comparison needs 3 runs"


def test_a_setting_has_a_ratio_within_its_interval() -> None:
    assert ok(checks.of_setting(compared("faster", 1.5, 1.4, 1.6), "execution=xla")) == [True]
    assert ok(checks.of_setting(compared("faster", 1.5, 1.6, 1.4), "execution=xla")) == [False]
    assert ok(checks.of_setting({}, "execution=xla")) == [False]  # NaN is in no interval


def test_a_diagnosis_names_the_class_and_has_a_split_on_a_card_of_kernels_too() -> None:
    told = {"primary": {"class": "input", "cause": "input.slow_pydataset"},
            "split_s": {"input": 0.02, "compute": 0.001, "copy": 0.0},
            "compute_s": {"gemm": 0.0005}}  # fmt: skip
    found = checks.of_diagnosis(told, "input", cpu=False)
    assert ok(found) == [True, True, True]
    assert found[1].found == "input 20 ms, compute 1 ms"
    assert ok(checks.of_diagnosis(told, "host", cpu=False)) == [False, True, True]
    empty = {**told, "split_s": {"input": 0.0}, "compute_s": {}}
    assert ok(checks.of_diagnosis(empty, "input", cpu=False)) == [True, False, False]
    assert ok(checks.of_diagnosis({}, "input", cpu=True)) == [False, False]


def test_losses_after_a_resume_are_equal_or_nearly() -> None:
    told = checks.of_resume([2.0, 1.0], [2.0, 1.0], killed_at=8)
    assert ok(told) == [True, True, True]
    assert told[2].found == "equal to the last digit"
    assert checks.of_resume([2.0, 1.0], [2.0, 1.005], killed_at=8)[2].found == "0.5 % apart"
    assert ok(checks.of_resume([2.0, 1.0], [2.0, 1.02], killed_at=8)) == [True, True, False]
    assert ok(checks.of_resume([2.0, 1.0], [2.0], killed_at=8)) == [False, True, False]
    assert ok(checks.of_resume([], [], killed_at=0)) == [False, False, False]


def test_what_was_asked_for_is_what_was_trained_with() -> None:
    told = {"recipe": {"precision": "mixed_float16", "execution": "graph"}}
    asked = {"precision": "mixed_float16", "execution": "xla"}
    assert ok(checks.of_recipe(told, asked)) == [True, False]
    assert ok(checks.of_recipe({}, asked)) == [False, False]


def test_the_best_trial_is_no_slower_than_the_start() -> None:
    trials = [{"changes": {}, "samples_per_s": 100.0},
              {"changes": {"a": "b"}, "samples_per_s": 150.0},
              {"changes": {"a": "c"}, "samples_per_s": None}]  # fmt: skip
    told: dict[str, Any] = {"trials": trials, "best": {"samples_per_s": 150.0}}
    assert ok(checks.of_tuning(told)) == [True, True]
    assert ok(checks.of_tuning({**told, "best": {"samples_per_s": 90.0}})) == [True, False]
    assert ok(checks.of_tuning({"trials": trials[:1], "best": None})) == [False, False]


def test_an_export_that_differs_or_was_not_kept_does_not_pass() -> None:
    one = {"format": "onnx", "kept": True, "max_difference": 2e-4}
    assert ok(checks.of_export({"formats": [one]})) == [True]
    assert ok(checks.of_export({"formats": [{**one, "kept": False}]})) == [False]
    assert ok(checks.of_export({"formats": [{**one, "max_difference": 0.1}]})) == [False]
    assert checks.of_export({}) == []


def test_answers_of_a_server_are_those_of_the_model() -> None:
    own = [[0.1, 0.9], [0.5, 0.5]]
    assert ok(checks.of_answers(own, own)) == [True, True]
    assert ok(checks.of_answers([[0.1, 0.89], [0.5, 0.5]], own)) == [True, False]
    assert ok(checks.of_answers([[0.1]], own)) == [False, False]


def test_rows_of_the_truth_and_kernels_of_a_card_file_are_counted() -> None:
    assert ok(checks.of_truth({"rows": 3, "failed": []})) == [True, True]
    told = checks.of_truth({"rows": 0, "failed": [{"model": "mlp", "reason": "out of memory"}]})
    assert [one.found for one in told] == ["0", "mlp: out of memory"]
    card = {"kernels": [{"kernel_s": 1e-6}] * 10 + [{"kernel_s": 0.0}]}
    assert checks.of_calibration({"card": card})[0].found == "10"
    assert ok(checks.of_calibration({"card": card})) == [True]
    assert ok(checks.of_calibration({"card": {"kernels": card["kernels"][1:]}})) == [False]
    assert ok(checks.of_calibration({})) == [False]
