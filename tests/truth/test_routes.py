"""The quick route against compiled programs, on the stored kernels of both."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import pytest

from tfdyno.catalog.families import family_of
from tfdyno.catalog.gpus import find
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.interval import Scaled
from tfdyno_truth import routes
from tfdyno_truth.both import SERVING, Both, Prices
from tfdyno_truth.compared import FOLDER, Compared, compared, sizes_of
from tfdyno_truth.main import main
from tfdyno_truth.make_records import FOLDER as QUICK
from tfdyno_truth.make_routes import make_missing
from tfdyno_truth.plan import SECONDS, Planned, Timed, plan, read_timed, store_timed
from tfdyno_truth.records import read_record, write_record
from tfdyno_truth.rows import read_rows, single_gpu
from tfdyno_truth.sections import markdown

if TYPE_CHECKING:
    from pathlib import Path

ALEXNET = ("alexnet_227", "infer", "float32")
BERT = ("bert_base_squad_seq384", "infer", "mixed_float16")


@lru_cache(maxsize=1)
def found() -> Compared:
    return compared(plan(), FOLDER, QUICK, SECONDS, refit=False)


def seconds(key: tuple[str, str, str], family: str = SERVING) -> Timed:
    return Timed(
        function=key[0], mode=key[1], policy=key[2], family=family, compiled_batch_size=296,
        trace_s=4.0, count_s=0.1, compile_s=6.0, compiler="0", day="2026-11-22",
    )  # fmt: skip


def folders(place: Path, key: tuple[str, str, str], factor: float = 1.0) -> Path:
    """A folder of compiled kernels that are the quick ones with ``factor`` times the bytes."""
    record = read_record(QUICK, key)
    assert record
    kernels = tuple(
        replace(
            kernel,
            read_bytes=Scaled(
                fixed=factor * kernel.read_bytes.fixed,
                per_sample=factor * kernel.read_bytes.per_sample,
            ),
        )
        for kernel in record.program.kernels
    )
    place.mkdir(parents=True)
    write_record(place, key, replace(record, program=replace(record.program, kernels=kernels)))
    return place


def test_the_quick_routes_error_is_within_5_points_of_the_compiled_programs() -> None:
    line = found().whole
    assert line
    assert line.quick.rows > 400
    assert len(found().steps) >= 40
    assert line.quick.mean < line.compiled.mean + 0.05
    assert line.quick.median < line.compiled.median + 0.05
    assert line.quick.p90 < line.compiled.p90 + 0.05


def test_the_quick_route_is_at_least_20_times_faster_from_the_same_traced_step() -> None:
    assert found().work_ratio > 20.0
    # the trace and the imports, which both need, are most of the wait for a quick answer
    assert found().wait_ratio > 1.5


def test_constants_of_its_own_do_not_make_the_compiled_route_5_points_better() -> None:
    steps = [step for step in plan() if step.key[0] in ("vgg16_224", "resnet50_v1_224")]
    line = compared(steps, FOLDER, QUICK, SECONDS).refitted
    assert line
    assert line.quick.mean < line.compiled.mean + 0.05


def test_both_routes_count_the_same_arithmetic_and_nearly_the_same_bytes() -> None:
    for step in found().steps:
        assert step.quick.flops == pytest.approx(step.compiled.flops, rel=0.08), step.key
        assert 0.7 < step.quick.traffic_bytes / step.compiled.traffic_bytes < 1.3, step.key
        assert 0.6 < step.time_ratio < 1.4, step.key


def test_every_planned_step_is_stored_or_named_as_missing() -> None:
    stored = {step.key for step in found().steps}
    assert stored | set(found().missing) == {one.key for one in plan()}
    assert not stored & set(found().missing)
    names = {family for one in plan() for family in one.families}
    assert {one.family for one in read_timed()} <= names


def test_equal_kernels_have_equal_errors_and_every_row_is_used_once(tmp_path: Path) -> None:
    folder = tmp_path / "exact"
    folders(folder / SERVING, ALEXNET)
    timed = tmp_path / "routes.csv"
    store_timed([seconds(ALEXNET)], timed)
    (step,) = [one for one in plan() if one.key == ALEXNET]
    one = compared([step], folder, QUICK, timed)
    assert one.whole
    assert one.refitted
    assert one.whole.points == pytest.approx(0.0, abs=1e-9)
    assert one.refitted.points == pytest.approx(0.0, abs=1e-9)
    rows = [r for r in single_gpu(read_rows()) if r.record == ALEXNET and r.execution == "xla"]
    assert one.whole.quick.rows == len(rows)
    assert one.work_ratio == pytest.approx(60.0)
    assert one.wait_ratio == pytest.approx(2.5)


def test_more_bytes_in_the_compiled_program_make_its_times_longer(tmp_path: Path) -> None:
    folder = tmp_path / "exact"
    folders(folder / SERVING, ALEXNET, factor=3.0)
    timed = tmp_path / "routes.csv"
    store_timed([seconds(ALEXNET)], timed)
    one = compared([Planned(key=ALEXNET, families=(SERVING,))], folder, QUICK, timed, refit=False)
    (step,) = one.steps
    assert step.quick.flops == pytest.approx(step.compiled.flops)
    assert step.quick.traffic_bytes < 0.7 * step.compiled.traffic_bytes
    assert step.time_ratio < 0.95


def test_a_card_is_judged_by_the_program_of_its_own_family_where_there_is_one(
    tmp_path: Path,
) -> None:
    rows = [r for r in single_gpu(read_rows()) if r.record == BERT and r.execution == "xla"]
    folders(tmp_path / SERVING, BERT)
    folders(tmp_path / "7.x", BERT, factor=4.0)
    both = Both.of(rows, QUICK, tmp_path, Prices.shipped())
    ratios = both.predicted["compiled"] / both.predicted["quick"]
    own = [family_of(find(row.slug)).slug == "7.x" for row in rows]
    assert 0 < sum(own) < len(rows)
    for ratio, mine in zip(ratios, own, strict=True):
        assert ratio > 1.05 if mine else ratio == pytest.approx(1.0)


def test_attention_keeps_the_families_apart_and_convolutions_do_not() -> None:
    by_step = {(one.key, one.family): one for one in found().shared}
    bert = by_step[BERT, "7.x"]
    assert bert.own.kernels > bert.serving.kernels
    assert bert.time_ratio < 0.95
    resnet = by_step[("resnet50_v1_224", "train", "mixed_float16"), "7.x"]
    assert resnet.time_ratio == pytest.approx(1.0, abs=0.02)
    assert resnet.serving.peak_bytes == pytest.approx(resnet.own.peak_bytes, rel=0.01)


def test_kernels_are_counted_with_their_repeats() -> None:
    record = read_record(QUICK, ALEXNET)
    assert record
    once = sizes_of(record.program, 64)
    twice = tuple(replace(kernel, count=2 * kernel.count) for kernel in record.program.kernels)
    assert sizes_of(replace(record.program, kernels=twice), 64).kernels == 2 * once.kernels
    # by hand, MAC an image: convolutions on 55, 27 and 13 squared positions, dense layers
    convolutions = 55**2 * 64 * 363 + 27**2 * 192 * 1600 + 13**2 * 3456 * (192 + 384 + 256)
    dense = 9216 * 4096 + 4096 * 4096 + 4096 * 1000
    assert once.flops / 64 == pytest.approx(2 * (convolutions + dense), rel=0.01)


def test_the_section_says_both_errors_and_names_what_is_missing() -> None:
    first, steps, shared = routes.sections_of(found())
    whole = found().whole
    assert whole
    assert f"{whole.quick.mean:.1%}" in first.prose
    assert f"{whole.compiled.mean:.1%}" in first.prose
    assert steps.table
    assert len(steps.table.rows) == len(found().steps)
    for section in (first, steps, shared):
        assert section.table
        assert {len(row) for row in section.table.rows} == {len(section.table.headings)}
        assert "nan" not in markdown(section)
    gone = replace(found(), missing=(BERT,))
    assert "Not compiled yet: bert_base_squad_seq384 infer" in next(routes.sections_of(gone)).prose


def test_without_any_compiled_kernels_the_page_says_so(tmp_path: Path) -> None:
    nothing = compared(plan(), tmp_path, QUICK, tmp_path / "none.csv")
    (only,) = routes.sections_of(nothing)
    assert (only.prose, only.table) == (routes.NOT_MEASURED, None)
    assert set(nothing.missing) == {one.key for one in plan()}


def test_the_plan_lists_every_step_once_and_the_serving_family_first() -> None:
    steps = plan()
    assert len({one.key for one in steps}) == len(steps)
    assert {one.families[0] for one in steps} == {SERVING}


@pytest.mark.parametrize(
    ("step", "family", "told"),
    [
        ("train", "8.x", "'train' of m is no step"),
        ("fly float32", "8.x", "'fly float32' of m is no step"),
        ("train float32", "8.9", "no GPU family is called '8.9'"),
    ],
)
def test_a_plan_that_cannot_be_followed_is_refused(
    step: str, family: str, told: str, tmp_path: Path
) -> None:
    path = tmp_path / "routes.toml"
    path.write_text(f'families = ["{family}"]\n[models.m]\nsteps = ["{step}"]\n')
    with pytest.raises(UsageError, match=told):
        plan(path)


def test_seconds_take_the_place_of_older_ones_of_the_same_step_and_family(tmp_path: Path) -> None:
    path = tmp_path / "routes.csv"
    assert read_timed(path) == ()
    store_timed([seconds(ALEXNET), seconds(BERT, "7.x"), seconds(BERT)], path)
    later = replace(seconds(BERT), compile_s=9.5)
    store_timed([later], path)
    assert set(read_timed(path)) == {seconds(ALEXNET), seconds(BERT, "7.x"), later}


def test_the_command_compares_what_is_stored_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["routes", "--stored", "--only", "alexnet", "--json", "--quiet"]) == 0
    out, err = capsys.readouterr()
    told = json.loads(out)
    assert err == ""
    assert told["work_ratio"] > 20.0
    assert {step["key"][0] for step in told["routes"]["steps"]} == {"alexnet_227"}


def test_an_unknown_builder_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["routes", "--only", "alexnetwork"]) == 2
    assert "no builder with 'alexnetwork'" in capsys.readouterr().err


@pytest.mark.slow
def test_a_compile_gives_what_is_stored_and_is_not_made_twice(tmp_path: Path) -> None:
    steps, timed = [Planned(key=ALEXNET, families=(SERVING,))], tmp_path / "t.csv"
    folder, told = tmp_path / "exact", list[str]()
    for _ in range(2):
        failed = make_missing(steps, folder, QUICK, again=False, timed=timed, tell=told.append)
        assert failed == 0
    assert len(told) == 1
    assert told[0].startswith("1/1 alexnet_227 infer float32 8.x: traced ")
    (one,) = read_timed(timed)
    assert one.compile_s > 5 * one.count_s
    made, stored = (read_record(place / SERVING, ALEXNET) for place in (folder, FOLDER))
    assert made
    assert stored
    now, before = (sizes_of(record.program, 128) for record in (made, stored))
    assert now.flops == pytest.approx(before.flops, rel=0.001)
    assert now.traffic_bytes == pytest.approx(before.traffic_bytes, rel=0.02)
    assert now.kernels == before.kernels


@pytest.mark.slow
def test_a_step_that_cannot_be_compiled_is_told_and_counted(tmp_path: Path) -> None:
    steps = [Planned(key=("no_such_model", "infer", "float32"), families=(SERVING,))]
    told = list[str]()
    folder, timed = tmp_path / "exact", tmp_path / "t.csv"
    assert make_missing(steps, folder, QUICK, again=False, timed=timed, tell=told.append) == 1
    assert told[0].startswith("1/1 FAILED no_such_model infer float32: ")
    assert not timed.exists()
