"""scripts/composition: the cells that CI runs have every pair, and each trains what it says."""

from __future__ import annotations

import functools
import itertools
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from composition_matrix import run
from composition_matrix.cells import (
    AXES,
    STRATEGIES,
    Cell,
    all_cells,
    pairwise_cells,
    recipe_of,
    refusal,
    refused_pairs,
)
from composition_matrix.page import JSON, page
from composition_matrix.pairs import covering, pairs_of
from composition_matrix.processes import Portion, Row, run_cells

ROOT = Path(__file__).parents[1]
RUNNABLE = tuple(cell for cell in all_cells() if not refusal(cell))
ABOUT = {
    "date": "2026-11-22", "cpu": "a CPU", "cpu_count": 2, "system": "Linux", "tensorflow": "2.21.0",
    "keras": "3.15.1", "tfdyno": "0.1.0",
}  # fmt: skip


def cell_of(**other: Any) -> Cell:
    return Cell(**{**{name: values[0] for name, values in AXES.items()}, **other})


# Which cells


@given(some.lists(some.integers(1, 4), min_size=2, max_size=5))
def test_every_two_values_of_two_columns_meet_in_a_row(sizes: list[int]) -> None:
    columns = [range(size) for size in sizes]
    rows = covering(columns, lambda _row: True)
    met = set().union(*map(pairs_of, rows))
    wanted = {
        ((one, a), (two, b))
        for one, two in itertools.combinations(range(len(sizes)), 2)
        for a, b in itertools.product(columns[one], columns[two])
    }
    assert met == wanted
    assert len(rows) <= len(wanted)


def test_no_row_is_taken_that_cannot_be_and_no_pair_is_left_out_for_it() -> None:
    columns = [range(3)] * 3
    rows = covering(columns, lambda row: row[0] != row[1])
    met = set().union(*map(pairs_of, rows))
    assert all(row[0] != row[1] for row in rows)
    assert {pair for pair in met if pair[0][0] == 0 and pair[1][0] == 2} == {
        ((0, a), (2, b)) for a in range(3) for b in range(3)
    }


def test_ci_runs_few_cells_in_which_all_values_of_all_settings_meet() -> None:
    cells = pairwise_cells()
    rows = [tuple(getattr(cell, name) for name in AXES) for cell in cells]
    met = set().union(*map(pairs_of, rows))
    every = [tuple(getattr(cell, name) for name in AXES) for cell in RUNNABLE]
    assert set().union(*map(pairs_of, every)) == met
    assert len(cells) <= 16
    assert not any(map(refusal, cells))


def test_there_is_a_cell_for_every_combination_with_a_name_of_its_own() -> None:
    cells = all_cells()
    assert len({cell.name for cell in cells}) == len(set(cells)) == len(cells) == 384
    assert [cell.name for cell in cells if cell == cell_of()] == ["single-float32-graph-acc1-spe1"]


@pytest.mark.parametrize("cell", refused_pairs(), ids=lambda cell: cell.name)
def test_what_cannot_be_is_refused_with_the_reason(cell: Cell) -> None:
    reason = refusal(cell)
    assert cell.strategy == "ps"
    assert "do not go together: " in reason
    assert len(reason.partition(": ")[2]) > 20


def test_only_parameter_servers_refuse_anything() -> None:
    refused = {cell for cell in all_cells() if refusal(cell)}
    assert refused == {
        cell
        for cell in all_cells()
        if cell.strategy == "ps" and (cell.execution == "xla" or cell.accumulation > 1)
    }


def test_a_recipe_has_all_that_its_cell_says() -> None:
    cell = cell_of(strategy="mirrored", precision="mixed_float16", remat="blocks", ema=0.9)
    recipe = recipe_of(cell)
    assert {name: getattr(recipe, name) for name in AXES} == {
        name: getattr(cell, name) for name in AXES
    }
    assert recipe.ema_overwrite == 2


# What comes out of them


@functools.cache
def results(side: str, cells: tuple[Cell, ...]) -> dict[str, Row]:
    """The rows of cells of one strategy, run by one process or one cluster."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as logs:
        run_cells(side, cells, rows.append, Path(logs))
    return {row["name"]: row for row in rows}


def of_strategy(cells: tuple[Cell, ...], strategy: str) -> tuple[Cell, ...]:
    return tuple(cell for cell in cells if cell.strategy == strategy)


@pytest.mark.tf
@pytest.mark.parametrize("cell", sorted(pairwise_cells()), ids=lambda cell: cell.name)
def test_a_cell_trains_what_its_settings_mean(cell: Cell) -> None:
    found = results("tfdyno", of_strategy(pairwise_cells(), cell.strategy))
    assert found[cell.name]["status"] == "ok", found[cell.name]


@pytest.mark.tf
def test_the_check_sees_what_trains_something_else() -> None:
    # Plain Keras moves the average with batches that only accumulate; RematScope fails there.
    other, broken = cell_of(accumulation=4, ema=0.9), cell_of(remat="blocks")
    found = results("keras", (other, broken, cell_of()))
    assert found[other.name]["status"] == "wrong"
    assert "from what the settings mean" in found[other.name]["reason"]
    assert found[broken.name]["status"] == "error"
    assert "custom_gradient" in found[broken.name]["reason"]
    assert found[cell_of().name]["status"] == "ok"
    assert found[cell_of().name]["weights_apart"] < 1e-5


@pytest.mark.slow
@pytest.mark.tf
@pytest.mark.parametrize("cell", sorted(RUNNABLE), ids=lambda cell: cell.name)
def test_every_cell_trains_what_its_settings_mean(cell: Cell) -> None:
    found = results("tfdyno", of_strategy(RUNNABLE, cell.strategy))
    assert found[cell.name]["status"] == "ok", found[cell.name]


# Rows that are kept


def test_an_error_that_an_earlier_cell_may_have_left_is_not_believed() -> None:
    rows: list[Row] = []
    portion = Portion(keep=rows.append)
    lost = {"status": "error", "reason": "Shape mismatch in the collective instance 3"}
    portion.hear("importing TensorFlow")
    for name, row in (("a", {"status": "ok"}), ("b", lost), ("c", {"status": "ok"})):
        portion.hear(json.dumps({"begins": name}))
        portion.hear(json.dumps({"name": name, **row}))
    assert [row["name"] for row in rows] == ["a"]  # the next process begins with b
    alone = Portion(keep=rows.append)
    alone.hear(json.dumps({"name": "b", **lost}))
    assert [row["name"] for row in rows] == ["a", "b"]  # nothing was before it: it is its own


def test_a_run_goes_on_after_what_it_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rows.jsonl"
    names = [cell.name for cell in of_strategy(RUNNABLE, "ps")]
    rows = [{"side": "tfdyno", "name": name, "status": "ok"} for name in names]
    path.write_text("\n".join(map(json.dumps, rows)) + '\n{"side": "tfdyno", "na')
    words = ["--strategy", "ps", "--side", "tfdyno", "--rows", str(path)]
    assert run.main(words) == 0  # nothing is left to train
    assert "96 of 96 cells" in capsys.readouterr().out
    bad = {**rows[0], "status": "wrong", "reason": "a weight is off"}
    path.write_text(path.read_text() + json.dumps(bad) + "\n")
    assert run.main(words) == 1
    assert f"{names[0]}: wrong: a weight is off" in capsys.readouterr().out


# The page


def document(**found: Row) -> dict[str, Any]:
    rows = []
    for cell in all_cells():
        refused = {"status": "refused", "reason": refusal(cell)}
        ours = refused if refusal(cell) else {"status": "ok"}
        sides = {"tfdyno": ours, "keras": {"status": "ok"}}
        rows.append({"name": cell.name, **sides, **found.get(cell.name.replace("-", "_"), {})})
    return {"about": ABOUT, "rows": rows}


def test_the_page_counts_first_and_names_each_reason_once() -> None:
    failed = {"status": "error", "kind": "ValueError", "reason": "no | for 3 < 4 times"}
    also = {**failed, "reason": "no | for 5 < 4 times"}
    text = page(
        document(
            single_float32_graph_acc1_spe1={"keras": failed},
            mirrored_float32_graph_acc1_spe1={"keras": also, "tfdyno": {**also, "status": "wrong"}},
        )
    )
    assert "**311 train what they say**, **72 are refused** before TensorFlow starts, and " in text
    assert "**1 fail**" in text
    assert "| float32 | graph | ✓ / ✗ a | ✓ / ✓ |" in text
    assert "| float32 | graph | ≠ a / ✗ a | ✓ / ✓ |" in text
    assert text.count("ValueError") == 1
    assert r"no \| for 3 &lt; 4 times" in text
    assert [text.index(f"| {name} | 96 |") for name in STRATEGIES] == sorted(
        text.index(f"| {name} | 96 |") for name in STRATEGIES
    )


def test_what_is_published_has_every_cell_and_none_that_fails() -> None:
    published = json.loads((ROOT / JSON).read_text())
    assert [row["name"] for row in published["rows"]] == [cell.name for cell in all_cells()]
    bad = [row["name"] for row in published["rows"] if row["tfdyno"]["status"] not in run.PASSED]
    assert bad == []
