"""catalog/assumptions: limits of the choice are sound and each says where it is from."""

from __future__ import annotations

import dataclasses
import tomllib
from importlib import resources

from tfdyno.catalog.assumptions import RECIPE_FILE, recipe_rules


def test_every_rule_has_a_unit_and_a_source() -> None:
    text = (resources.files("tfdyno.catalog") / "data" / RECIPE_FILE).read_text()
    rows = tomllib.loads(text)
    assert set(rows) == {field.name for field in dataclasses.fields(recipe_rules())}
    assert all(row["source"] and row["unit"] for row in rows.values())


def test_rules_are_in_order() -> None:
    rules = recipe_rules()
    assert 0 < rules.least_gain_ratio < 1
    assert rules.first_mixed_float16_capability < rules.first_mixed_bfloat16_capability
    assert 1 < rules.xla_on_cpu_low_ratio < rules.xla_on_cpu_high_ratio
