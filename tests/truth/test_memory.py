"""Memory against published figures and against runs that fitted."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import pytest

from tfdyno.catalog.gpus import find
from tfdyno.core.base.interval import Interval
from tfdyno_truth import cases, memory_report, own_memory
from tfdyno_truth.main import main
from tfdyno_truth.make_records import FOLDER
from tfdyno_truth.memory import Compared, MemoryScores, kinds, memory_scores
from tfdyno_truth.memory_calls import BEYOND, FLOOR, LIMIT, RAN, Call, tallies, worst
from tfdyno_truth.memory_held import Records, predicted
from tfdyno_truth.rows import Row, read_rows, single_gpu
from tfdyno_truth.sections import markdown

if TYPE_CHECKING:
    from pathlib import Path

GIB = 2.0**30


@lru_cache(maxsize=1)
def found() -> MemoryScores:
    return memory_scores(FOLDER)


@lru_cache(maxsize=1)
def rows() -> tuple[Row, ...]:
    return tuple(read_rows())


def call(*, needs: float, has: float = 8.0, fits: bool = True, about: str = RAN) -> Call:
    """A call of some real row; sizes in GiB."""
    return Call(
        row=next(row for row in rows() if row.framework == "tensorflow"),
        batch_size=8,
        about=about,
        fits=fits,
        device_bytes=Interval(low=0.9 * needs * GIB, best=needs * GIB, high=1.1 * needs * GIB),
        usable_bytes=has * GIB,
        verdict="yes" if 1.1 * needs <= has else "no" if 0.9 * needs > has else "may not",
    )


def test_so_many_calls_are_right_as_the_floor_demands() -> None:
    whole = found().tallies[0]
    assert whole.share >= FLOOR
    assert whole.group_share >= FLOOR


def test_every_measured_row_of_tensorflow_is_a_call() -> None:
    timed = [row for row in rows() if row.framework == "tensorflow" and row.step_s > 0.0]
    kept = {row.number for row in single_gpu(list(rows()))}
    wanted = [row.number for row in timed if row.gpus > 1 or row.number in kept]
    assert [one.row.number for one in found().calls if one.about == RAN] == wanted


def test_a_named_limit_fits_and_twice_as_much_does_not() -> None:
    limits = [row for row in rows() if row.memory_kind == "limit"]
    told = [(one.row.number, one.batch_size, one.fits) for one in found().calls
            if one.about != RAN]  # fmt: skip
    expected = []
    for row in limits:
        if row.batch_size:
            expected.append((row.number, row.batch_size, True))
        expected.append((row.number, 2 * row.batch_size or 1, False))
    assert told == expected
    assert {one.about for one in found().calls} == {RAN, LIMIT, BEYOND}
    assert ("bert_large_finetune_seq512", 1) in {
        (one.row.function, one.batch_size) for one in found().calls if one.about == BEYOND
    }


def test_no_call_made_without_doubt_is_wrong() -> None:
    whole = found().tallies[0]
    assert whole.certain > 0.8 * whole.calls
    assert whole.certain_right == whole.certain


def test_calls_are_counted_by_hand() -> None:
    known = (
        call(needs=4.5),
        call(needs=9.5),
        call(needs=9.0, fits=False, about=BEYOND),
        call(needs=3.0, fits=False, about=BEYOND),
    )
    whole, tight, ran, beyond = tallies(known)
    assert (whole.calls, whole.fitting, whole.right, whole.share) == (4, 2, 2, 0.5)
    assert (tight.calls, tight.right) == (3, 2)
    assert (ran.calls, ran.right, beyond.calls, beyond.right) == (2, 1, 2, 1)
    # 9.5 (8.55-10.45) of 8 is a wrong no, 3.0 a wrong yes; 9.0 (8.1-9.9) is a right no
    assert (whole.certain, whole.certain_right) == (4, 2)


def test_wrong_calls_come_furthest_from_the_limit_first_and_once() -> None:
    near, far = call(needs=9.0), call(needs=2.0, fits=False, about=BEYOND)
    assert worst((near, call(needs=1.0), far, near)) == {far: 1, near: 2}


def test_pytorch_without_fusion_is_held_to_the_plan_of_xla_times_its_factor() -> None:
    row = next(row for row in rows() if row.memory_kind == "allocated")
    program, held = predicted(row, Records(folder=FOLDER))
    assert row.execution == "eager-torch"
    plan = program.buffers.peak_at(row.batch_size)
    assert held.peak_bytes.best == pytest.approx(1.16 * plan, rel=0.1)


def test_kinds_of_figures_are_never_mixed() -> None:
    by_name = {kind.name: kind for kind in found().kinds}
    assert set(by_name) == {"nvml", "reserved", "allocated"}
    published = [row for row in rows() if row.memory_kind not in ("", "limit")]
    assert sum(kind.rows for kind in found().kinds) == len(published)
    assert all(kind.above < 0.05 for kind in found().kinds if kind.name == "reserved")


def test_groups_count_once_whatever_their_rows() -> None:
    base = replace(rows()[0], memory_kind="nvml", memory_bytes=GIB)
    other = replace(base, gpu="another")
    told = [Compared(row=base, predicted_bytes=2 * GIB)] * 3
    (kind,) = kinds([*told, Compared(row=other, predicted_bytes=GIB)])
    assert (kind.rows, kind.groups, kind.mean, kind.above) == (4, 2, 0.5, 0.5)


def test_the_section_names_every_wrong_call_with_its_bytes_and_a_reason() -> None:
    text = "\n\n".join(map(markdown, memory_report.sections(found())))
    assert text.startswith("## Memory\n\nMeasured on a GPU were ten steps on an H200")
    table = text[text.index("### Wrong about memory") :].split("\n\n")[2].splitlines()[2:]
    assert len(table) == len(found().wrong)
    assert not any("unexplained" in line for line in table)
    first = found().wrong[0]
    assert first.row.function in table[0]
    assert f"{first.device_bytes.best / GIB:.2f} (" in table[0]


def test_every_reason_is_about_a_wrong_call() -> None:
    for reason in cases.read_reasons(memory_report.REASONS):
        assert any(reason.fits(one.row) for one in found().wrong), reason


def test_own_steps_come_worst_first_and_hold_the_floor() -> None:
    steps = own_memory.read_steps()
    assert [abs(step.error) for step in steps] == sorted(
        (abs(step.error) for step in steps), reverse=True
    )
    whole, *parts = own_memory.parts(steps, 0.9, 1.15)
    assert whole.steps == sum(part.steps for part in parts) >= 15
    assert whole.mean <= 0.08


def test_a_range_holds_what_the_allocator_held() -> None:
    step = own_memory.read_steps()[0]
    over, under = replace(step, error=0.25), replace(step, error=-0.10)  # held 0.8 and 1.11
    (whole, _) = own_memory.parts([over, under], 0.9, 1.15)
    assert whole.within == 0.5
    assert whole.mean == pytest.approx(0.175)


def test_the_command_prints_the_answer_first_and_as_json(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["memory"]) == 0
    assert "calls whether a step fits are right" in capsys.readouterr().out.splitlines()[0]
    assert main(["memory", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["floor"] == FLOOR
    assert sum(one["rows"] for one in told["wrong"]) == sum(found().wrong_rows.values())


def test_a_missing_record_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["memory", "--folder", str(tmp_path)]) == 2
    assert "make it with `tfdyno-truth records`" in capsys.readouterr().err


def test_the_bert_of_the_limits_holds_its_optimizer_in_new_tensors() -> None:
    """Weights, m, v, and of each gradient, clipped gradient and three products: 8 at least."""
    row = next(row for row in rows() if row.function == "bert_large_finetune_seq384")
    record = Records(folder=FOLDER).read(row)
    weights = 4.0 * record.trainable_parameter_count
    assert record.per_op.buffers.peak_at(1) > 7.5 * weights
    assert find(row.slug).name.startswith("TITAN X")
