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
