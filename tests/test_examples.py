"""Every example runs through tfdyno as its README says, and its figures are those of its model."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tfdyno.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Iterator

EXAMPLES = Path(__file__).parents[1] / "examples"
BASH = re.compile(r"```bash\n(.*?)```", re.S)
NEEDS_TENSORFLOW = {"own_loop"}


def commands() -> Iterator[object]:
    for folder in sorted(path.parent for path in EXAMPLES.glob("*/train.py")):
        text = (folder / "README.md").read_text()
        for line in "".join(BASH.findall(text)).splitlines():
            marks = [pytest.mark.tf] if folder.name in NEEDS_TENSORFLOW else []
            yield pytest.param(folder, line, id=f"{folder.name}: {line}", marks=marks)


@pytest.mark.parametrize(("folder", "line"), list(commands()))
def test_a_command_of_the_readme_answers_and_leaves_nothing(
    folder: Path, line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted(folder.iterdir())
    monkeypatch.chdir(folder)
    program, command, *words = shlex.split(line)
    assert program == "tfdyno"
    assert main([command, "--route", "quick", "--quiet", "--json", *words]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    answer: dict[str, Any] = json.loads(out)
    found = answer["estimates"] if command == "estimate" else answer["ranking"]
    assert len(found) > 0
    assert sorted(path for path in folder.iterdir() if path.name != "__pycache__") == before


def flops(capsys: pytest.CaptureFixture[str], *words: str) -> float:
    found = ["estimate", "--gpu", "t4", "--route", "quick", "--quiet", "--json", *words]
    assert main(found) == 0
    estimate = json.loads(capsys.readouterr().out)["estimates"][0]
    return float(estimate["flops_per_step"]) / float(estimate["batch_size"])


def test_the_work_of_the_cnn_is_that_of_its_layers(capsys: pytest.CaptureFixture[str]) -> None:
    first = 2 * 32 * 32 * 27 * 32  # forward and weight gradient: pictures need no gradient
    second = 2 * 16 * 16 * 9 * 32 * 64
    dense = 2 * 8 * 8 * 64 * 10
    by_hand = 2 * first + 3 * (second + dense)
    # normalisation, pooling and flips come on top: some operations for each of 120,000 values
    assert by_hand < flops(capsys, str(EXAMPLES / "cnn" / "train.py")) < 1.12 * by_hand


def test_the_work_of_a_transformer_follows_the_length(capsys: pytest.CaptureFixture[str]) -> None:
    script = str(EXAMPLES / "token_transformer" / "train.py")

    def by_hand(length: int) -> float:
        weights = 2 * (4 * 128 * 128 + 2 * 128 * 512)  # two blocks: attention and two dense layers
        return 6.0 * length * weights + 3 * 2 * 2 * 2 * length * length * 128

    for length in (64, 256):
        found = flops(capsys, script, "--", "--length", str(length))
        assert found == pytest.approx(by_hand(length), rel=0.2)


@pytest.mark.tf
def test_the_work_of_an_own_loop_is_that_of_its_layers(capsys: pytest.CaptureFixture[str]) -> None:
    by_hand = 2 * (2 * 32 * 128) + 3 * (2 * 128 * 4)
    found = flops(capsys, str(EXAMPLES / "own_loop" / "train.py"))
    assert by_hand < found < 1.6 * by_hand + 20 * 4740 / 64  # Adam on 4,740 weights, shared by 64
