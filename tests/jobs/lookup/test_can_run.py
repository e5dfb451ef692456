"""Whether a wheel runs on a card, against the wheels as they were taken apart."""

from __future__ import annotations

import csv

import pytest

from tfdyno.catalog.gpus import find
from tfdyno.catalog.tables import DATA
from tfdyno.core.base.errors import UsageError
from tfdyno.jobs.lookup.can_run import can_run, matrix

COLUMNS = {"T4_7.5": "t4", "A100_8.0": "a100-sxm4-80gb", "RTX30_8.6": "rtx-3090",
           "H100_9.0": "h100-sxm", "RTX50_12.0": "rtx-5090"}  # fmt: skip
TOLD = {"sass/sass": "native", "sass/jit": "jit", "jit/jit": "jit", "jit/NO": "cannot"}


def wheels() -> list[tuple[str, str, str]]:
    """Release, column and cell of every wheel from 2.10 on for some cards."""
    text = (DATA / "wheel_kernels.csv").read_text("utf-8")
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    rows = [(row["wheel"].split("-")[1], row) for row in csv.DictReader(lines)]
    return [
        (".".join(version.split(".")[:2]), column, row[column])
        for version, row in rows
        if row["wheel"].startswith("tensorflow-2") and int(version.split(".")[1]) >= 10
        for column in COLUMNS
    ]


@pytest.mark.parametrize(("release", "column", "cell"), wheels())
def test_the_verdict_is_what_the_wheel_holds_for_the_card(
    release: str, column: str, cell: str
) -> None:
    ((_, found),) = can_run([find(COLUMNS[column])], [release])
    assert found.verdict == TOLD[cell]


def test_every_pair_is_answered_cards_first() -> None:
    found = can_run([find("t4"), find("l4")], ["2.19", "2.20"])
    assert [(gpu.slug, one.tensorflow) for gpu, one in found] == [
        ("t4", "2.19"), ("t4", "2.20"), ("l4", "2.19"), ("l4", "2.20"),
    ]  # fmt: skip


def test_the_matrix_agrees_with_the_pairs_and_has_every_card_once() -> None:
    found_all = matrix()
    releases = found_all.releases
    assert len(releases) > 5
    keys = [(row.compute_capability, row.verdicts) for row in found_all.rows]
    assert len(keys) == len(set(keys))
    for row in found_all.rows:
        card = find(row.names[0])
        for release, verdict in zip(releases, row.verdicts, strict=True):
            ((_, found),) = can_run([card], [release])
            assert verdict == found.outcome


def test_a_wheel_with_libraries_older_than_the_card_is_told_apart() -> None:
    (row,) = matrix([find("h100-sxm")], ["2.10", "2.21"]).rows
    assert row.verdicts == ("jit", "jit")
    (row,) = matrix([find("rtx-5090")], ["2.10", "2.15"]).rows
    assert row.verdicts == ("fails", "jit")


@pytest.mark.parametrize("gpu", ["rtx-5060", "rtx-5070", "rtx-5080", "rtx-pro-6000-blackwell",
                                 "b200-sxm-180gb", "b300-sxm-270gb"])  # fmt: skip
@pytest.mark.parametrize("release", ["2.21", "2.22"])  # both built with CUDA 12.5: PTX 8.5
def test_a_card_newer_than_the_cuda_of_xla_runs_in_graph_execution_alone(
    gpu: str, release: str
) -> None:
    ((_, found),) = can_run([find(gpu)], [release])
    assert (found.verdict, found.outcome) == ("jit", "graph")
    (told,) = found.known_faults
    assert "jit_compile=False" in told
    assert "a newer ptxas does not help" in told


def test_where_no_code_runs_the_fault_of_the_release_to_move_to_is_told() -> None:
    ((_, found),) = can_run([find("rtx-5080")], ["2.19"])
    assert (found.outcome, found.xla_fails) == ("cannot", False)
    assert "TensorFlow 2.21" in found.known_faults[0]


def test_a_host_without_any_wheel_and_older_cards_have_no_such_fault() -> None:
    for gpu, release in (("gb200", "2.21"), ("h200-sxm", "2.21"), ("t4", "2.22")):
        ((_, found),) = can_run([find(gpu)], [release])
        assert not found.xla_fails
        assert "ptxas" not in " ".join(found.known_faults)


def test_boards_without_any_wheel_are_listed_and_have_no_row() -> None:
    found = matrix()
    assert {"Jetson TX2", "GB200 (per GPU)"} <= set(found.without)
    assert not {name for row in found.rows for name in row.names} & set(found.without)


def test_a_release_that_is_not_known_is_refused() -> None:
    with pytest.raises(UsageError, match=r"9\.9 is not known yet"):
        matrix([], ["9.9"])
    with pytest.raises(UsageError, match=r"9\.9 is not known yet"):
        can_run([find("t4")], ["9.9"])
