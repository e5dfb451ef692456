"""Tables say what a default means, leave the unknown out, and hold every sample."""

from __future__ import annotations

from dataclasses import replace

from tests.measurements import measurement, run
from tests.view import benches

from tfdyno.core.recipe.recipe import Recipe
from tfdyno.view.bench.tables import environment_rows, raw_rows, recipe_rows, task_rows


def test_all_settings_are_listed_and_defaults_are_told() -> None:
    one = benches.told(replace(benches.on_cpu(), recipe=Recipe(memory_limit_bytes=1 << 30)))
    rows = {row.name: row.values for row in recipe_rows([one])}
    assert rows["precision"] == ("the script’s own",)
    assert rows["memory_limit_bytes"] == ("1 GiB",)
    assert rows["deterministic"] == ("false",)
    assert len(rows) == 14


def test_rows_that_differ_are_marked() -> None:
    told, _ = benches.pair()
    assert [row.name for row in recipe_rows(told) if row.differs] == ["threads_intra"]


def test_the_unknown_is_left_out_and_cards_are_described() -> None:
    names = {row.name: row.values[0] for row in environment_rows([benches.told(benches.on_gpu())])}
    assert names["Cards"] == "NVIDIA L4 (24 GiB; 72 W; 2.04 GHz; ECC)"
    assert names["cuDNN"] == "9.3"
    assert "Container" not in names
    assert "Cards" not in {row.name for row in environment_rows([benches.told(benches.on_cpu())])}


def test_the_task_comes_with_its_protocol() -> None:
    names = {row.name: row.values[0] for row in task_rows([benches.told(benches.on_cpu())])}
    assert names["Steps of a run at most"] == "60 s"
    assert names["Interval that ends the runs"] == "± 2 %"
    assert names["Parameter count"] == "1,000"
    assert "Notes" not in names


def test_every_sample_is_there_by_its_part() -> None:
    one = run([0.3, *[0.1] * 10], steps_per_sample=(1, *[4] * 10), steady_from=1, excluded=(4,))
    rows = raw_rows([benches.told(replace(measurement([[0.1]]), runs=(one,)))])
    assert rows[0] == ("run 1", "warm-up", "1", "300")
    assert rows[1] == ("run 1", "steady", "4", " ".join(["100"] * 9))
    assert rows[2] == ("run 1", "first of an epoch", "4", "100")
