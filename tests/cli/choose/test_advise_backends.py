"""cli/advise --backends: which backend is best, from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tfdyno.cli.main import main

MODEL = f"{Path(__file__).parents[1].parent / 'data' / 'models' / 'small.py'}:convnet"


def test_one_command_answers_for_three_ways(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise", MODEL, "--gpu", "t4", "--backends", "--batch-size", "64", "-q"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "at batch 64 on T4:" in lines[0]
    assert {line.split("  ")[0] for line in lines} >= {
        "TensorFlow, graph", "TensorFlow, XLA", "Keras on JAX"
    }  # fmt: skip
    assert lines[-1] == f"  tfdyno bench {MODEL} --batch-size 64 --against backend=jax"


def test_json_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--gpu", "t4", "--backends", "--batch-size", "64", "--json", "-q"]
    assert main(["advise", MODEL, *words]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [step["backend"] for step in told["backends"][0]["steps"]] == [
        "tensorflow", "tensorflow", "jax"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "--backends needs cards: the answer differs from card to card; name them with --gpu"),
        (("--gpu", "t4", "--execution", "xla"), "--execution does not go with --backends"),
        (("--gpu", "t4", "--epochs", "3"), "--epochs does not go with --backends"),
        (("--gpu", "t4", "--no-spot"), "--spot does not go with --backends"),
        (("--gpu", "t4", "--backend", "jax"), "--backend does not go with --backends"),
        (("--gpu", "t4", "--route", "exact"), "--route exact does not go with --backends"),
        (("--gpu", "no-such-card"), "no-such-card"),
    ],
)
def test_wrong_use_is_one_sentence(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    assert main(["advise", MODEL, "--backends", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("tfdyno: ")
    assert err.count("\n") == 1
    assert said in err
