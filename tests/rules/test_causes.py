"""Every cause file: complete in both languages, its rules find their examples and no near miss."""

from __future__ import annotations

import itertools
import json
import re

import pytest
from tests.rules.cases import CASES
from tests.rules.languages import check_languages

from tfdyno.core.base.errors import ToolError
from tfdyno.core.base.language import LANGUAGES
from tfdyno.rules.causes import Cause, all_causes, cause, groups, read_group
from tfdyno.rules.log.explained import scan
from tfdyno.rules.log.reader import template
from tfdyno.rules.ranking import names_cause
from tfdyno.rules.wording import NAME, fill, steps

CAUSES = {one.id: one for one in all_causes()}
RULES = [(one, number) for one in CAUSES.values() for number in range(len(one.log))]
RULE_IDS = [f"{one.id}-{number}" for one, number in RULES]
PLATFORMS = [
    {"system": "linux", "platform": "linux", "container": "none"},
    {"system": "linux", "platform": "linux", "container": "docker"},
    {"system": "linux", "platform": "linux", "container": "colab"},
    {"system": "linux", "platform": "wsl"},
    {"system": "linux", "platform": "jetson", "architecture": "aarch64"},
    {"system": "windows", "platform": "windows"},
    {"system": "macos", "platform": "macos"},
    {},
]
MANAGERS = ["", "pip", "uv", "conda", "poetry", "pixi", "system"]
TENSORFLOWS = ["", "1.15.5", "2.4.0", "2.10.1", "2.15.0", "2.21.0"]
ALWAYS_KNOWN = {"pip"}
UPPER = '[[one.log]]\nneedle = "Upper"\nexample = ""\nnear_miss = ""\n[[one.fix]]'
GOOD = """
[one]
severity = "error"
title = {en = "It broke.", zh = "坏了。"}
why = {en = "So it is.", zh = "如此。"}
source = "test"
[[one.fix]]
command = "true"
"""


@pytest.mark.parametrize(("one", "number"), RULES, ids=RULE_IDS)
def test_a_rule_finds_its_example(one: Cause, number: int) -> None:
    rule = one.log[number]
    assert rule.example, "a rule needs an example"
    found = [hits.rule for hits in scan([rule.example], [one]).hits]
    assert rule in found


@pytest.mark.parametrize(("one", "number"), RULES, ids=RULE_IDS)
def test_a_rule_leaves_its_near_miss_alone(one: Cause, number: int) -> None:
    rule = one.log[number]
    assert rule.near_miss, "a rule needs a near miss"
    log = scan([rule.near_miss], [one])
    hits = [hits for hits in log.hits if hits.rule == rule]
    is_held_back = log.seen & set(rule.unless) or (rule.also and not log.seen & set(rule.also))
    assert not hits or is_held_back


@pytest.mark.parametrize(("one", "number"), RULES, ids=RULE_IDS)
def test_an_expression_compiles(one: Cause, number: int) -> None:
    re.compile(one.log[number].match, re.IGNORECASE)


def test_needles_have_more_than_digits_for_else_no_two_lines_of_a_log_are_alike() -> None:
    rules = [rule for one in CAUSES.values() for rule in one.log if not rule.alone]
    assert not [rule.needle for rule in rules if not template(rule.needle.encode())]


@pytest.mark.parametrize("one", CAUSES.values(), ids=CAUSES)
def test_a_cause_is_written_in_both_languages(one: Cause) -> None:
    for words in (one.title, one.why, *(step.text for step in one.fix if step.text)):
        check_languages(words)
    assert one.source.strip()


@pytest.mark.parametrize("one", [one for one in CAUSES.values() if one.log])
def test_title_and_why_have_a_variant_that_needs_nothing(one: Cause) -> None:
    """Those without log rules are found by code that gives all their values."""
    for words in (one.title, one.why):
        for language in LANGUAGES:
            last = getattr(words, language).split("||")[-1]
            assert not set(NAME.findall(last)) - ALWAYS_KNOWN, last


@pytest.mark.parametrize("one", CAUSES.values(), ids=CAUSES)
def test_a_fix_has_a_step_wherever_the_machine_runs(one: Cause) -> None:
    for place, manager, tensorflow in itertools.product(PLATFORMS, MANAGERS, TENSORFLOWS):
        known = {**place, "manager": manager, "tensorflow": tensorflow, "pip": "python -m pip"}
        for language in LANGUAGES:
            shown = list(steps(one.fix, known, language))
            assert shown, (place, manager, tensorflow)
            assert not any(NAME.search(step.text + step.command) for step in shown)


def test_what_a_cause_explains_exists() -> None:
    for one in CAUSES.values():
        for pattern in one.explains:
            assert any(names_cause(pattern, other) for other in CAUSES), (one.id, pattern)
            assert pattern != one.id


def test_ids_are_unique_and_lead_to_their_cause() -> None:
    assert len(CAUSES) == len(all_causes())
    for identifier, one in CAUSES.items():
        assert cause(identifier) == one
        assert identifier.partition(".")[0] in groups()


def test_every_cause_of_the_cases_is_in_the_rules() -> None:
    wanted = {case["expected_cause"] for case in CASES}
    wanted |= {accepted for case in CASES for accepted in case["also_accept"]}
    assert wanted <= CAUSES.keys()


def test_no_rule_holds_what_only_one_case_says() -> None:
    """Ids, addresses, users' paths and shapes of one report would not help with the next."""
    literal = re.compile(
        r"0x[0-9a-f]{6,}|\b[0-9a-f]{8,}\b|\d{5,}|/(?:home|users)/\w+|\[\d+(?:,\d+)+\]",
        re.IGNORECASE,
    )
    told = {one for case in CASES for one in literal.findall(case["log"].lower())}
    assert len(told) > 50
    for one in CAUSES.values():
        for rule in one.log:
            texts = (rule.needle, rule.match, *rule.also, *rule.unless)
            assert not [(text, word) for text in texts for word in told if word in text], one.id


def test_no_needle_is_a_whole_line_of_a_case() -> None:
    lines = {line.strip().lower() for case in CASES for line in case["log"].splitlines()}
    long_lines = {line for line in lines if len(line) > 60}
    for one in CAUSES.values():
        for rule in one.log:
            assert rule.needle not in long_lines, (one.id, rule.needle)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("severity =", "sevrity ="), "sevrity"),
        (('source = "test"', 'source = "test"\nsuorce = "x"'), "suorce"),
        (('severity = "error"', 'severity = "bad"'), "severity"),
        (('command = "true"', 'when = {system = "linux"}'), "neither text nor command"),
        (('\n[[one.fix]]\ncommand = "true"\n', "\nfix = []\n"), "no fix"),
        (("[[one.fix]]", UPPER), "lower case"),
        (("[one]", "[one"), "TOML"),
        (("[one]", "x = 1\n[one]"), "cause 'x'"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_refused_with_its_name(change: tuple[str, str], said: str) -> None:
    assert read_group("test", GOOD)[0].id == "test.one"
    with pytest.raises(ToolError) as caught:
        read_group("test", GOOD.replace(*change))
    assert said in str(caught.value)
    assert "test.toml" in str(caught.value)


def test_cases_are_a_json_object_a_line() -> None:
    assert len(CASES) >= 100
    assert len({case["id"] for case in CASES}) == len(CASES)
    assert json.dumps(CASES)
    assert fill("{a}||b", {}) == "b"
