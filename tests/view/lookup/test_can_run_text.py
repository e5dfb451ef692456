"""Which wheels run on which cards, for a terminal."""

from __future__ import annotations

import pytest

from tfdyno.catalog.gpus import find
from tfdyno.catalog.software import wheel_support
from tfdyno.jobs.machine.wheels import supported
from tfdyno.view.base.text import shown_width
from tfdyno.view.lookup.can_run_text import can_run_text, matrix_text


def told(gpu: str, release: str) -> str:
    card = find(gpu)
    return can_run_text(card, wheel_support(card, release))


def answered(gpu: str, release: str) -> str:
    card = find(gpu)
    return can_run_text(card, supported(card, release), aged="Read from a candidate.")


def rows(text: str) -> dict[str, str]:
    """The text behind each label, lines joined."""
    found: dict[str, str] = {}
    label = ""
    for line in text.splitlines()[1:]:
        if line[2:3].strip():
            label = line[2:15].strip()
        if label:
            found[label] = f"{found.get(label, '')} {line[15:].strip()}".strip()
    return found


@pytest.mark.parametrize(
    ("gpu", "release", "answer", "library", "elementwise"),
    [
        ("t4", "2.20", "✓  Yes: Tesla T4", "machine code", "machine code"),
        ("h100-sxm", "2.20", "~  Yes, after a first start", "machine code",
         "PTX, compiled by the driver at first use"),
        ("rtx-5090", "2.20", "✗  No: GeForce RTX 5090",
         "PTX, compiled by the driver at first use", "nothing that this card accepts"),
    ],
)  # fmt: skip
def test_the_answer_is_first_and_the_wheel_proves_it(
    gpu: str, release: str, answer: str, library: str, elementwise: str
) -> None:
    text = told(gpu, release)
    assert text.startswith(answer)
    assert rows(text)["library"] == library
    assert rows(text)["elementwise"] == elementwise
    assert "wheel_kernels.csv" in rows(text)["source"]


def test_what_runs_names_the_driver_and_what_does_not_the_fix() -> None:
    runs, fails = rows(told("t4", "2.20")), rows(told("rtx-5090", "2.20"))
    assert runs["driver"].endswith("or later on Linux")
    assert "fix" not in runs
    assert fails["fix"] == 'python -m pip install "tensorflow[and-cuda]>=2.21"'
    assert "driver" not in fails


def test_a_card_that_xla_cannot_serve_is_told_what_works() -> None:
    text = answered("rtx-5090", "2.21")
    assert text.startswith("~*  Only in graph execution: GeForce RTX 5090 on TensorFlow 2.21.")
    assert "XLA, the default of fit in Keras 3, fails there" in " ".join(text.split())
    told = rows(text)
    assert told["fix"] == "model.compile(..., jit_compile=False)"
    assert "smaller of the CUDA that it was built with (12.5) and of ptxas" in told["XLA"]
    assert "nvcr.io/nvidia/tensorflow" in told["XLA"]
    assert "CUDA_CACHE_MAXSIZE" in told["first start"]


def test_the_release_to_move_to_comes_with_the_execution_that_runs_there() -> None:
    fix = rows(answered("rtx-5090", "2.20"))["fix"]
    assert '"tensorflow[and-cuda]>=2.21", then model.compile(..., jit_compile=False)' in fix


def test_tables_older_than_the_release_are_told() -> None:
    assert rows(answered("t4", "2.22"))["tables"] == "Read from a candidate."
    assert "tables" not in rows(told("t4", "2.21"))


def test_a_slow_first_start_says_how_to_keep_its_result() -> None:
    """Of a Hopper all but the elementwise kernels are machine code: seconds, not minutes."""
    told_of = rows(told("h100-sxm", "2.20"))["first start"]
    assert "CUDA_CACHE_MAXSIZE=4294967296" in told_of
    assert told_of.startswith("about 0.2 s longer for each kind of elementwise kernel")
    assert "takes minutes" in rows(answered("rtx-5090", "2.21"))["first start"]


def test_a_board_without_any_wheel_is_sent_to_a_container() -> None:
    assert "container that NVIDIA builds" in rows(told("gb200", "2.20"))["fix"]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_matrix_fits_the_screen(width: int) -> None:
    names = ("GeForce RTX 5090", "GeForce RTX 5080", "GeForce RTX 5070 Ti")
    shown = matrix_text(["2.19", "2.20", "2.21"], [("12.0", names, ("cannot", "fails", "graph"))],
                        width=width)  # fmt: skip
    table = shown.partition("\n\n")[0].splitlines()
    assert table[0].split()[:4] == ["GPU", "2.19", "2.20", "2.21"]
    assert table[1].split()[:4] == ["12.0", "✗", "✗*", "~*"]
    assert max(map(shown_width, table)) <= width


def test_colour_changes_no_column() -> None:
    row = [("7.5", ("Tesla T4",), ("native", "unknown"))]
    plain, painted = (matrix_text(["2.20", "2.21"], row, colour=on) for on in (False, True))
    assert [shown_width(line) for line in plain.splitlines()] == [
        shown_width(line) for line in painted.splitlines()
    ]


def test_releases_that_agree_throughout_share_a_column() -> None:
    rows = [("9.0", ("H100",), ("jit", "jit", "native")), ("7.5", ("T4",), ("native",) * 3)]
    head = matrix_text(["2.18", "2.19", "2.20"], rows, merge=True).splitlines()[0]
    assert head.split() == ["GPU", "2.18–2.19", "2.20", "such", "as"]


def test_boards_without_a_wheel_are_named_below() -> None:
    shown = matrix_text(["2.20"], [("7.5", ("T4",), ("native",))], without=["Jetson TX2", "GB10"])
    assert "\n\nNo CUDA wheel for their processors: Jetson TX2, GB10.\n\n" in shown
