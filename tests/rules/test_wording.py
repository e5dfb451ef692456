"""Texts are filled with what is known; what is not known is never shown as a hole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rules.made import made

from tfdyno.core.base.errors import ToolError
from tfdyno.core.doctor.finding import Evidence, FixStep
from tfdyno.rules.causes import CauseStep, Words
from tfdyno.rules.match import Match
from tfdyno.rules.wording import fill, finding, steps

MATCH = Match(
    cause="drv.old",
    verdict="proven",
    basis="log",
    evidence=(Evidence(text="driver version is insufficient", source="line 1"),),
    values={"driver": "470.57"},
)


def both(english: str, chinese: str = "中文") -> Words:
    return Words(en=english, zh=chinese)


@pytest.mark.parametrize(
    ("text", "known", "said"),
    [
        ("The driver {driver} is old.", {"driver": "470"}, "The driver 470 is old."),
        ("{driver} is old.||The driver is old.", {}, "The driver is old."),
        ("{a}{b}||{a}||c", {"a": "1"}, "1"),
        ("{a}", {"a": ""}, None),
        ("{a}||{b}", {}, None),
        ("export P=${HOME}/x:${driver}", {}, "export P=${HOME}/x:${driver}"),
        ("docker ps --format '{{.Names}}'", {}, "docker ps --format '{{.Names}}'"),
    ],
)
def test_the_first_variant_with_known_names_is_used(
    text: str, known: dict[str, str], said: str | None
) -> None:
    assert fill(text, known) == said


def test_a_finding_uses_the_match_before_the_machine() -> None:
    cause = made(
        "drv.old",
        title=both("The driver {driver} is too old.", "驱动 {driver} 过旧。"),
        fix=(
            CauseStep(
                text=both("Get {min_driver}.", "升级到 {min_driver}。"), command="apt {min_driver}"
            ),
        ),
        link="https://example.org",
    )
    known = {"driver": "999", "min_driver": "525"}
    english = finding(cause, MATCH, known, symptoms=("sym.no_gpu",))
    assert english.summary == "The driver 470.57 is too old."
    assert english.fix == (FixStep(text="Get 525.", command="apt 525"),)
    assert (english.symptoms, english.verdict) == (("sym.no_gpu",), "proven")
    chinese = finding(cause, MATCH, known, "zh")
    assert chinese.summary == "驱动 470.57 过旧。"
    assert chinese.fix == (FixStep(text="升级到 525。", command="apt 525"),)


def test_of_a_choice_only_the_first_that_applies_and_is_known_is_shown() -> None:
    fix = (
        CauseStep(choice="get", command="winget", when={"system": "windows"}),
        CauseStep(choice="get", command="install {version}"),
        CauseStep(choice="get", command="install any"),
        CauseStep(command="check"),
    )
    assert [one.command for one in steps(fix, {"system": "linux"})] == ["install any", "check"]
    assert [one.command for one in steps(fix, {"version": "2"})] == ["install 2", "check"]
    assert [one.command for one in steps(fix, {"system": "windows"})] == ["winget", "check"]


def test_a_fix_without_a_step_that_applies_is_a_fault_of_the_rules() -> None:
    cause = made("drv.old", fix=(CauseStep(command="{unknown}"),))
    with pytest.raises(ToolError, match=r"drv\.old"):
        finding(cause, MATCH, {})


@given(
    st.text(alphabet="ab{}|$ _", max_size=30),
    st.dictionaries(st.sampled_from(["a", "b", "ab", "a_b"]), st.text("xy", max_size=2)),
)
def test_no_text_makes_it_fail_and_no_known_name_is_left(text: str, known: dict[str, str]) -> None:
    said = fill(text, known)
    assert said is None or all(f" {{{name}}}" not in f" {said}" for name in known if known[name])
