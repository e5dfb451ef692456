"""``tfdyno migrate`` shows, writes or refuses; ``--keep`` prints the commands of Horovod."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tfdyno.cli.main import main

SCRIPT = """import horovod.tensorflow.keras as hvd
import keras

hvd.init()
model = keras.Sequential([keras.layers.Dense(1)])
model.compile(hvd.DistributedOptimizer(keras.optimizers.SGD(0.1 * hvd.size())), "mse")
model.fit(x[hvd.rank() :: hvd.size()], y[hvd.rank() :: hvd.size()], batch_size=8)
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(SCRIPT)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["migrate", *words])
    out, err = capsys.readouterr()
    return code, out, err


def test_without_write_nothing_is_written(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    code, out, err = run(
        capsys, "train.py", "--nodes", "4", "--gpus-per-node", "8", "--", "--lr", "1"
    )
    assert (code, err) == (0, "")
    assert "\n  tfdyno launch train.py --nodes 4 --gpus-per-node 8 -- --lr 1\n" in out
    assert '+model.compile(keras.optimizers.SGD(0.1 * replicas), "mse")\n' in out
    assert [one.name for one in here.iterdir()] == ["train.py"]


def test_write_names_both_files_and_what_to_run(
    capsys: pytest.CaptureFixture[str], here: Path
) -> None:
    code, out, _ = run(capsys, "train.py", "--write", "train.py")
    assert code == 0
    assert out.splitlines()[1] == "  tfdyno launch train.py --nodes 2"
    assert (here / "train.horovod.py").read_text() == SCRIPT
    assert "model.fit(x, y, batch_size=8 * replicas)\n" in (here / "train.py").read_text()
    code, _, err = run(capsys, "train.py")
    assert (code, "does not use Horovod" in err) == (2, True)


def test_places_for_a_person_are_exit_code_1_and_nothing_is_written(
    capsys: pytest.CaptureFixture[str], here: Path
) -> None:
    (here / "train.py").write_text(f"{SCRIPT}hvd.barrier()\n")
    code, out, _ = run(capsys, "train.py", "--write", "new.py")
    assert code == 1
    assert out.startswith("1 place needs your hand")
    assert "new.py is not written.\n" in out
    assert "train.py:8: hvd.barrier()\n" in out
    assert not (here / "new.py").exists()


def test_json_has_all_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "train.py", "--json", "--write", "new.py")
    found = json.loads(out)
    assert code == 0
    assert found["commands"] == ["tfdyno launch new.py --nodes 2"]
    assert found["written"] == ["new.py"]
    assert Path("new.py").read_text() == found["after"]
    assert {one["line"] for one in found["changes"]} == {4, 6, 7}


def test_keep_prints_commands_for_the_plan(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "train.py", "--keep", "--nodes", "2", "--gpus-per-node", "4")
    assert code == 0
    assert "    horovodrun --gloo -np 8 -H node1:4,node2:4 python train.py\n" in out
    _, out, _ = run(capsys, "train.py", "--keep", "--json")
    assert json.loads(out)["support"][0]["tensorflow"] == "2.15.1"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("missing.py",), "there is no file missing.py"),
        (("missing.py", "--keep"), "there is no file missing.py"),
        (("train.py", "--keep", "--write", "new.py"), "--write cannot go with --keep"),
        (("train.py", "--nodes", "0"), "--nodes"),
    ],
)
def test_wrong_use_is_one_sentence(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], message: str
) -> None:
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1
