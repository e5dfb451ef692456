"""scripts/score_doctor: the doctor names the true cause of the real logs, and raises no alarm."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from tests.rules.cases import CASES

import score_doctor

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def score() -> score_doctor.Score:
    return score_doctor.score(CASES)


def test_the_first_finding_is_right_in_95_of_100_cases(score: score_doctor.Score) -> None:
    assert score.cases == len(CASES)
    assert score.top1 + len(score.misses) == score.cases
    assert score.top1_ratio >= 0.95, score.misses


def test_a_harmless_log_gives_no_alarm(score: score_doctor.Score) -> None:
    assert score.harmless > 10
    assert score.false_alarms == ()


def test_a_log_in_docker_dress_and_with_other_versions_scores_the_same() -> None:
    """No rule leans on how a case is written down."""
    dressed = [
        case | {"log": "".join(json.dumps({"log": f"{line}\n", "stream": "stderr"}) + "\n"
                               for line in case["log"].splitlines())}
        for case in CASES
    ]  # fmt: skip
    assert score_doctor.score(dressed).top1_ratio >= 0.95


def test_a_wrong_answer_lowers_the_score(tmp_path: Path) -> None:
    wrong = [case | {"expected_cause": "none.such", "also_accept": []} for case in CASES[:20]]
    path = tmp_path / "cases.jsonl"
    path.write_text("\n".join(map(json.dumps, wrong)))
    command = [str(ROOT / "scripts" / "score_doctor"), "--json", "--cases", str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    said = json.loads(done.stdout)
    assert (said["cases"], said["top1"], len(said["misses"])) == (20, 0, 20)
