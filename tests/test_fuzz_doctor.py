"""scripts/fuzz_doctor: damaged logs and machine files are answered, none with a traceback."""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fuzz_doctor
from tfdyno.core.base.errors import UsageError
from tfdyno.jobs.doctor import doctor

ROOT = Path(__file__).parents[1]
SAMPLE = 300
LARGE = 20_000


def quiet(_number: int, _tally: fuzz_doctor.Tally) -> None:
    """The sample is too short for progress."""


def test_a_sample_ends_without_a_traceback() -> None:
    tally = fuzz_doctor.run(range(SAMPLE), 7, quiet)
    assert tally.failed == {}
    assert tally.answered + tally.refused == SAMPLE
    assert tally.answered > SAMPLE / 2
    assert len(tally.causes) > 20


@settings(max_examples=40)
@given(seed=st.integers(), number=st.integers(min_value=0))
def test_any_seed_makes_an_example_that_is_answered_or_refused(
    seed: int, number: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with contextlib.suppress(UsageError):  # a sentence is an answer
        found = fuzz_doctor.example(seed, number, tmp_path_factory.getbasetemp())
        assert found.exit_code in (0, 1, 4)


@pytest.mark.slow
def test_a_large_run_ends_without_a_traceback() -> None:
    assert fuzz_doctor.run(range(LARGE), 8, quiet).failed == {}


def test_an_example_can_be_made_again_from_its_number() -> None:
    first, again = (fuzz_doctor.damaged_log(random.Random("7:3")) for _ in range(2))
    assert first == again
    assert first != fuzz_doctor.damaged_log(random.Random("7:4"))


def test_examples_come_from_every_log_and_machine_of_the_tests() -> None:
    reports = len(list((ROOT / "tests" / "data" / "oom").iterdir()))
    cases = sum(len((fuzz_doctor.DATA / name).read_text("utf-8").splitlines())
                for name in fuzz_doctor.CASES)  # fmt: skip
    assert len(fuzz_doctor.logs()) == cases + reports > 300
    assert len(fuzz_doctor.environments()) > cases


def test_a_crash_is_counted_and_told_with_the_command_that_shows_it_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def crash(_log: object, **_rest: object) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr(doctor, "explain", crash)
    monkeypatch.setattr("sys.argv", ["fuzz_doctor", "--count", "12", "--seed", "5"])
    assert fuzz_doctor.main() == 1
    out = capsys.readouterr().out
    assert "shows again" in out
    assert "RuntimeError: a defect" in out


def test_the_command_says_how_many_were_answered() -> None:
    command = [str(ROOT / "scripts" / "fuzz_doctor"), "--count", "20", "--seed", "3"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert done.stdout.startswith("20 examples: ")
    assert "0 failed" in done.stdout


def test_a_machine_file_is_damaged_but_often_still_read() -> None:
    chance = random.Random(1)
    read = 0
    for _ in range(40):
        try:
            json.loads(fuzz_doctor.damaged_environment(chance))
        except ValueError:
            continue
        read += 1
    assert 0 < read < 40
