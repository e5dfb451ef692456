"""Root causes lead; what they explain is listed under them; nothing is lost or shown twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rules.made import made

from tfdyno.core.doctor.finding import Evidence
from tfdyno.rules.match import ORDER, Basis, Match
from tfdyno.rules.ranking import names_cause, root_first

if TYPE_CHECKING:
    from tfdyno.core.doctor.finding import Verdict


def match(
    cause: str, verdict: Verdict = "likely", basis: Basis = "log", line: int = 1, **rest: Any
) -> Match:
    evidence = (Evidence(text=f"{cause} {basis}", source=f"line {line}"),)
    return Match(cause=cause, verdict=verdict, basis=basis, line=line, evidence=evidence, **rest)


def shown(matches: list[Match], *causes: Any) -> list[tuple[str, tuple[str, ...]]]:
    ranking = root_first(matches, {one.id: one for one in causes})
    return [(one.match.cause, one.symptoms) for one in ranking.roots]


def test_a_chain_has_one_root_with_all_symptoms() -> None:
    causes = [
        made("sym.no_gpu", rank=95),
        made("lib.missing", explains=("sym.no_gpu",)),
        made("win.native", explains=("lib.*",)),
    ]
    found = [match("sym.no_gpu"), match("lib.missing"), match("win.native", basis="facts")]
    assert shown(found, *causes) == [("win.native", ("lib.missing", "sym.no_gpu"))]


def test_two_that_explain_each_other_give_one_answer() -> None:
    causes = [made("a.a", explains=("b.b",), rank=50), made("b.b", explains=("a.a",), rank=20)]
    assert shown([match("a.a"), match("b.b")], *causes) == [("b.b", ("a.a",))]


def test_a_cause_that_names_its_own_group_does_not_hide_itself() -> None:
    assert shown([match("lib.a")], made("lib.a", explains=("lib.*",))) == [("lib.a", ())]


def test_what_is_only_possible_explains_mere_symptoms_alone() -> None:
    causes = [
        made("sym.no_gpu", rank=95),
        made("lib.missing"),
        made("drv.old", explains=("lib.missing", "sym.no_gpu")),
    ]
    found = [match("sym.no_gpu"), match("lib.missing"), match("drv.old", "possible")]
    assert shown(found, *causes) == [("lib.missing", ()), ("drv.old", ("sym.no_gpu",))]


def test_the_log_speaks_before_facts_unless_it_shows_symptoms_only() -> None:
    causes = [made("sym.no_gpu", rank=95), made("mem.oom"), made("gpu.arch")]
    facts = match("gpu.arch", "proven", "facts", 0)
    assert [c for c, _ in shown([facts, match("mem.oom")], *causes)] == ["mem.oom", "gpu.arch"]
    assert [c for c, _ in shown([facts, match("sym.no_gpu")], *causes)] == [
        "gpu.arch", "sym.no_gpu",
    ]  # fmt: skip


def test_certainty_then_severity_then_rank_then_line_decide() -> None:
    causes = [
        made("a.proven", severity="note"),
        made("b.error", rank=60),
        made("c.error", rank=40),
        made("d.warning", severity="warning", rank=10),
        made("e.error", rank=40),
    ]
    found = [match("d.warning"), match("e.error", line=9), match("c.error", line=12)]
    found += [match("b.error"), match("a.proven", "proven")]
    order = [cause for cause, _ in shown(found, *causes)]
    assert order == ["a.proven", "e.error", "c.error", "b.error", "d.warning"]


def test_harmless_ones_stand_apart_the_most_frequent_first() -> None:
    causes = {
        one.id: one
        for one in (made("harmless.a", harmless=True), made("harmless.b", harmless=True))
    }
    ranking = root_first([match("harmless.a", count=2), match("harmless.b", count=7)], causes)
    assert ranking.roots == ()
    assert [one.match.cause for one in ranking.harmless] == ["harmless.b", "harmless.a"]


def test_log_and_facts_of_one_cause_become_one_match() -> None:
    causes = {"drv.old": made("drv.old")}
    told = match("drv.old", "likely", "log", 4, values={"driver": "470"}, count=3)
    seen = match("drv.old", "proven", "facts", 0, values={"driver": "470.1"})
    (one,) = root_first([told, seen], causes).roots
    assert (one.match.verdict, one.match.basis, one.match.line) == ("proven", "log", 4)
    assert (one.match.count, one.match.values) == (3, {"driver": "470.1"})
    assert len(one.match.evidence) == 2


@pytest.mark.parametrize(
    ("pattern", "cause", "does"),
    [
        ("lib.*", "lib.a", True),
        ("lib.a", "lib.a", True),
        ("lib.a", "lib.ab", False),
        ("lib.*", "library.a", False),
    ],
)
def test_a_pattern_means_a_cause_or_a_group(pattern: str, cause: str, does: bool) -> None:
    assert names_cause(pattern, cause) is does


IDS = [f"g{number % 3}.c{number}" for number in range(7)]


@given(
    st.dictionaries(st.sampled_from(IDS), st.lists(st.sampled_from([*IDS, "g0.*", "g1.*"]))),
    st.lists(
        st.tuples(
            st.sampled_from(IDS), st.sampled_from(ORDER), st.sampled_from(["log", "facts", "code"])
        ),
        max_size=10,
    ),
)
def test_whatever_explains_what_every_cause_is_shown_once(
    explains: dict[str, list[str]], found: list[tuple[str, Verdict, Basis]]
) -> None:
    causes = [made(one, explains=tuple(explains.get(one, ()))) for one in IDS]
    answer = shown([match(*one) for one in found], *causes)
    listed = [cause for root, symptoms in answer for cause in (root, *symptoms)]
    assert sorted(listed) == sorted({cause for cause, *_ in found})
    assert bool(answer) == bool(found)
