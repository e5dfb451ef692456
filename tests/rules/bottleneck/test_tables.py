"""Every number and text of the rules has its source, and every cause is one that rules say."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from tests.rules.bottleneck.any_facts import DIFFERS
from tests.rules.languages import check_languages

from tfdyno.core.base.errors import ToolError
from tfdyno.core.measure.bottleneck import BottleneckClass
from tfdyno.core.measure.step_facts import GrowthFacts, RetraceFacts
from tfdyno.core.recipe.recipe import InputOptions, from_settings
from tfdyno.rules import bottleneck
from tfdyno.rules.bottleneck.callback import CALLBACK_CAUSES
from tfdyno.rules.bottleneck.retrace import traced_anew
from tfdyno.rules.bottleneck.tables import Cause, all_causes, cause, limits, matching
from tfdyno.rules.tables import read_rows

FOLDER = Path(bottleneck.__file__).parent
SOURCE = "\n".join(file.read_text(encoding="utf-8") for file in FOLDER.glob("*.py"))


@pytest.mark.parametrize("one", all_causes(), ids=lambda one: one.id)
def test_a_cause_is_written_in_both_languages(one: Cause) -> None:
    for words in (one.summary, *(step.text for step in one.fix if step.text)):
        check_languages(words)


@pytest.mark.parametrize("one", all_causes(), ids=lambda one: one.id)
def test_a_cause_has_a_source_a_fix_and_settings_that_a_recipe_knows(one: object) -> None:
    known = cause(one.id)  # type: ignore[attr-defined]
    assert known.source
    assert known.fix
    assert known.bottleneck_class in get_args(BottleneckClass)
    from_settings(known.settings)


def said() -> set[str]:
    """Causes that stand in the code of the rules, and those that it puts together."""
    classes = "|".join(get_args(BottleneckClass))
    settings = {f"input.{field.name}" for field in dataclasses.fields(InputOptions)}
    found = set(re.findall(rf'"((?:{classes})\.[a-z0-9_]+)"', SOURCE)) - settings
    assert set(re.findall(rf'f"({classes})\.\{{', SOURCE)) == {"leak", "retrace", "callback"}
    found |= {f"leak.{kind}" for kind in get_args(get_type_hints(GrowthFacts)["kind"])}
    found |= {traced_anew(RetraceFacts(function="f", traces=9, calls=9, seconds_s=1, differs=each))
              for each in DIFFERS}  # fmt: skip
    return {*found, *CALLBACK_CAUSES}


def test_what_the_rules_say_and_what_the_tables_know_is_the_same() -> None:
    assert said() == {one.id for one in all_causes()}


def test_every_class_has_a_cause() -> None:
    assert {one.bottleneck_class for one in all_causes()} == set(get_args(BottleneckClass))


def test_a_source_that_is_an_issue_says_of_which_repository() -> None:
    for file in sorted((FOLDER / "data").iterdir()):
        for line in file.read_text(encoding="utf-8").splitlines():
            for before in re.findall(r"(.*?)\bissues? \d", line):
                assert re.search(r"[\w.-]+/[\w.-]+ $", before), f"{file.name}: {line}"


def test_every_limit_has_a_source_and_is_used() -> None:
    rows = read_rows(
        "../bottleneck/data/limits.csv", ("name", "value", "unit", "meaning", "source")
    )
    assert all(row["source"] and row["meaning"] and row["unit"] for row in rows)
    patterns = [re.sub(r"\{[^}]*\}", ".+", text) for text in re.findall(r'\[f?"([^"]+)"\]', SOURCE)]
    unused = [name for name in limits() if not any(re.fullmatch(p, name) for p in patterns)]
    assert unused == []


def test_words_are_found_without_regard_to_case() -> None:
    assert matching("logging", ["tensorboard", "Dialogue"]) == ("tensorboard",)
    assert matching("decode", ["DecodeJpeg", "DecodeRaw"]) == ("DecodeJpeg",)


def test_a_cause_that_is_not_there_is_a_fault_of_the_tool() -> None:
    with pytest.raises(ToolError, match=r"no cause 'input\.moon' in input\.toml"):
        cause("input.moon")
