from pathlib import Path

import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.workload import WorkloadKind
from tfdyno.jobs.choose.reference import parse_reference


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
