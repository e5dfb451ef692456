"""What is run, by the options that commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.cli.typed import typed

from tfdyno.cli.workload_options import (
    CodeOptions,
    PredictOptions,
    SoftwareOptions,
    WorkloadOptions,
    workload_from,
)
from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.workload import FineTune

if TYPE_CHECKING:
    from pathlib import Path


def test_the_options_describe_the_workload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").touch()
    words = ("--input-shape", "224,224,3", "--fit", "2", "--unsafe", "--precision", "mixed_float16")
    given = typed(PredictOptions, "train.py", *words, "--", "--depth", "50")
    made = workload_from(given, given.code, precision=given.precision)
    assert (made.reference, made.kind, made.mode) == ("train.py", "script", "train")
    assert made.script_arguments == ("--depth", "50")
    assert (made.precision, made.input_shapes) == ("mixed_float16", ((224, 224, 3),))
    assert (made.fit_number, made.allow_unsafe, made.python) == (2, True, "")


def test_only_a_script_takes_arguments() -> None:
    named = typed(WorkloadOptions, "keras:ResNet50", "--", "--depth", "50")
    with pytest.raises(UsageError) as told:
        workload_from(named, CodeOptions())
    assert str(told.value) == (
        "keras:ResNet50 takes no arguments, but got '--depth 50'; only a script does, after --."
    )


def test_what_is_asked_of_tensorflow_is_told_to_the_trace() -> None:
    named = typed(WorkloadOptions, "keras:ResNet50")
    for words, software in (
        ((), ""), (("--tf", "2.20"), "tensorflow 2.20"), (("--backend", "jax"), "jax"),
    ):  # fmt: skip
        asked = typed(SoftwareOptions, *words)
        assert workload_from(named, CodeOptions(), software=asked).software == software
    both = typed(SoftwareOptions, "--tf", "2.20", "--backend", "jax")
    with pytest.raises(UsageError, match="--tf and --backend jax contradict each other"):
        workload_from(named, CodeOptions(), software=both)


def test_the_options_say_how_a_preset_is_trained() -> None:
    words = "--task causal_lm --seq 512 --lora 8 --quantize int8".split()
    given = typed(PredictOptions, "keras_hub:gpt2_base_en", *words)
    made = workload_from(given, given.code, fine_tune=given.fine_tune)
    assert made.hub
    assert made.hub.fine_tune == FineTune(
        task="causal_lm", sequence_length=512, lora_rank=8, quantize="int8"
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--lora", "0"), "LoRA rank 0 is not possible; give a whole number, 1 or more."),
        (("--lora", "1.5"), "LoRA rank 1.5 is not possible; give a whole number, 1 or more."),
        (("--seq", "0"), "sequence length 0 is not possible; give a whole number, 1 or more."),
        (("--quantize", "int2"), "quantize mode 'int2' is not one of int8, int4, float8; did you"),
        (("--quantize", "gptq"), "quantize mode 'gptq' is not one that a trace can follow: it"),
        (("--task", "clasifier"), "task 'clasifier' is not one of causal_lm, classifier, masked_"),
    ],
)
def test_what_is_no_rank_length_mode_or_task_is_one_sentence(
    words: tuple[str, ...], sentence: str
) -> None:
    with pytest.raises(UsageError) as told:
        typed(PredictOptions, "keras_hub:gpt2_base_en", *words)
    assert str(told.value).startswith(sentence)
