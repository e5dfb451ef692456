"""jobs/holders/guard: others are named before and after a child, by the real command line too."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.probe.fake_nvml import FakeNvml, NoNvml, nvml_is, on
from tests.probe.holders.test_processes import holding

from tfdyno.core.base.errors import TfdynoError, ToolError, UsageError
from tfdyno.core.base.lasting import Lasting
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.jobs.holders.guard import GROWTH, Asked, announced, growth, guarded, visible_to
from tfdyno.jobs.holders.room import REMEDY
from tfdyno.probe.holders import cards

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]
TOLD = (
    "GPU 0 has 41.5 GiB of 79.6 GiB of memory free: a process of another container or user "
    "(4194303, 37.3 GiB) holds the rest. So this run takes memory only as it needs it "
    "(TF_FORCE_GPU_ALLOW_GROWTH=true)."
)
BLAME = "meanwhile a process of another container or user (4194303, 37.3 GiB) held memory of GPU 0"
SCRIPT = """
import keras, numpy
class Full(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        {fails}
model = keras.Sequential([keras.layers.Dense(4), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(numpy.ones((64, 4)), numpy.ones((64, 1)), batch_size=16, callbacks=[Full()], verbose=0)
import os; print("growth", os.environ.get("TF_FORCE_GPU_ALLOW_GROWTH"))
"""
FAILS = "raise RuntimeError('Could not create cudnn handle: CUDNN_STATUS_NOT_INITIALIZED')"


def shared() -> FakeNvml:
    """A card on which a process of another container holds 40 GB of 80 GiB."""
    nvml = FakeNvml()
    nvml.processes = [(4194303, 40_000_000_000)]
    return nvml


def failed(error: TfdynoError, nvml: FakeNvml, **asked: object) -> tuple[str, list[str]]:
    """What a child's failure becomes: the sentence and its notes."""
    with (
        pytest.raises(type(error)) as told,
        nvml_is(nvml),
        guarded(Asked(**asked), tell=lambda _line: None),  # type: ignore[arg-type]
    ):
        raise error
    return str(told.value), getattr(told.value, "__notes__", [])


def test_who_else_is_there_is_told_in_one_line_that_lasts_and_growth_is_on() -> None:
    told: list[str] = []
    with nvml_is(shared()), guarded(Asked(recipe=Recipe()), tell=told.append) as room:
        assert room.variables == {"TF_FORCE_GPU_ALLOW_GROWTH": "true"}
        assert room.notes == (TOLD,)
    assert told == [TOLD]
    assert isinstance(told[0], Lasting)


def test_a_card_of_ones_own_and_a_machine_without_one_say_nothing() -> None:
    alone = FakeNvml()
    alone.unsupported = {"nvmlDeviceGetMemoryInfo"}
    for nvml in (alone, NoNvml()):
        room = on(nvml, announced, Asked(recipe=Recipe()), tell=pytest.fail)
        assert (room.notes, room.variables) == ((), {})


def test_that_nobody_can_tell_who_is_there_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(cards, "CARD_NODES", (str(tmp_path),))
    room = on(NoNvml(), announced, Asked(recipe=Recipe()), tell=lambda _line: None)
    assert room.notes == (
        "Who holds the memory of the GPU is not known: NVML does not answer "
        "(NVML Shared Library Not Found).",
    )


@pytest.mark.parametrize(
    "recipe",
    [Recipe(memory_growth=True), Recipe(memory_limit_bytes=1 << 30), Recipe(memory_fraction=0.5)],
)
def test_what_the_recipe_says_of_memory_stays(recipe: Recipe) -> None:
    assert growth(Asked(recipe=recipe), {}) == {}


def test_what_the_user_has_set_stays_and_jax_has_a_variable_of_its_own() -> None:
    plain, jax = Asked(recipe=Recipe()), Asked(recipe=Recipe(), on_jax=True)
    assert growth(plain, {"TF_FORCE_GPU_ALLOW_GROWTH": "false"}) == {}
    assert growth(jax, {}) == {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    assert growth(jax, {"XLA_PYTHON_CLIENT_MEM_FRACTION": ".5"}) == {}
    assert growth(Asked(), {}) == {}  # the child sees to it by itself


@pytest.mark.parametrize(
    "why",
    [
        "OOM when allocating tensor with shape[64,1024]",
        "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1073741824 bytes.",
        "CUDA_ERROR_OUT_OF_MEMORY: out of memory",
        "Could not create cudnn handle: CUDNN_STATUS_NOT_INITIALIZED",
    ],
)
def test_a_failure_for_memory_names_who_held_it_as_its_reason(why: str) -> None:
    told, notes = failed(UsageError("train.py failed", why=why), shared())
    assert told == f"train.py failed: {why.rstrip('.')}; {BLAME}; {REMEDY}."
    assert notes == []


def test_a_remedy_that_is_known_stays() -> None:
    error = ToolError("x", why="the GPU ran out of memory", remedy="give a smaller batch")
    assert failed(error, shared())[0].endswith(f"{BLAME}; give a smaller batch.")


def test_another_failure_on_a_card_has_it_as_a_note_and_a_mistake_of_code_has_none() -> None:
    told, notes = failed(ToolError("train.py failed", why="the process crashed"), shared())
    assert (told, notes) == (
        "train.py failed: the process crashed.",
        [f"{BLAME.capitalize()[:1]}{BLAME[1:]}."],
    )
    assert failed(UsageError("train.py failed", why="line 3: ValueError: mine"), shared())[1] == []


def test_who_came_later_is_named_too() -> None:
    nvml, asked = FakeNvml(), Asked(recipe=Recipe())
    nvml.unsupported = {"nvmlDeviceGetMemoryInfo"}
    room = on(nvml, announced, asked, tell=pytest.fail)
    nvml.processes = [(4194303, 40_000_000_000)]
    error = ToolError("x", why="out of memory while trying to allocate 1 bytes")
    on(nvml, room.blame, error)
    assert "(4194303, 37.3 GiB) held memory of GPU 0" in str(error)


def test_who_has_gone_since_is_not_forgotten() -> None:
    nvml = shared()
    room = on(nvml, announced, Asked(), tell=lambda _line: None)
    nvml.unsupported, nvml.processes = {"nvmlDeviceGetMemoryInfo"}, []
    error = ToolError("x", why="out of memory while trying to allocate 1 bytes")
    on(nvml, room.blame, error)
    assert "(4194303, 37.3 GiB) held memory of GPU 0" in str(error)


def test_without_others_a_failure_stays_as_it_is() -> None:
    error = ToolError("x", why="out of memory while trying to allocate 1 bytes")
    assert failed(error, NoNvml()) == (str(error), [])


def test_the_cards_of_a_child_are_its_own_or_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert visible_to({}) == "1"
    assert visible_to({"CUDA_VISIBLE_DEVICES": "0"}) == "0"


@contextmanager
def planted(nvidia: Path, folder: Path, held: str) -> Iterator[dict[str, str]]:
    """Variables of a machine whose NVML says that a real process of Python holds its H100.

    Args:
        nvidia: Folder of the libraries that answer as NVIDIA's do.
        folder: Where files go.
        held: Bytes in use and the compute mode.
    """
    with holding(folder, "dev/nvidia0") as pid:
        (folder / "held").write_text(f"{held}\n{pid} 50000000000\n")
        yield {
            **os.environ,
            "PYTHONPATH": str(ROOT / "src"),
            "LD_LIBRARY_PATH": str(nvidia),
            "FAKE_NVML_HELD": str(folder / "held"),
            "TFDYNO_DATA": str(folder / "data"),
        }


def tfdyno(
    *words: str, environment: dict[str, str], folder: Path
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tfdyno", *words]
    return subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, check=False
    )


def test_a_full_card_ends_every_command_before_its_child(tmp_path: Path, nvidia: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT.format(fails="pass"))
    with planted(nvidia, tmp_path, "84000000000 0") as environment:
        for command in ("train", "bench", "diagnose", "tune"):
            done = tfdyno(command, "train.py", environment=environment, folder=tmp_path)
            assert done.returncode == ToolError.exit_code
            assert "GPU 0 has 1.42 GiB of 79.6 GiB of memory free: python" in done.stderr
            assert "other.py (" in done.stderr
            assert "--wait-free" in done.stderr


def test_diagnose_on_a_shared_card_names_who_holds_it_before_and_after(
    tmp_path: Path, nvidia: Path
) -> None:
    (tmp_path / "train.py").write_text(SCRIPT.format(fails=FAILS))
    with planted(nvidia, tmp_path, "60000000000 0") as environment:
        done = tfdyno("diagnose", "train.py", environment=environment, folder=tmp_path)
    before, after = done.stderr.strip().splitlines()[0], done.stderr.strip().splitlines()[-1]
    assert "GPU 0 has 23.8 GiB of 79.6 GiB of memory free: python" in before
    assert "TF_FORCE_GPU_ALLOW_GROWTH=true" in before
    assert "CUDNN_STATUS_NOT_INITIALIZED" in after
    assert "meanwhile python" in after
    assert "held memory of GPU 0" in after


def test_train_waits_until_the_other_process_ends_and_then_has_the_card_alone(
    tmp_path: Path, nvidia: Path
) -> None:
    (tmp_path / "train.py").write_text(SCRIPT.format(fails="pass"))
    with planted(nvidia, tmp_path, "60000000000 0") as environment:
        command = [sys.executable, "-m", "tfdyno", "train", "train.py", "--wait-free", "-v"]
        child = subprocess.Popen(
            command, env=environment, cwd=tmp_path, stderr=-1, stdout=-1, text=True
        )
        assert child.stderr
        line = next(one for one in child.stderr if "waiting" in one)
        assert "other.py (" in line
        time.sleep(0.1)
        assert child.poll() is None
        (tmp_path / "held").write_text("1000000 0\n")
        _, told = child.communicate()
    assert child.returncode == 0, told
    assert "growth None" in told


@pytest.mark.gpu
def test_on_a_real_card_a_process_that_grows_is_seen_with_what_it_holds(tmp_path: Path) -> None:
    """TensorFlow holds the card with memory growth: it is seen, and takes no more than it needs."""
    (tmp_path / "holds.py").write_text(
        "import sys, tensorflow as tf\n"
        "x = tf.ones((64, 1024, 1024)); print(x.device, flush=True); sys.stdin.read()\n"
    )
    before = {one.place: one for one in cards.look().cards}
    command = [sys.executable, str(tmp_path / "holds.py")]
    environment = {**os.environ, **dict([GROWTH])}
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True, env=environment) as child:
        assert child.stdout
        assert child.stdin
        assert "GPU" in child.stdout.readline()
        card = cards.look().cards[0]
        child.stdin.close()
    assert card.is_shared
    assert card.holders
    shown = next((one for one in card.holders if one.pid == child.pid), card.holders[0])
    was = before[card.place]
    if not was.holders:  # else others take and give back meanwhile
        assert was.free_bytes is not None
        assert card.free_bytes is not None
        assert (256 << 20) <= was.free_bytes - card.free_bytes < 0.2 * card.total_bytes
    assert shown.name in ("", f"{Path(sys.executable).name} holds.py")  # hidden in a container
