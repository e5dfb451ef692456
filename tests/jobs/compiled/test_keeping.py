"""Compile once: real trainings whose second start takes what the first compiled."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.jobs.disks import mounted
from tests.runtime.forks import NO_GPU

from tfdyno.core.base.errors import ToolError
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.train.training import RunSettings
from tfdyno.jobs.child.worker import silent
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.jobs.compiled import keeping
from tfdyno.jobs.compiled.keeping import Compiling, Kept, with_programs
from tfdyno.jobs.train.train import TrainRequest, train

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tfdyno.core.base.untyped import Value

SCRIPT = """
import keras, numpy as np
x = np.random.default_rng(0).normal(size=(64, 8)).astype("float32")
m = keras.Sequential([keras.Input((8,)), keras.layers.Dense(16, "gelu"), keras.layers.Dense(1)])
m.compile("adam", "mse")
m.fit(x, x.sum(1), epochs=2, batch_size=32)
"""
BEGIN, STEPS = '{"event": "begin"}', '{"event": "steps"}'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, value in NO_GPU.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TFDYNO_CACHE", str(tmp_path / "cache"))
    (tmp_path / "train.py").write_text(SCRIPT)
    return tmp_path


def trained(lines: list[str] | None = None, **settings: Any) -> Value:
    request = TrainRequest(
        workload=parse_reference("train.py"),
        recipe=Recipe(execution="xla", seed=1, **settings),
        settings=RunSettings(save_model=False),
    )
    return train(request, progress=silent if lines is None else lines.append).outcome


def kept_files(cache: Path) -> list[Path]:
    return sorted(cache.glob("compiled/*/programs/*"))


# With TensorFlow


@pytest.mark.tf
def test_a_second_training_takes_its_programs_from_the_first_and_learns_the_same(
    folder: Path,
) -> None:
    first_lines, second_lines = list[str](), list[str]()
    first = trained(first_lines)
    programs = kept_files(folder / "cache")
    assert programs
    assert "compiling the step of train.py (for the first time here)" in first_lines
    changed = [one.stat().st_mtime_ns for one in programs]
    second = trained(second_lines)
    assert any("its programs are kept, nothing to compile" in one for one in second_lines)
    assert kept_files(folder / "cache") == programs
    assert [one.stat().st_mtime_ns for one in programs] == changed
    assert second.history == first.history
    assert not list(folder.glob("cache/compiled/*/.view-*"))


@pytest.mark.tf
def test_a_program_that_was_cut_off_is_compiled_again_and_no_epoch_is_lost(folder: Path) -> None:
    first = trained()
    for one in kept_files(folder / "cache"):
        os.truncate(one, one.stat().st_size // 2)
    second = trained()
    assert second.history == first.history
    assert second.steps == first.steps == 4


@pytest.mark.tf
def test_a_disk_that_fills_up_costs_the_program_and_not_the_training(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "ROOM_BYTES", 0)  # it looked as if there were room
    with mounted(folder / "small", "32k") as small:
        monkeypatch.setenv("TFDYNO_CACHE", str(small))
        lines = list[str]()
        outcome = trained(lines)
        assert outcome.steps == 4
        assert "a compiled program could not be kept: starting again without" in lines
        assert any("Compiled programs are not kept: " in note for note in outcome.notes)


@pytest.mark.tf
def test_two_trainings_that_fill_it_at_once_both_end_well(folder: Path) -> None:
    words = [sys.executable, "-m", "tfdyno", "train", "train.py", "--set", "execution=xla",
             "--set", "seed=1", "--json", "--quiet", "--output"]  # fmt: skip
    both = [
        subprocess.Popen([*words, f"run-{number}"], stdout=subprocess.PIPE, text=True)
        for number in range(2)
    ]
    told = [json.loads(one.communicate(timeout=300)[0]) for one in both]
    assert [one.returncode for one in both] == [0, 0]
    assert told[0]["history"] == told[1]["history"]
    names = [one.name.partition("@")[0] for one in kept_files(folder / "cache")]
    assert names
    third = trained()
    assert third.history["loss"] == pytest.approx(told[0]["history"]["loss"], rel=0, abs=0)


# What a compiler does with the folder, done by hand


def asked(**variables: str) -> Compiling:
    return Compiling(
        workload=parse_reference("train.py"), recipe=Recipe(), framework="tensorflow",
        python=sys.executable, variables=variables, doing="train",
    )  # fmt: skip


def place_of(variables: Mapping[str, str]) -> Path:
    (flag,) = shlex.split(variables["TF_XLA_FLAGS"])
    return Path(flag.partition("=")[2])


def compiles(
    *names: str, fails: str = ""
) -> Callable[[Mapping[str, str], Callable[[str], None]], dict[str, list[str]]]:
    """Stands for a child: takes the programs that are there and writes the others."""

    def run(variables: Mapping[str, str], progress: Callable[[str], None]) -> dict[str, list[str]]:
        done: dict[str, list[str]] = {"taken": [], "made": []}
        progress(BEGIN)
        for name in names if variables else ():
            file = place_of(variables) / name
            done["taken" if file.exists() else "made"].append(name)
            file.read_text() if file.exists() else file.write_text(name)
        if fails and variables:
            (place_of(variables) / fails).touch()
            raise ToolError("the child failed")
        progress(STEPS)
        return done

    return run


def test_what_is_taken_and_what_is_made_is_told_apart() -> None:
    assert with_programs(asked(), compiles("a", "b"), silent)[1] == Kept()
    found, kept = with_programs(asked(), compiles("a", "b"), silent)
    assert found == {"taken": ["a", "b"], "made": []}
    assert kept.is_loaded
    assert with_programs(asked(), compiles("c"), silent)[1].is_loaded is False


def test_other_flags_have_other_programs() -> None:
    with_programs(asked(), compiles("a"), silent)
    other = asked(XLA_FLAGS="--xla_cpu_enable_fast_math=true")
    assert with_programs(other, compiles("a"), silent)[0]["made"] == ["a"]


def test_a_program_is_kept_at_the_end_of_the_first_step_though_the_child_is_killed_later(
    folder: Path,
) -> None:
    def run(variables: Mapping[str, str], progress: Callable[[str], None]) -> None:
        progress(BEGIN)
        (place_of(variables) / "a").write_text("a")
        progress(STEPS)
        assert kept_files(folder / "cache")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        with_programs(asked(), run, silent)
    assert with_programs(asked(), compiles("a"), silent)[0]["taken"] == ["a"]


def test_a_program_with_which_a_child_fails_in_its_first_step_is_compiled_anew() -> None:
    with_programs(asked(), compiles("a"), silent)
    with pytest.raises(ToolError, match="the child failed"):
        with_programs(asked(), compiles("a", fails="x"), silent)
    assert with_programs(asked(), compiles("a"), silent)[0]["made"] == ["a"]


def test_a_child_that_could_not_write_runs_again_without() -> None:
    lines = list[str]()
    found, kept = with_programs(asked(), compiles("a", fails="a.tmp"), lines.append)
    assert found == {"taken": [], "made": []}
    assert lines.count(BEGIN) == 2
    assert "no space is left" in kept.notes[0]


def test_with_little_room_programs_are_only_read_and_it_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(keeping, "ROOM_BYTES", 1 << 60)
    heard: list[Mapping[str, str]] = []
    _, kept = with_programs(asked(), lambda variables, _heard: heard.append(variables), print)
    assert "tf_xla_persistent_cache_read_only=true" in heard[0]["TF_XLA_FLAGS"]
    assert "/cache/compiled has less than " in kept.notes[0]


def test_a_read_only_disk_is_said_and_the_child_runs(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with mounted(folder / "disk", "1m") as disk:
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        monkeypatch.setenv("TFDYNO_CACHE", str(disk / "cache"))
        found, kept = with_programs(asked(), compiles("a"), silent)
        assert found == {"taken": [], "made": []}
        assert kept.notes == (
            f"Compiled programs are not kept: {disk}/cache/compiled: Read-only file system",
        )


def test_a_folder_that_others_can_write_is_refused_and_said(folder: Path) -> None:
    (folder / "cache").mkdir()
    (folder / "cache").chmod(0o777)
    found, kept = with_programs(asked(), compiles("a"), silent)
    assert found == {"taken": [], "made": []}
    assert f"others can write to {folder}/cache (mode 777)" in kept.notes[0]
    assert not (folder / "cache" / "compiled").exists()


def test_a_cache_of_the_users_own_is_left_alone(folder: Path) -> None:
    own = asked(TF_XLA_FLAGS="--tf_xla_persistent_cache_directory=/mine")
    heard: list[Mapping[str, str]] = []
    with_programs(own, lambda variables, _heard: heard.append(variables), silent)
    assert heard == [{}]
    assert not (folder / "cache").exists()


def test_turned_off_nothing_is_kept_and_nothing_is_said(folder: Path) -> None:
    _, kept = with_programs(asked(TFDYNO_COMPILE_CACHE="off"), compiles("a"), silent)
    assert kept == Kept()
    assert not (folder / "cache").exists()


def test_children_that_run_at_once_do_not_see_each_others_reads() -> None:
    with_programs(asked(), compiles("a"), silent)
    inside, leave = threading.Event(), threading.Event()
    answers: list[Kept] = []

    def waits(variables: Mapping[str, str], progress: Callable[[str], None]) -> None:
        progress(BEGIN)
        inside.set()
        leave.wait(30)
        progress(STEPS)

    other = threading.Thread(
        target=lambda: answers.append(with_programs(asked(), waits, silent)[1])
    )
    other.start()
    inside.wait(30)
    assert with_programs(asked(), compiles("a"), silent)[1].is_loaded
    leave.set()
    other.join(30)
    assert [one.is_loaded for one in answers] == [False]
