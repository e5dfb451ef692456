"""``doctor --cluster`` from the command line: what goes with it, and what it prints."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tfdyno.cli.main import main
from tfdyno.core.cluster.cluster import TOLD_BY


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in TOLD_BY:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--nodes", "2"], "--nodes has no use alone; it goes with --cluster"),
        (["--link", "eth-10g"], "--link has no use alone"),
        (["--cluster", "--explain", "x.log"], "give --explain or --cluster, not both"),
        (["--cluster", "--fix-plan"], "--fix-plan has no use with --cluster"),
        (["--cluster", "--lang", "zh"], "--lang has no use with --cluster"),
        (["--cluster"], "nothing tells of other nodes; let the engine start it on each node"),
        (["--cluster", "--nodes", "2", "--rank", "0"], "--rank says that this is rank 0, and"),
        (["--cluster", "--nodes", "0"], "--nodes 0 is not possible"),
        (["--cluster", "--nodes", "2", "--link", "eth-11g"], "there is no link 'eth-11g'"),
        (["--cluster", "--nodes", "2", "--wait", "soon"], "--wait soon cannot be read"),
    ],
)
def test_wrong_use_is_one_sentence(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", *words]) == 2
    assert said in capsys.readouterr().err


def test_this_machine_answers_for_two_nodes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["doctor", "--cluster", "--nodes", "2", "--quick", "--json", "--output"]
    assert main([*words, str(tmp_path)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["can_train"]
    assert found["facts"]["size"] == 2


def test_the_how_to_names_every_cause() -> None:
    root = Path(__file__).parents[3]
    page = (root / "docs" / "how-to" / "check-a-cluster.md").read_text()
    rules = root / "src" / "tfdyno" / "rules" / "cluster"
    source = "".join(path.read_text() for path in rules.glob("*.py"))
    causes = set(re.findall(r'yield draft\(\s*"(\w+)"', source))
    assert len(causes) > 25
    assert {cause for cause in causes if f"`cluster.{cause}`" not in page} == set()
