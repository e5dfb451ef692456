"""A training that is ended at any moment goes on as if it had not been, to the last bit."""

from __future__ import annotations

import contextlib
import json
import random
import re
import signal
import subprocess
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from tests.jobs.disks import mounted
from tests.jobs.kills import (
    EPOCHS,
    STEPS,
    Moment,
    Training,
    finished,
    is_resumable,
    learned,
    random_moment,
    random_moments,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.tf
ALL = ("arrays", "pipeline", "python")
SEED = 20261122
"""Of the moments; other numbers are other kills."""
KEEPS_ALL = ("--keep", "1000")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Training]:
    """Runs that nothing disturbed, each made once."""
    made: dict[tuple[str, ...], Training] = {}

    def run(kinds: tuple[str, ...], *options: str) -> Training:
        if (*kinds, *options) not in made:
            folder = tmp_path_factory.mktemp("whole")
            training = Training(folder=folder, kinds=kinds, options=options)
            made[*kinds, *options] = finished(training)
        return made[*kinds, *options]

    return run


def killed(training: Training, moment: Moment) -> None:
    training.start()
    training.wait_for(moment)
    training.kill()
    assert training.left() == []


def test_three_kills_change_nothing(tmp_path: Path, whole: Callable[..., Training]) -> None:
    """One in each of the three trainings of a script: while writing, in validation, at a step."""
    chance = random.Random(SEED)
    training = Training(folder=tmp_path / "killed", kinds=ALL)
    for number, kind in enumerate(ALL):
        killed(training, random_moment(kind, chance.randrange(6), (0, 1, 3)[number], chance))
    assert learned(finished(training)) == learned(whole(ALL))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ALL)
def test_seven_kills_change_nothing(
    kind: str, tmp_path: Path, whole: Callable[..., Training]
) -> None:
    """Before the first step, and one in each epoch: 21 over the three."""
    training = Training(folder=tmp_path / "killed", kinds=(kind,))
    for moment in random_moments(kind, random.Random(SEED + len(kind))):
        killed(training, moment)
    assert learned(finished(training)) == learned(whole((kind,)))


@pytest.mark.slow
def test_the_command_alone_killed_leaves_no_child(
    tmp_path: Path, whole: Callable[..., Training]
) -> None:
    training = Training(folder=tmp_path / "killed", kinds=("arrays",))
    training.start()
    training.wait_for(Moment(line="arrays at 2 7\n"))
    assert training.process
    training.process.kill()
    training.process.communicate()
    assert training.left() == []
    assert learned(finished(training)) == learned(whole(("arrays",)))


@pytest.mark.slow
def test_the_child_alone_killed_is_told(tmp_path: Path, whole: Callable[..., Training]) -> None:
    training = Training(folder=tmp_path / "killed", kinds=("arrays",))
    training.start()
    training.wait_for(Moment(line="arrays at 3 2\n"))
    training.kill(only="tfdyno.runtime.train.child")
    code, _ = training.ended()
    assert code == 3
    assert "training" in training.stderr()
    assert "it was killed" in training.stderr()
    assert is_resumable(training.stderr())
    assert training.left() == []
    assert learned(finished(training)) == learned(whole(("arrays",)))


def test_signals_end_it_with_a_checkpoint_and_how_to_go_on(
    tmp_path: Path, whole: Callable[..., Training]
) -> None:
    training = Training(folder=tmp_path / "signals", kinds=("arrays",))
    moments = (Moment(line="arrays at 1 9\n"), Moment(line="arrays validation 3\n"))
    for number, moment in zip((signal.SIGINT, signal.SIGTERM), moments, strict=True):
        training.start()
        training.wait_for(moment)
        assert training.process
        training.process.send_signal(number)
        code, out = training.ended()
        assert code == 0, training.stderr()
        assert "SIGTERM or Ctrl-C" in out
        assert is_resumable(out)
        assert training.left() == []
        record = json.loads((training.folder / "run/run.json").read_text())
        assert (record["status"], record["outcome"]["stopped"]) == ("stopped", "SIGTERM")
    check_first(learned(finished(training)), learned(whole(ALL)))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for a few checkpoints."""
    with mounted(tmp_path / "disk", "24m") as folder:
        yield folder


def test_a_full_disk_is_told_and_room_is_enough_to_go_on(
    small_disk: Path, whole: Callable[..., Training], tmp_path: Path
) -> None:
    training = Training(
        folder=tmp_path / "work",
        kinds=("arrays",),
        options=KEEPS_ALL,
        output=str(small_disk / "run"),
    )
    training.start(pace_s=0)
    code, _ = training.ended()
    text = training.stderr()
    assert code == 3, text
    assert re.search(
        r"cannot write the checkpoint of step \d+ to .*: No space left on device, [\d,]+ bytes "
        r"needed, [\d,]+ free; free some space, then continue with --resume\.",
        text,
    ), text
    assert "Traceback" not in text
    assert is_resumable(text)
    assert training.left() == []
    assert not list((small_disk / "run").rglob("*.part"))
    kept = sorted((small_disk / "run/checkpoints").glob("step-*.json"))
    assert len(kept) > 2
    subprocess.run(["mount", "-o", "remount,size=400m", str(small_disk)], check=True)
    check_first(learned(finished(training)), learned(whole(ALL)))
    assert all(path.exists() for path in kept)


def test_a_worker_that_is_killed_ends_all_and_is_named(tmp_path: Path) -> None:
    training = two_workers(tmp_path / "workers")
    training.start(pace_s=0.05)
    training.wait_for(Moment(line="arrays at 1 3\n"))
    worker = workers(training)[1]
    worker.kill()
    code, _ = training.ended()
    text = training.stderr()
    assert code == 3, text
    assert "worker 1" in text
    assert "it was killed" in text
    assert "Traceback" not in text
    assert is_resumable(text)
    assert training.left() == []


@pytest.mark.slow
def test_kills_of_several_workers_change_nothing(
    tmp_path: Path, whole: Callable[..., Training]
) -> None:
    training = two_workers(tmp_path / "killed")
    chance = random.Random(SEED)
    for epoch, number in ((0, 0), (1, 3), (2, 1), (4, 2)):
        killed(training, random_moment("arrays", epoch, number, chance))
    assert learned(finished(training)) == learned(whole(("arrays",), *training.options))


@pytest.mark.slow
def test_kills_under_a_recipe_change_nothing(
    tmp_path: Path, whole: Callable[..., Training]
) -> None:
    """Two replicas, float16 with its loss scale, accumulation, average: all is kept."""
    options = tuple(
        word
        for setting in (
            "strategy=mirrored",
            "precision=mixed_float16",
            "accumulation=4",
            "ema=0.9",
        )
        for word in ("--set", setting)
    )
    training = Training(folder=tmp_path / "killed", kinds=("pipeline",), options=options)
    chance = random.Random(SEED)
    for epoch, number in ((0, 3), (1, 0), (2, 1), (4, 2)):
        killed(training, random_moment("pipeline", epoch, number, chance))
    assert learned(finished(training)) == learned(whole(("pipeline",), *options))


JAX = ("--backend", "jax")


def test_on_jax_a_kill_and_ctrl_c_change_nothing(
    tmp_path: Path, whole: Callable[..., Training]
) -> None:
    """In the middle of an epoch, then in validation; the run's folder knows the backend."""
    training = Training(folder=tmp_path / "killed", kinds=("arrays",), options=JAX)
    killed(training, Moment(line="arrays at 1 9\n"))
    training.start()
    training.wait_for(Moment(line="arrays validation 3\n"))
    assert training.process
    training.process.send_signal(signal.SIGINT)
    code, out = training.ended()
    assert code == 0, training.stderr()
    assert "SIGTERM or Ctrl-C" in out
    assert is_resumable(out)
    assert training.left() == []
    assert learned(finished(training)) == learned(whole(("arrays",), *JAX))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pipeline", "python"])
def test_on_jax_kills_change_nothing_for_other_data(
    kind: str, tmp_path: Path, whole: Callable[..., Training]
) -> None:
    training = Training(folder=tmp_path / "killed", kinds=(kind,), options=JAX)
    chance = random.Random(SEED)
    for epoch, number in ((0, 3), (2, 1), (4, 2)):
        killed(training, random_moment(kind, epoch, number, chance))
    assert learned(finished(training)) == learned(whole((kind,), *JAX))


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        ("precision=mixed_float16", "clip_norm=0.5", "accumulation=4"),
        ("precision=mixed_float16", "loss_scale=1024", "ema=0.9", "ema_overwrite=2"),
        ("precision=float8", "remat=blocks"),
        ("steps_per_execution=4", "deterministic=true", "input.prefetch=3"),
    ],
    ids=["accumulation", "average", "float8", "input"],
)
def test_on_jax_kills_under_a_recipe_change_nothing(
    settings: tuple[str, ...], tmp_path: Path, whole: Callable[..., Training]
) -> None:
    """Together every setting that JAX takes; each kill falls within an epoch."""
    options = (*JAX, *(word for setting in settings for word in ("--set", setting)))
    training = Training(folder=tmp_path / "killed", kinds=("pipeline",), options=options)
    chance = random.Random(SEED)
    for epoch, number in ((1, 3), (4, 2)):
        killed(training, random_moment("pipeline", epoch, number, chance))
    assert learned(finished(training)) == learned(whole(("pipeline",), *options))


def check_first(found: dict[str, Any], expected: dict[str, Any]) -> None:
    """The arrays alone are learned as by a script that trains on other data after them."""
    assert found["script"]["arrays"] == expected["script"]["arrays"]
    assert (found["epochs"], found["steps"], found["updates"]) == (EPOCHS, *[EPOCHS * STEPS] * 2)
    assert found["weights"]
    assert found["weights"].items() <= expected["weights"].items()


def two_workers(folder: Path) -> Training:
    options = ("--set", "strategy=multiworker", "--set", "devices=2")
    return Training(folder=folder, kinds=("arrays",), options=options)


def workers(training: Training) -> dict[int, psutil.Process]:
    """The processes of the workers by number."""
    found = {}
    for one in training.tree():
        with contextlib.suppress(psutil.Error):
            config = one.environ().get("TF_CONFIG")
            if config and "tfdyno.runtime.train.child" in " ".join(one.cmdline()):
                found[int(json.loads(config)["task"]["index"])] = one
    return found


FAILS = """
import keras
import numpy as np

class Files(keras.utils.PyDataset):
    def __len__(self):
        return 20

    def __getitem__(self, index):
        if index == 13:
            raise OSError("picture 13 is broken")  # here
        return np.ones((4, 8), "float32"), np.ones((4, 1), "float32")

model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(Files(), epochs=2, shuffle=False)
"""


def test_data_that_raise_are_told_with_their_line(tmp_path: Path) -> None:
    script = tmp_path / "files.py"
    script.write_text(FAILS)
    training = Training(folder=tmp_path / "work", kinds=(), script=script)
    training.start()
    code, _ = training.ended()
    text = training.stderr()
    line = next(n for n, text in enumerate(FAILS.splitlines(), 1) if "# here" in text)
    assert code == 2, text
    sentence = text.splitlines()[-1]
    assert re.search(
        rf"files\.py failed: line {line}: OSError: picture 13 is broken\.", sentence
    ), text
    assert is_resumable(sentence)
    assert training.left() == []
    assert not list((tmp_path / "work/run").rglob("*.part"))
