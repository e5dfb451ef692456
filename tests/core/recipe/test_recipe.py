"""core/recipe: what no run can be is refused, and two recipes tell where they differ."""

from __future__ import annotations

import hashlib

import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno.core.recipe.recipe import InputOptions, Recipe, diff


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"precision": "mixed_float8"}, "precision 'mixed_float8' is not one of"),
        ({"execution": "xlaa"}, "did you mean xla?"),
        ({"accumulation": 0}, "accumulation = 0 is not possible; give 1 or more"),
        ({"batch_size": -1}, "batch_size = -1 is not possible; give 0 or more"),
        ({"clip_norm": float("nan")}, "clip_norm = nan is not possible"),
        ({"ema": 1.0}, "ema = 1 is not possible: it is a momentum; give less than 1"),
        ({"ema": -0.5}, "ema = -0.5 is not possible; give 0 or more"),
        ({"memory_fraction": 1.5}, "memory_fraction = 1.5 is not possible; give a part"),
        ({"loss_scale": float("inf")}, "loss_scale = inf is not possible"),
        ({"remat": "8GiBs"}, "'8GiBs' is not an amount of memory"),
        ({"remat": "-1GiB"}, "remat = -1GiB is not possible; write it as 8GiB"),
        ({"strategy": "parameter_server"}, "did you mean ps?"),
        ({"strategy": "multi-worker"}, "did you mean multiworker?"),
        ({"strategy": "MirroredStrategy"}, "did you mean mirrored?"),
        ({"strategy": "TPUStrategy"}, "did you mean tpu?"),
        ({"strategy": "sinlge"}, "did you mean single?"),
    ],
)
def test_what_no_run_can_be_is_refused(setting: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError) as told:
        Recipe(**setting)  # type: ignore[arg-type]
    assert message in str(told.value)


def test_equal_recipes_have_one_id_and_any_change_another() -> None:
    assert Recipe().id == Recipe(accumulation=1).id
    changed = [Recipe(seed=0), Recipe(deterministic=True), Recipe(batch_size=64), Recipe()]
    assert len({one.id for one in changed}) == len(changed)


def test_an_input_is_refused_by_the_name_of_its_setting() -> None:
    with pytest.raises(UsageError, match=r"input.prefetch = -2 is not possible; give -1 or more"):
        InputOptions(prefetch=-2)
    with pytest.raises(UsageError, match=r"input.private_threads = -1 is not possible"):
        InputOptions(private_threads=-1)


def test_remat_is_blocks_a_budget_or_layers() -> None:
    blocks, budget = Recipe(remat="blocks"), Recipe(remat="1.5 GiB")
    layers = Recipe(remat="block1_*, head")
    assert budget.remat_budget_bytes == 1536 << 20
    assert [one.remat_budget_bytes for one in (blocks, layers, Recipe())] == [0, 0, 0]
    for wrong in ("0GiB", "0.2", "-1GiB", "8 GiBs", ".5GiB"):
        with pytest.raises(UsageError):
            Recipe(remat=wrong)


def test_a_strategy_takes_what_is_named_or_all_cards_or_two_without() -> None:
    mirrored = Recipe(strategy="mirrored")
    assert [mirrored.replica_count(cards) for cards in (0, 1, 4)] == [2, 1, 4]
    assert Recipe(strategy="ps", devices=3).replica_count(4) == 3
    assert (Recipe().replica_count(4), Recipe(strategy="single").replica_count(4)) == (1, 1)


def test_the_id_counts_the_settings_of_the_input_and_no_defaults() -> None:
    assert Recipe(input=InputOptions(cache=True)).id != Recipe().id
    # What an older release has stored keeps its digits when settings are added.
    assert Recipe(seed=7).id == hashlib.sha256(b"[('seed', (None, 7))]").hexdigest()[:8]


def test_a_difference_names_the_setting_and_both_values() -> None:
    a, b = Recipe(precision="float32"), Recipe(precision="mixed_float16", batch_size=64)
    assert diff(a, b) == {"precision": ("float32", "mixed_float16"), "batch_size": (0, 64)}
    assert diff(a, a) == {}
    cached = Recipe(input=InputOptions(cache=True))
    assert diff(Recipe(), cached) == {"input.cache": (False, True)}
