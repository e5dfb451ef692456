"""runtime/export/huggingface: real models of KerasHub go out, come back, and compute alike."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from tests.runtime.language_exports_seen import facts

LACKING = [name for name in ("keras_hub", "safetensors") if find_spec(name) is None]
hub = pytest.mark.skipif(bool(LACKING), reason="KerasHub or safetensors is not installed")
pytestmark = pytest.mark.tf


@pytest.mark.skipif(not LACKING, reason="KerasHub and safetensors are installed")
def test_without_kerashub_the_package_is_named() -> None:
    from tfdyno.core.base.errors import UsageError
    from tfdyno.runtime.export.huggingface import check_packages

    with pytest.raises(UsageError, match=r"export to huggingface needs .*: this interpreter has"):
        check_packages()


@hub
@pytest.mark.parametrize("name", ["gpt2", "qwen", "gemma_lora"])
def test_what_is_read_again_computes_alike_on_the_same_tokens(name: str) -> None:
    found = facts()[name]
    assert found["differs"] < 1e-5
    assert found["largest"] > 0.1
    assert (found["rows"], found["runner"]) == (4, "KerasHub 0.32.0")


@hub
def test_adapters_are_in_the_weights_that_are_written() -> None:
    """Their part is 1.7 in scores up to 2.3; without them the gate is not passed."""
    assert facts()["adapters_change"] > 1.0
    assert facts()["query_differs"] < 1e-6
    assert facts()["gemma_lora"]["details"]["merged_adapters"] == 4
    assert facts()["unmerged"]["differs"] > 1.0


@hub
def test_a_model_in_halves_is_read_in_halves() -> None:
    found = facts()["halves"]
    assert found["config"]["torch_dtype"] == "bfloat16"
    assert found["differs"] < 4 / 128 * found["largest"]


@hub
@pytest.mark.parametrize(
    ("name", "architecture"),
    [("gpt2", "GPT2LMHeadModel"), ("qwen", "Qwen2ForCausalLM"), ("gemma_lora", "GemmaForCausalLM"),
     ("llama_int8", "LlamaForCausalLM")],
)  # fmt: skip
def test_the_architecture_is_named_where_kerashub_leaves_it_out(
    name: str, architecture: str
) -> None:
    assert facts()[name]["config"]["architectures"] == [architecture]


@hub
def test_the_tokenizer_lies_beside_the_weights() -> None:
    assert facts()["gpt2"]["files"] == [
        "config.json", "merges.txt", "model.safetensors", "tokenizer_config.json", "vocab.json",
    ]  # fmt: skip
    assert "tokenizer.model" in facts()["gemma_lora"]["files"]


@hub
def test_a_folder_is_not_timed_and_is_compared_in_transformers_where_that_is() -> None:
    assert [facts()["gpt2"][name] for name in ("latencies", "again")] == [0, True]


@hub
@pytest.mark.parametrize(
    ("number", "told"),
    [
        (0, "it is no CausalLM of KerasHub but a GPT2Backbone"),
        (1, "a server needs its tokenizer, and it has none"),
        (2, "it is a Gemma 2, which KerasHub writes as if it were a Gemma"),
        (3, "KerasHub 0.32.0 has no converter for OPTBackbone; it has for GPT2Backbone"),
        (4, "its weights are quantized in float8, and those of int8 and int4 alone"),
    ],
)
def test_what_cannot_be_written_is_one_sentence_before_anything_is(number: int, told: str) -> None:
    assert told in facts()["refused"][number]
    assert facts()["nothing_written"][number] is False


@hub
def test_a_saved_model_brings_its_tokenizer() -> None:
    assert facts()["saved"] == 99
