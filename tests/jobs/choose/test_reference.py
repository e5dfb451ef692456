import json
from pathlib import Path

import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.workload import FineTune, WorkloadKind
from tfdyno.jobs.choose.reference import option_words, parse_reference

GPT2 = "keras_hub:gpt2_base_en"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.py").write_text("")
    (tmp_path / "model.keras").write_bytes(b"")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("keras:ResNet50", "application"),
        ("task:lstm", "task"),
        ("train.py", "script"),
        ("train.py:build", "function"),
        ("package.module:build", "function"),
        ("model.keras", "keras_file"),
    ],
)
def test_the_form_of_a_reference_decides_its_kind(text: str, kind: WorkloadKind) -> None:
    assert parse_reference(text).kind == kind


def test_a_function_with_an_input_spec_is_a_step_function() -> None:
    assert (
        parse_reference("train.py:step", input_spec=("float32[batch,3]",)).kind == "step_function"
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("trian.py", "there is no file trian.py; did you mean train.py?"),
        ("nowhere/a.py:f", "there is no file nowhere/a.py."),
        ("modle.keras", "there is no file modle.keras; did you mean model.keras?"),
        ("old.h5", "old.h5 is in the old HDF5 format; save the model again with model.save"),
        ("resnet", "'resnet' names no workload; give script.py, file.py:function"),
        ("", "'' names no workload"),
        ("keras:", "'keras:' names no workload"),
        ("task:", "'task:' names no workload"),
        (
            "task:resnet18",
            "there is no standard task 'resnet18'; did you mean task:resnet18-cifar10?",
        ),
        ("a b:c", "'a b:c' names no workload"),
    ],
)
def test_a_reference_to_nothing_is_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_reference(text)
    assert str(caught.value).startswith(sentence)


def test_precision_shapes_and_fit_number_are_checked() -> None:
    with pytest.raises(UsageError, match="precision 'int3' is not one of float32, tf32"):
        parse_reference("train.py", precision="int3")
    with pytest.raises(UsageError, match="a size below 1"):
        parse_reference("train.py", input_shapes=((0, 3),))
    with pytest.raises(UsageError, match="no call 0 of fit"):
        parse_reference("train.py", fit_number=0)


def test_the_identity_of_a_workload_changes_with_every_field() -> None:
    plain = parse_reference("train.py")
    others = [
        parse_reference("train.py", mode="infer"),
        parse_reference("train.py", precision="float32"),
        parse_reference("train.py", script_arguments=("--fast",)),
        parse_reference("train.py", fit_number=2),
        parse_reference("train.py:build"),
    ]
    assert len({plain.id, *(other.id for other in others)}) == 6


def test_a_preset_is_its_class_and_the_arguments_of_that() -> None:
    asked = FineTune(task="causal_lm", sequence_length=1024, lora_rank=8, quantize="int8")
    found = parse_reference(GPT2, fine_tune=asked)
    assert (found.reference, found.kind) == (GPT2, "preset")
    assert found.hub
    assert (found.hub.backbone, found.hub.longest) == ("GPT2Backbone", 1024)
    assert json.loads(found.hub.config)["vocabulary_size"] == 50_257
    assert found.hub.fine_tune == asked


def test_the_words_of_a_preset_name_it_again() -> None:
    asked = FineTune(task="causal_lm", sequence_length=512, lora_rank=8, quantize="int8")
    typed = "--task causal_lm --seq 512 --lora 8 --quantize int8"
    assert option_words(parse_reference(GPT2, fine_tune=asked)) == typed.split()
    assert option_words(parse_reference(GPT2, fine_tune=FineTune())) == []


def test_every_choice_of_a_fine_tune_is_another_workload() -> None:
    choices = (FineTune(), FineTune(lora_rank=8), FineTune(lora_rank=4), FineTune(quantize="int8"),
               FineTune(sequence_length=512), FineTune(task="causal_lm"))  # fmt: skip
    assert len({parse_reference(GPT2, fine_tune=one).id for one in choices}) == len(choices)


@pytest.mark.parametrize(
    ("text", "asked", "sentence"),
    [
        (
            "keras_hub:gpt2_bas_en",
            FineTune(),
            "there is no keras-hub preset 'gpt2_bas_en'; did you mean keras_hub:gpt2_base_en?",
        ),
        (
            GPT2,
            FineTune(sequence_length=1025),
            "keras_hub:gpt2_base_en takes no 1025 tokens: its samples have 1024 tokens at most; "
            "give --seq 1024 or less.",
        ),
        (
            GPT2,
            FineTune(quantize="int2"),
            "quantize mode 'int2' is not one of int8, int4, float8; did you mean int8?",
        ),
        (
            GPT2,
            FineTune(task="causal"),
            "task 'causal' is not one of causal_lm, classifier, masked_",
        ),
        (
            "keras_hub:resnet_18_imagenet",
            FineTune(sequence_length=64),
            "keras_hub:resnet_18_imagenet reads no text; leave --seq out.",
        ),
        (GPT2, FineTune(lora_rank=-1), "LoRA rank -1 is not possible; give a whole number, 0 or"),
        (GPT2, FineTune(sequence_length=-1), "sequence length -1 is not possible; give a whole"),
        (
            "task:lstm",
            FineTune(lora_rank=4),
            "task:lstm is trained as its own code says: --task, --seq, --lora and --quantize go "
            "with keras_hub:PRESET; leave them out, or name a preset: keras_hub:gpt2_base_en.",
        ),
        (
            GPT2,
            None,
            "keras_hub:gpt2_base_en is no workload of this command: estimate, advise, memory, "
            "recipe auto, train and launch alone take a preset; give a script that loads it and "
            "calls fit.",
        ),
        ("keras_hub:", FineTune(), "'keras_hub:' names no workload"),
    ],
)
def test_what_no_preset_takes_is_one_sentence(
    text: str, asked: FineTune | None, sentence: str
) -> None:
    with pytest.raises(UsageError) as caught:
        parse_reference(text, fine_tune=asked)
    assert str(caught.value).startswith(sentence)
