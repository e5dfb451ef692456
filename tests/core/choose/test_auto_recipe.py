"""core/auto_recipe: comes back from its own JSON, as a result that is stored must."""

from __future__ import annotations

from tests.choices import option

from tfdyno.core.base.codec import from_json, to_json
from tfdyno.core.choose.auto_recipe import AutoRecipe
from tfdyno.core.recipe.recipe import Recipe


def test_it_comes_back_from_json() -> None:
    one = option()
    found = AutoRecipe(
        recipe=Recipe(execution="xla"), reasons={"execution": "Because."}, notes=("Note.",),
        target="L4", gpu="l4", global_batch_size=32, chosen=one, options=(one,),
    )  # fmt: skip
    assert from_json(to_json(found), AutoRecipe) == found
