"""``tfdyno serve --render``: which options count, and what is told."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tfdyno.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def model(tmp_path: Path) -> str:
    folder = tmp_path / "cnn"
    folder.mkdir()
    (folder / "saved_model.pb").write_bytes(b"graph")
    return str(folder)


def test_options_of_serving_go_into_the_files_in_their_units(
    tmp_path: Path, model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    output = str(tmp_path / "out")
    words = ["serve", model, "--render", "tfserving", "--output", output, "--json",
             "--max-batch", "32", "--max-delay-ms", "4.5", "--deadline-ms", "250", "--port", "9000",
             "--memory", "8GiB", "--cpus", "4", "--name", "shop"]  # fmt: skip
    assert main(words) == 0
    told = json.loads(capsys.readouterr().out)
    plan = told["plan"]
    assert (plan["max_batch_size"], plan["max_delay_s"], plan["deadline_s"]) == (32, 0.0045, 0.25)
    assert (plan["port"], plan["memory_bytes"], plan["cpus"]) == (9000, 8 << 30, 4)
    assert (told["model"], told["start"]) == ("models/shop/1", "docker compose up")
    assert plan["max_queue"] == 1024  # the plan's own where nothing was said


def test_the_files_are_listed_and_how_to_start_is_told(
    tmp_path: Path, model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    output = str(tmp_path / "out")
    assert main(["serve", model, "--render", "triton", "--output", output]) == 0
    out, err = capsys.readouterr()
    assert f"{output}/compose.yaml" in out.splitlines()
    assert "Triton 25.02 is the last release" in err
    assert f"in {output}: docker compose up" in err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--render", "tfserving"], "--render writes a folder; name it with --output"),
        (["--output", "x"], "--output goes with --render"),
        (["--replicas", "3"], "--replicas goes with --render"),
        (["--render", "tritn", "--output", "x"], "did you mean triton?"),
        (["--render", "triton", "--output", "x", "--grpc-port", "1"], "--grpc-port is nothing"),
        (["--render", "triton", "--output", "x", "--token", "t"], "--token is nothing"),
        (["--render", "kubernetes", "--output", "x", "--replicas", "a"], "write 3, or 2:10"),
        (["--render", "triton", "--output", "x", "--memory", "a"], "is not an amount of memory"),
    ],
)
def test_a_wrong_word_is_one_sentence_and_nothing_is_written(
    tmp_path: Path,
    model: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    told: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["serve", model, *words]) == 2
    err = capsys.readouterr().err
    assert told in err
    assert err.count("\n") == 1
    assert [one.name for one in tmp_path.iterdir()] == ["cnn"]


VLLM = ["serve", "keras_hub:gpt2_base_en", "--render", "vllm", "--card", "l4", "--prompt", "500",
        "--new-tokens", "100"]  # fmt: skip


def test_a_server_of_text_gets_its_sizes_and_says_how_they_came(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = str(tmp_path / "out")
    assert main([*VLLM, "--output", output, "--max-batch", "8", "--port", "9000"]) == 0
    out, err = capsys.readouterr()
    assert out == f"{output}/compose.yaml\n"
    assert "--max-num-seqs 8: so many requests of 600 tokens fit" in err
    assert "Not measured: no vLLM was started" in err
    assert "127.0.0.1:9000:8000" in (tmp_path / "out" / "compose.yaml").read_text()


def test_a_server_of_text_is_told_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*VLLM, "--output", str(tmp_path / "out"), "--json", "--name", "chat"]) == 0
    plan = json.loads(capsys.readouterr().out)["plan"]
    assert (plan["name"], plan["max_model_tokens"], plan["port"]) == ("chat", 600, 8000)
    assert plan["token_bytes"] == 2 * 12 * 12 * 64 * 2


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--cpus", "2"], "--cpus is nothing that --render vllm looks at"),
        (["--replicas", "2"], "--replicas is for a cluster, and it has to find the model"),
        (["--max-delay-ms", "3"], "--max-delay-ms is nothing that --render vllm looks at"),
        (["--token", "t"], "--token is nothing that --render vllm looks at"),
        (["--precision", "int3"], "--precision"),
        (["--precision", "float9"], "did you mean float8?"),
    ],
)
def test_what_a_server_of_text_has_no_place_for_is_refused(
    tmp_path: Path, words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*VLLM, "--output", str(tmp_path / "out"), *words]) == 2
    assert told in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_card_has_to_be_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["serve", "keras_hub:gpt2_base_en", "--render", "vllm", "--output", str(tmp_path / "o")]
    assert main(words) == 2
    assert "--render vllm needs to know the card" in capsys.readouterr().err


def test_options_of_a_server_of_text_go_with_it_alone(
    tmp_path: Path, model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["serve", model, "--render", "triton", "--output", str(tmp_path / "o"), "--card", "l4"]
    assert main(words) == 2
    assert "--card is nothing that --render triton looks at" in capsys.readouterr().err
