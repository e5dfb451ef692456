"""scripts/bottlenecks: the suite holds what it says, and its page counts right."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from bottleneck_suite import run
from bottleneck_suite.cases import COLUMNS, FOLDER, HEALTHY, Case, all_cases
from bottleneck_suite.clock import Clock
from bottleneck_suite.diagnosed import command, read
from bottleneck_suite.factor import OWN, REMOVED, answer, sources
from bottleneck_suite.page import confusion, is_right, page
from tfdyno.rules.bottleneck.tables import all_causes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CASES = all_cases()
REMOVALS = tomllib.loads(REMOVED.read_text())
LEAST = {
    "input": 10, "host": 6, "retrace": 3, "launch": 3, "callback": 4, "leak": 4, "placement": 2,
    "communication": 3, "precision": 2, "healthy": 5,
}  # fmt: skip
TELL_TALE = re.compile(
    r"bottleneck|slow|leak|retrac|wrong|healthy|tuned|inefficient|should be|bad idea|fixme",
    re.IGNORECASE,
)
ABOUT = {
    "date": "2026-11-22", "cpu": "a CPU", "cpu_count": 2, "system": "Linux", "tensorflow": "2.21.0",
    "keras": "3.15.1", "tfdyno": "0.1.0",
}  # fmt: skip


def test_there_are_as_many_scripts_of_each_class_as_promised() -> None:
    counts = Counter(case.true_class for case in CASES)
    assert len(CASES) >= 40
    assert {name: min(counts[name], least) for name, least in LEAST.items()} == LEAST


def test_every_script_is_in_the_table_once() -> None:
    assert sorted(case.script for case in CASES) == sorted(p.name for p in FOLDER.glob("*.py"))


def test_the_scripts_have_at_least_30_different_causes() -> None:
    assert len({case.cause for case in CASES if case.cause}) >= 30


def test_every_cause_is_one_that_the_rules_know() -> None:
    known = {one.id for one in all_causes()}
    assert {case.cause for case in CASES if case.cause} <= known


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.script)
def test_a_script_is_short_and_does_not_tell_its_cause(case: Case) -> None:
    source = case.path.read_text()
    assert ast.get_docstring(ast.parse(source))
    assert 25 <= len(source.splitlines()) <= 90
    assert "#" not in re.sub(r"# fmt: skip|\"[^\"\n]*\"", "", source)
    assert not TELL_TALE.search(source), TELL_TALE.search(source)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.script)
def test_the_cause_of_a_script_can_be_taken_out_or_levers_tried(case: Case) -> None:
    sides = sources(case.path.stem, REMOVALS, case.path.read_text())
    assert len(sides) == len(set(sides.values())) >= 2
    for source in sides.values():
        ast.parse(source)


def test_every_planted_cause_that_takes_time_is_worth_at_least_1_3_times() -> None:
    timed = [case for case in CASES if case.cause and case.true_class != "leak"]
    assert [case.script for case in timed if case.factor is None or case.factor < 1.3] == []


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("a.py,inputs,input.x,no,2,,", "class or has_fix"),
        ("a.py,input,input.x,maybe,2,,", "class or has_fix"),
        ("a.py,input,,no,2,,", "a cause"),
        ("a.py,healthy,input.x,no,2,,", "a cause"),
        ("a.py,input,host.eager,no,2,,", "another class"),
    ],
)
def test_a_wrong_row_of_the_table_is_refused_with_its_line(
    tmp_path: Path, row: str, fault: str
) -> None:
    table = tmp_path / "truth.csv"
    table.write_text(",".join(COLUMNS) + "\n" + row + "\n")
    with pytest.raises(ValueError, match=rf"truth.csv:2: .*{fault}"):
        all_cases(table)


# Running


def case_of(**other: Any) -> Case:
    base = {"script": "a.py", "true_class": "input", "cause": "input.no_cache", "has_fix": True}
    return Case(**{**base, **other})


def test_the_arguments_of_a_script_follow_after_two_dashes() -> None:
    words = command(case_of(arguments=("--epochs", "4")), fix=True)
    assert words[-5:] == ["--quiet", "--fix", "--", "--epochs", "4"]


def told(**other: Any) -> str:
    primary = {"class": "input", "cause": "input.no_cache", "expected_gain": {"best": 2.5}}
    return json.dumps({"primary": primary, "findings": [primary, {"cause": "host.sync"}],
                       "step_s": 0.02, **other})  # fmt: skip


def test_of_an_answer_class_cause_gain_and_the_other_causes_are_kept() -> None:
    assert read(0, told(), "") == {
        "status": "ok", "class": "input", "cause": "input.no_cache", "expected_gain": 2.5,
        "others": ["host.sync"], "step_s": 0.02,
    }  # fmt: skip


def test_gains_of_fixes_that_were_kept_multiply() -> None:
    proofs = [
        {"cause": "input.no_cache", "kept": True, "ratio": 2.0, "agreement": {"agrees": True}},
        {"cause": "host.threads", "kept": True, "ratio": 1.5, "agreement": {"agrees": True}},
        {"cause": "launch.x", "kept": False, "ratio": 1.0, "agreement": None},
    ]
    row = read(0, told(proofs=proofs), "")
    assert (row["proven_gain"], row["agrees"], row["tried"]) == (3.0, True, 3)


@pytest.mark.parametrize("stdout", ["", "{}", "no JSON", '{"primary": null}'])
def test_no_answer_is_a_row_with_the_last_line_of_the_error(stdout: str) -> None:
    assert read(3, stdout, "stage\nerror: a child crashed\n\n") == {
        "status": "error", "reason": "exit 3: error: a child crashed",
    }  # fmt: skip


def fake(answers: dict[str, str]) -> Callable[..., dict[str, Any]]:
    def diagnosed(case: Case, *, fix: bool) -> dict[str, Any]:
        said = answers.get(case.script, case.true_class)
        base = {"script": case.script, "true_class": case.true_class, "fix": fix}
        return {**base, "status": "ok", "class": said, "cause": f"{said}.x", "seconds_s": 1.0}

    return diagnosed


def test_a_run_goes_on_where_it_was_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["iris_mlp", "bird_calls"]
    asked: list[str] = []
    answer = fake({})

    def diagnosed(case: Case, *, fix: bool) -> dict[str, Any]:
        asked.append(case.script)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return dict(answer(case, fix=fix))

    monkeypatch.setattr(run, "diagnosed", diagnosed)
    words = [*names, "--rows", str(tmp_path / "rows.jsonl")]
    assert run.main(words) == 130
    with (tmp_path / "rows.jsonl").open("a") as file:
        file.write('{"script": "cut sh')
    assert run.main(words) == 0
    assert asked == ["bird_calls.py", "iris_mlp.py", "iris_mlp.py"]


@pytest.mark.parametrize(
    ("answers", "code"),
    [({}, 0), ({"bird_calls.py": "host"}, 1), ({"flower_cnn.py": "input"}, 1)],
)
def test_a_wrong_answer_or_an_accused_healthy_script_ends_in_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: dict[str, str], code: int
) -> None:
    monkeypatch.setattr(run, "diagnosed", fake(answers))
    words = ["bird_calls", "flower_cnn", "--rows", str(tmp_path / "rows.jsonl")]
    assert run.main(words) == code


def test_a_sample_of_the_same_seed_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "diagnosed", fake({}))
    found = []
    for turn in range(2):
        rows = tmp_path / f"{turn}.jsonl"
        assert run.main(["--sample", "5", "--seed", "7", "--rows", str(rows)]) == 0
        found.append([json.loads(line)["script"] for line in rows.read_text().splitlines()])
    assert found[0] == found[1]
    assert len(set(found[0])) == 5


def test_a_name_that_is_no_script_ends_in_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main(["no_such_script"]) == 2
    assert "no_such_script.py" in capsys.readouterr().err


# The page


def row_of(script: str, true: str, said: str, **other: Any) -> dict[str, Any]:
    return {"script": script, "true_class": true, "class": said, "cause": f"{said}.x", **other}


ROWS = [
    row_of("bird_calls.py", "input", "input", proven_gain=2.0, agrees=True, fix=True),
    row_of("street_photos.py", "input", "host", fix=True),
    row_of("tide_model.py", "leak", "leak", fix=True),
    {"script": "flower_cnn.py", "true_class": "healthy", "status": "error", "reason": "exit 3"},
]


def test_the_confusion_table_counts_each_answer() -> None:
    assert confusion(ROWS).splitlines() == [
        "| true | input | host | leak | healthy | no answer | right |",
        "|---|--:|--:|--:|--:|--:|--:|",
        "| input | **1** | 1 |  |  |  | 1 of 2 |",
        "| leak |  |  | **1** |  |  | 1 of 1 |",
        "| healthy |  |  |  |  | 1 | 0 of 1 |",
    ]


def test_the_page_begins_with_the_share_that_is_right_and_tells_the_proven() -> None:
    text = page({"about": ABOUT, "rows": ROWS}, CASES)
    assert "right class for **2 (50%)**; of 1 healthy ones it accuses **1**" in text
    assert "can mend 2 of them" in text
    assert "**1 (50%)**" in text


def test_a_row_without_an_answer_is_wrong() -> None:
    assert not is_right(ROWS[3])
    assert is_right(row_of("x.py", HEALTHY, HEALTHY))


def test_the_clock_takes_the_second_half_of_the_steps() -> None:
    clock = Clock(limit_s=1e9)
    clock.marks = [(float(t), n, 1000 * n, 0.0) for n, t in enumerate((0, 10, 20, 22, 24, 26))]
    told = clock.told()
    assert (told["step_s"], told["bytes_per_step"], told["steps"]) == (2.0, 1000.0, 5)


def side_of(step_s: float, **other: Any) -> dict[str, Any]:
    return {"step_s": step_s, "best_s": step_s / 2, "cpu_s": step_s, "bytes_per_step": 2048.0,
            "steps": 60, **other}  # fmt: skip


def test_the_factor_is_that_of_median_steps_and_takes_in_a_larger_batch() -> None:
    told = {OWN: [side_of(0.2), side_of(0.4), side_of(0.3)], "batch": [side_of(0.2)] * 3}
    row = answer(told, {"batch": 2.0})
    assert row["factor"] == {"batch": 3.0}
    assert row["best_factor"] == {"batch": 2.0}
    assert row[OWN] == {
        "ms": 300.0, "best_ms": 100.0, "cpu_ms": 300.0, "kib_per_step": 2.0, "steps": 60,
    }  # fmt: skip


def test_a_side_that_failed_is_told() -> None:
    assert answer({OWN: [{"error": "ValueError: x"}]}, {}) == {"errors": {OWN: "ValueError: x"}}
