"""The options ``--can-run`` and ``--matrix``: an answer for any pair, without a machine."""

from __future__ import annotations

import json

import pytest

from tfdyno.cli.main import main


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = main(["doctor", *words])
    out, err = capsys.readouterr()
    assert err == ""
    return code, out


@pytest.mark.parametrize(
    ("gpu", "release", "code", "answer"),
    [
        ("rtx-5090", "2.20", 1, "No: GeForce RTX 5090 cannot run TensorFlow 2.20."),
        ("rtx-5090", "2.21", 0, "GeForce RTX 5090"),
        ("t4", "2.20", 0, "Yes: Tesla T4 runs TensorFlow 2.20 at once."),
        ("rtx-3090", "2.10", 0, "Yes, after a first start that compiles kernels"),
    ],
)
def test_a_pair_is_answered_first_and_by_the_exit_code(
    gpu: str, release: str, code: int, answer: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found, out = printed(capsys, "--can-run", "--gpu", gpu, "--tf", release)
    assert found == code
    assert answer in " ".join(out.splitlines()[0].split())


def test_a_card_that_cannot_run_gets_the_release_that_can(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, out = printed(capsys, "--can-run", "--gpu", "rtx-5090", "--tf", "2.20")
    assert 'pip install "tensorflow[and-cuda]>=2.21"' in out


def test_several_pairs_are_answered_one_after_the_other(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out = printed(capsys, "--can-run", "--gpu", "t4,rtx-5090", "--tf", "2.19, 2.20", "--json")
    support = json.loads(out)["support"]
    assert code == 1
    assert [(one["gpu"], one["tensorflow"], one["verdict"]) for one in support] == [
        ("t4", "2.19", "native"), ("t4", "2.20", "native"),
        ("rtx-5090", "2.19", "cannot"), ("rtx-5090", "2.20", "cannot"),
    ]  # fmt: skip


def test_what_runs_without_xla_alone_is_no_refusal_and_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out = printed(capsys, "--can-run", "--gpu", "rtx-5090", "--tf", "2.21")
    said = " ".join(out.split())
    assert code == 0
    assert out.startswith("~*  Only in graph execution")
    assert "fails with the wheel of TensorFlow 2.21 on compute capability 12.0" in said


def test_tables_that_are_of_a_candidate_are_told_in_json_too(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, out = printed(capsys, "--can-run", "--gpu", "t4,l4", "--tf", "2.22", "--json")
    (note,) = json.loads(out)["notes"]
    assert "release candidate 2.22.0rc0" in note


def test_the_matrix_has_a_row_per_capability_and_a_legend(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out = printed(capsys, "--matrix")
    head, *rows = out.splitlines()
    assert code == 0
    assert {"2.16–2.20", "2.21–2.22"} <= set(head.split())
    column = head.index("2.16–2.20")
    marks = {(row.split()[0], row[column]) for row in rows if row[:1].isdigit()}
    assert {("7.5", "✓"), ("9.0", "~"), ("12.0", "✗")} <= marks
    assert not {("7.5", "~"), ("9.0", "✓"), ("12.0", "✓"), ("12.0", "~")} & marks
    assert "✗ no code that the card accepts" in out


def test_a_matrix_may_be_asked_for_some_cards_and_releases(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, out = printed(capsys, "--matrix", "--gpu", "t4,rtx-5090", "--tf", "2.20", "--json")
    found = json.loads(out)
    assert found["releases"] == ["2.20"]
    assert [(row["names"], row["verdicts"]) for row in found["rows"]] == [
        (["Tesla T4"], ["native"]), (["GeForce RTX 5090"], ["cannot"]),
    ]  # fmt: skip
