"""scripts/score_doctor: the doctor names the true cause of the real logs, and raises no alarm."""

from __future__ import annotations

import functools
import json
import random
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.rules.cases import CASES

import score_doctor

if TYPE_CHECKING:
    from collections.abc import Callable

    Change = Callable[[re.Match[str], random.Random], str]

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests" / "data"
REACHED = {"doctor_cases": 109, "doctor_more_cases": 204, "doctor_fresh_cases": 269}
"""Right first findings by file of cases; may only grow."""


@functools.cache
def cases(name: str) -> tuple[dict[str, Any], ...]:
    return tuple(score_doctor.read_cases(DATA / f"{name}.jsonl"))


@functools.cache
def score_of(name: str) -> score_doctor.Score:
    return score_doctor.score(list(cases(name)))


def test_the_first_finding_is_right_in_95_of_100_cases() -> None:
    score = score_of("doctor_cases")
    assert score.cases == len(CASES)
    assert score.top1 + len(score.misses) == score.cases
    assert score.top1_ratio >= 0.95, score.misses


@pytest.mark.parametrize("name", REACHED)
def test_the_score_never_falls_below_what_was_reached(name: str) -> None:
    assert score_of(name).top1 >= REACHED[name], score_of(name).misses


@pytest.mark.parametrize("name", REACHED)
def test_a_harmless_log_gives_no_alarm(name: str) -> None:
    assert score_of(name).harmless > 10
    assert score_of(name).false_alarms == ()


def test_no_case_is_counted_twice() -> None:
    sources = {name: {case["source"] for case in cases(name)} for name in REACHED}
    assert not sources["doctor_fresh_cases"] & (
        sources["doctor_cases"] | sources["doctor_more_cases"]
    )
    ids = [case["id"] for name in REACHED for case in cases(name)]
    assert len(ids) == len(set(ids))


def test_a_log_in_docker_dress_and_with_other_versions_scores_the_same() -> None:
    """No rule leans on how a case is written down."""
    dressed = [
        case | {"log": "".join(json.dumps({"log": f"{line}\n", "stream": "stderr"}) + "\n"
                               for line in case["log"].splitlines())}
        for case in CASES
    ]  # fmt: skip
    assert score_doctor.score(dressed).top1_ratio >= 0.95


def _digits(found: re.Match[str], draw: random.Random) -> str:
    return re.sub(r"\d", lambda _digit: draw.choice("123456789"), found[0])


def _word(_found: re.Match[str], draw: random.Random) -> str:
    return "".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(3, 9)))


MUTATIONS: dict[str, tuple[str, Change]] = {
    "patch of a version": (r"(?<=\d\.\d\.)\d+\b|(?<=\d\.\d\d\.)\d+\b", _digits),
    "user": (r"(?<=/home/)\w+|(?<=/Users/)\w+|(?<=[Uu]sers\\)\w+", _word),
    "environment": (r"(?<=/envs/)[\w.-]+|(?<=\\envs\\)[\w.-]+", _word),
    "line of the source": (r"(?<=\.cc:)\d+|(?<=\.h:)\d+|(?<=line )\d+", _digits),
    "time": (r"\b\d\d:\d\d:\d\d(?:\.\d+)?", _digits),
    "address": (r"(?<=0x)[0-9a-f]{4,}", _digits),
    "large number": (r"(?<![\w.])\d{5,}(?![\w.])", _digits),
    "host and process": (
        r"^[\w-]+:\d+:\d+(?= \[\d+\])",
        lambda found, draw: f"{_word(found, draw)}:123:456",
    ),
    "name in a graph": (r"(?<=\{\{node )[\w/]+", _word),
    "interpreter": (
        r"(?<=/lib/)python3\.\d+",
        lambda _found, draw: f"python3.{draw.randint(8, 12)}",
    ),
}
"""What differs from one person's log to the next and means nothing."""


def _changed(change: Change, draw: random.Random, found: re.Match[str]) -> str:
    return change(found, draw)


def mutated(log: str, seed: int) -> str:
    draw = random.Random(seed)
    for pattern, change in MUTATIONS.values():
        log = re.sub(pattern, functools.partial(_changed, change, draw), log, flags=re.M)
    return log


def test_what_differs_from_log_to_log_does_not_change_the_answer() -> None:
    changed = same = 0
    everything = [case for name in REACHED for case in cases(name)]
    for number, case in enumerate(everything):
        other = case | {"log": mutated(case["log"], number)}
        if other["log"] == case["log"]:
            continue
        changed += 1
        before, after = ((said.findings + said.ignored)[:1] for said in map(score_doctor.answer, (case, other)))  # fmt: skip # noqa: E501
        same += [one.cause for one in before] == [one.cause for one in after]
    assert changed > 200
    assert same / changed >= 0.97


def test_a_mutation_changes_each_of_its_kinds() -> None:
    line = (
        "2024-05-02 15:35:07.24: E /home/jo/envs/tf/lib/python3.9/a.cc:447] Loaded 8.9.4 at "
        "0xdeadbeef, 123456 bytes {{node model/dense}}"
    )
    after = mutated(line, 7)
    assert all(text not in after for text in ("/home/jo", ".cc:447", "8.9.4 ", "123456 ", "dense"))
    assert "8.9." in after


def test_a_wrong_answer_lowers_the_score(tmp_path: Path) -> None:
    wrong = [case | {"expected_cause": "none.such", "also_accept": []} for case in CASES[:20]]
    path = tmp_path / "cases.jsonl"
    path.write_text("\n".join(map(json.dumps, wrong)))
    command = [str(ROOT / "scripts" / "score_doctor"), "--json", "--cases", str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    said = json.loads(done.stdout)
    assert (said["cases"], said["top1"], len(said["misses"])) == (20, 0, 20)
