"""jobs/serve/render_vllm: the folder whole or not at all, and what a card cannot do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.jobs.serve.test_language_model import folder  # noqa: F401  (a fixture)

from tfdyno.core.base.errors import UsageError
from tfdyno.jobs.serve.render_vllm import VllmRequest, render, vllm_plan

LLAMA = VllmRequest(reference="keras_hub:llama3_8b_en", output=Path("out"), card="l4",
                    prompt_tokens=2000, new_tokens=500)  # fmt: skip


def test_the_model_lies_beside_the_file(tmp_path: Path, folder: Path) -> None:  # noqa: F811
    found = render(VllmRequest(reference=str(folder), output=tmp_path / "out", card="l4"))
    assert (found.files, found.model, found.start) == (
        ("compose.yaml",), "model", "docker compose up",
    )  # fmt: skip
    assert sorted(one.name for one in (tmp_path / "out" / "model").iterdir()) == [
        "config.json", "model-1.safetensors", "model-2.safetensors",
    ]  # fmt: skip
    assert found.plan.name == "tuned"
    assert found.plan.max_model_tokens == 64


def test_a_preset_has_no_weights_yet_and_that_is_told(tmp_path: Path) -> None:
    found = render(replace(LLAMA, output=tmp_path / "out"))
    assert [one.name for one in (tmp_path / "out").iterdir()] == ["compose.yaml"]
    assert found.model == ""
    assert found.notes[0].startswith("put the folder that tfdyno export --to huggingface writes")


def test_a_cluster_with_storage_gets_a_file_too_and_is_told_how_to_start(tmp_path: Path) -> None:
    asked = replace(LLAMA, output=tmp_path / "out", storage="pvc://models/llama", replicas="2")
    found = render(asked)
    assert found.files == ("compose.yaml", "kubernetes.yaml")
    assert found.plan.replicas == 2
    assert f"kubectl apply --filename {tmp_path}/out/kubernetes.yaml" in " ".join(found.notes)
    wrong = replace(asked, output=tmp_path / "wrong", storage="s3://models")
    with pytest.raises(UsageError, match="--storage s3://models names no claim"):
        render(wrong)
    assert not (tmp_path / "wrong").exists()


def test_an_l4_holds_an_8b_in_bfloat16_and_more_requests_in_float8() -> None:
    plain, small = vllm_plan(LLAMA), vllm_plan(replace(LLAMA, precision="float8"))
    assert (plain.gpus, plain.precision) == (1, "bfloat16")
    assert plain.max_model_tokens == 2500
    assert 1 <= plain.max_requests < small.max_requests
    assert small.max_batched_tokens == 2048


def test_a_card_without_bfloat16_computes_in_float16() -> None:
    assert vllm_plan(replace(LLAMA, card="t4")).precision == "float16"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"precision": "float8", "card": "a100-sxm4-80gb"},
            "does not compute in float8: it needs compute capability 8.9, and this is 8.0",
        ),
        ({"precision": "bfloat16", "card": "t4"}, "does not compute in bfloat16"),
        ({"card": "v100-sxm2-16gb"}, "vLLM does not run on"),
        ({"card": "l44"}, "l44"),
        ({"prompt_tokens": 9000}, "takes no 9,500 tokens: prompt and new tokens together are"),
        ({"new_tokens": None}, "--prompt and --new-tokens go together"),
        ({"gpus": 3}, "3 cards cannot share"),
        ({"reference": "keras_hub:gemma3_1b", "card": "t4"}, "vLLM refuses Gemma 3 in float16"),
        ({"name": "a/b"}, "a/b"),
        ({"replicas": "2"}, "--replicas is for a cluster, and it has to find the model; name its"),
        ({"namespace": "text"}, "--namespace is for a cluster, and it has to find the model"),
        (
            {"storage": "pvc://models", "replicas": "2:4"},
            "--replicas 2:4 is a range, and nothing scales vLLM here",
        ),
        ({"reference": "keras_hub:hf://a/b"}, "keras_hub:hf://a/b is not on this machine"),
    ],
)
def test_what_cannot_be_is_one_sentence(changes: dict[str, object], told: str) -> None:
    with pytest.raises(UsageError) as caught:
        vllm_plan(replace(LLAMA, **changes))  # type: ignore[arg-type]
    assert told in str(caught.value)


def test_nothing_is_written_where_it_does_not_fit_or_the_folder_is_there(tmp_path: Path) -> None:
    output = tmp_path / "out"
    with pytest.raises(UsageError, match="does not hold"):
        render(replace(LLAMA, output=output, card="rtx3060", gpus=1))
    assert list(tmp_path.iterdir()) == []
    output.mkdir()
    with pytest.raises(UsageError, match="is there already"):
        render(replace(LLAMA, output=output))


def test_a_model_that_does_not_tell_its_length_asks_for_it(tmp_path: Path, folder: Path) -> None:  # noqa: F811
    config = folder / "config.json"
    config.write_text(config.read_text().replace('"max_position_embeddings": 64', '"x": 1'))
    asked = VllmRequest(reference=str(folder), output=tmp_path / "out", card="l4")
    with pytest.raises(UsageError, match="nothing tells how many tokens tuned takes"):
        vllm_plan(asked)
    assert vllm_plan(replace(asked, prompt_tokens=10, new_tokens=5)).max_model_tokens == 15
