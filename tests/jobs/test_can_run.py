"""Whether a wheel runs on a card, against the wheels as they were taken apart."""

from __future__ import annotations

import csv

import pytest

from tfdyno.catalog.gpus import find
from tfdyno.catalog.tables import DATA
from tfdyno.core.errors import UsageError
from tfdyno.jobs.can_run import can_run, matrix

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
            assert verdict == ("fails" if found.has_old_libraries else found.verdict)


def test_a_wheel_with_libraries_older_than_the_card_is_told_apart() -> None:
    (row,) = matrix([find("rtx-5090")], ["2.10", "2.21"]).rows
    assert row.verdicts == ("fails", "jit")


def test_boards_without_any_wheel_are_listed_and_have_no_row() -> None:
    found = matrix()
    assert {"Jetson TX2", "GB200 (per GPU)"} <= set(found.without)
    assert not {name for row in found.rows for name in row.names} & set(found.without)


def test_a_release_that_is_not_known_is_refused() -> None:
    with pytest.raises(UsageError, match=r"9\.9 is not known yet"):
        matrix([], ["9.9"])
    with pytest.raises(UsageError, match=r"9\.9 is not known yet"):
        can_run([find("t4")], ["9.9"])
